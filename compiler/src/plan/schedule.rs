//! Which values a cell needs, and where in the kernel each is computed.
//!
//! A definition's value at an offset is computed once, in the innermost block of code that holds all its uses: the
//! kernel's own, or a branch of a choice. A value that is needed in several branches, but not surely, is computed before
//! them all the same. Values have no effects, so that is safe except for reads of levels that may not exist, which such
//! values guard themselves: they are not [`Context::sure`].

use super::path_classes::Walker;
use crate::analysis::values::{OPERATIONS, VALUES};
use crate::diagnostic::Refusal;
use crate::ir::{Body, DefId, Handle, Node, NodeId, Path, Stencil};
use std::collections::BTreeMap;

/// A block of code; 0 is the kernel's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(u32);

/// The kernel's own block.
pub const KERNEL: BlockId = BlockId(0);

/// Where a node is evaluated.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// In which block.
    pub block: BlockId,
    /// Whether it is evaluated only where its value is needed, so that the levels it reads exist.
    pub sure: bool,
}

/// A body at an offset, with the context of each of its nodes.
#[derive(Clone, Debug)]
pub struct Item {
    /// Where the body is evaluated.
    pub at: Path,
    /// The context of each node; nodes that belong to no evaluated part have none.
    pub contexts: Vec<Option<Context>>,
    /// Of each choice the blocks of its branches.
    pub branches: BTreeMap<NodeId, (BlockId, BlockId)>,
}

/// Everything that a kernel computes, in an order in which operands come first.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// Definitions at offsets.
    pub values: BTreeMap<(DefId, Path), Item>,
    /// One for each of the stencil's stores, cell by cell of a thread's tile.
    pub stores: Vec<Item>,
    /// The parent of each block.
    parents: Vec<BlockId>,
}

/// The schedule of `stencil` for the cells at `tile` of each thread, on a grid whose paths `walker` knows.
///
/// # Errors
/// It would compute too many values a cell.
pub fn schedule(stencil: &Stencil, walker: &mut Walker, tile: &[Path]) -> Result<Schedule, Refusal> {
    let mut schedule = Schedule { parents: vec![KERNEL], ..Schedule::default() };
    // In which context each value is used so far.
    let mut uses: BTreeMap<(DefId, Path), Context> = BTreeMap::new();
    let mut operations = 0;
    for (at, store) in tile.iter().flat_map(|at| stencil.stores.iter().map(move |store| (at, store))) {
        let here = Context { block: KERNEL, sure: true };
        let item = schedule.place(&store.body, at.clone(), here, walker, &mut uses);
        schedule.stores.push(item);
        operations += store.body.len();
    }
    // Users come after what they use, so backwards all uses of a value are known when its turn comes.
    while let Some(((def, at), context)) = uses.pop_last() {
        operations += stencil.defs[def].body.len();
        if operations > OPERATIONS {
            return Err(Refusal::new(format!(
                "a cell of stencil `{}` needs more than {OPERATIONS} operations, each value at each offset counted",
                stencil.name
            ))
            .help("split the stencil in two, and store what is between them"));
        }
        let item = schedule.place(&stencil.defs[def].body, at.clone(), context, walker, &mut uses);
        schedule.values.insert((def, at), item);
        // What is used will be computed, so this is found out long before it is.
        if schedule.values.len() + uses.len() > VALUES {
            return Err(Refusal::new(format!(
                "a cell of stencil `{}` needs more than {VALUES} intermediate values",
                stencil.name
            ))
            .help("split the stencil in two, and store what is between them"));
        }
    }
    Ok(schedule)
}

impl Schedule {
    /// Finds the context of every node of a body, and notes the uses of other values.
    fn place(
        &mut self,
        body: &Body,
        at: Path,
        root: Context,
        walker: &mut Walker,
        uses: &mut BTreeMap<(DefId, Path), Context>,
    ) -> Item {
        let mut item = Item { at, contexts: vec![None; body.len()], branches: BTreeMap::new() };
        item.contexts[body.root().index()] = Some(root);
        for (id, node) in body.iter().rev() {
            let Some(context) = item.contexts[id.index()] else { continue };
            let unsure = Context { sure: false, ..context };
            if let Node::Choose { .. } = node {
                item.branches.insert(id, (self.block(context.block), self.block(context.block)));
            }
            let mut reach = |operand: NodeId, context: Context| {
                let known = &mut item.contexts[operand.index()];
                *known = Some(known.map_or(context, |known| self.merge(known, context)));
            };
            match node {
                Node::Use { def, path } => {
                    let key = (*def, walker.join(&item.at, path));
                    let merged = uses.get(&key).map_or(context, |known| self.merge(*known, context));
                    uses.insert(key, merged);
                }
                Node::And(a, b) | Node::Or(a, b) => {
                    reach(*a, context);
                    reach(*b, unsure);
                }
                Node::Choose { condition, yes, no } => {
                    let (for_yes, for_no) = item.branches[&id];
                    reach(*condition, context);
                    reach(*yes, Context { block: for_yes, ..context });
                    reach(*no, Context { block: for_no, ..context });
                }
                _ => node.operands().into_iter().for_each(|operand| reach(operand, context)),
            }
        }
        item
    }

    fn block(&mut self, parent: BlockId) -> BlockId {
        self.parents.push(parent);
        BlockId(self.parents.len() as u32 - 1)
    }

    /// The innermost block that holds both; sure if one that stands in that very block is.
    fn merge(&self, a: Context, b: Context) -> Context {
        let block = self.common(a.block, b.block);
        let sure = (a.sure && a.block == block) || (b.sure && b.block == block);
        Context { block, sure }
    }

    fn common(&self, mut a: BlockId, mut b: BlockId) -> BlockId {
        // A parent has a smaller number than its children.
        while a != b {
            if a > b {
                a = self.parents[a.0 as usize];
            } else {
                b = self.parents[b.0 as usize];
            }
        }
        a
    }

    /// The block that a block stands in.
    pub fn parent(&self, block: usize) -> BlockId {
        self.parents[block]
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> usize {
        self.parents.len()
    }
}

impl Item {
    /// The block in which the item's value is computed.
    pub fn block(&self) -> BlockId {
        self.contexts.last().copied().flatten().map_or(KERNEL, |context| context.block)
    }
}

impl BlockId {
    /// The block's number.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Offset;
    use crate::source::Source;

    /// What is computed for two cells, far from each other, counts twice.
    #[test]
    fn the_cells_of_a_tile_are_counted_together() {
        let refusal = |text: &str| {
            let lowered = crate::check(&Source::new("s", text));
            let far = Path::from_offset(Offset { i: 100_000, j: 0, k: 0 });
            schedule(&lowered.stencils[0], &mut Walker::rows(), &[Path::default(), far]).unwrap_err().message
        };
        let values = "stencil s { in a; out r\nlet x = 2*a; let y = 3*a
            let p = sum(n in 1..=9000) { x[i+n] }
            let q = sum(n in 1..=9000) { y[i+n] }
            r = p + q
        }";
        assert!(refusal(values).contains("more than 30000 intermediate values"));
        let operations = "stencil s { in a; out r
            let x = sum(n in 1..=900) { a[i+n] }
            r = sum(n in 1..=900) { x[j+n] }
        }";
        assert!(refusal(operations).contains("more than 2000000 operations"));
    }
}
