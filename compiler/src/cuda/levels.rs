//! The cells that a stencil computes, as C++ functions: for kernels built before grid and parameters are known.

use super::prelude::Helpers;
use super::{prelude, print, values};
use crate::analysis::levels::{Judge, Rules, goes_on};
use crate::depth::needed_first;
use crate::ir::program::GridAxis;
use crate::ir::{
    Body, Bound, DefId, FieldId, Handle, Kind, Levels, Node, NodeId, ParamId, Precision, Relation, Stencil,
};
use crate::kernel::build::{Builder, Computing, Term};
use crate::kernel::scalar::Scalar;
use crate::kernel::simplify::simplify;
use crate::kernel::{Math, Meaning, Operation, Statement, Type, ValueId};
use crate::names::{Identifier, Names};
use std::collections::{BTreeMap, HashMap};

/// The body of a function of `k`, `ni`, `nj`, `nk` and parameters.
pub struct Written {
    /// Lines; the last returns.
    pub lines: Vec<String>,
    /// Functions of the prelude that they call.
    pub helpers: Helpers,
    /// The parameters that decide, and what the lines call them.
    pub params: Vec<(ParamId, Identifier)>,
}

/// Writes down on which levels every output of `stencil` can be computed: a truth of `k` and `nk`.
pub fn write(stencil: &Stencil, precision: Precision) -> Written {
    written(stencil, precision, Type::BOOL, |writer| {
        let mut rules = Rules::new(stencil, writer);
        let truth = rules.computed();
        (rules.into_judge().own, truth)
    })
}

/// Writes down where something begins or ends along i or j: a whole number, of `ni`, `nj` and `nk`.
pub fn write_bound(stencil: &Stencil, precision: Precision, bound: &Bound) -> Written {
    written(stencil, precision, Type::I32, |mut writer| {
        let number = writer.known(&bound.body, bound.body.root(), 0);
        (writer.own, number)
    })
}

/// Writes down a value of a kind.
fn written(
    stencil: &Stencil,
    precision: Precision,
    kind: Type,
    write: impl FnOnce(Writer) -> (Builder, ValueId),
) -> Written {
    let mut names = Names::default();
    let name = names.declared("computed");
    let mut own = Builder::with_names(names, name, 1, Vec::new());
    let [k, ni, nj, nk] = ["k", "ni", "nj", "nk"].map(|name| own.number(name, Type::I32));
    let names: Vec<(ParamId, Identifier)> =
        stencil.params.iter().map(|(id, param)| (id, own.declared(&param.name))).collect();
    let arguments = names.iter().map(|(id, name)| {
        let kind = Type::computing(stencil.params[*id].kind, precision);
        (*id, own.argument(name.clone(), kind, Meaning::Documented))
    });
    let params: BTreeMap<ParamId, ValueId> = arguments.collect();
    let (values, sizes) = (HashMap::new(), HashMap::new());
    let (mut own, value) = write(Writer { stencil, precision, own, k, counts: [ni, nj, nk], params, values, sizes });
    // What is returned counts as written, and all that does not lead to it is left out.
    let result = own.output("result", kind);
    own.store(result, 0, value);
    let mut kernel = simplify(own.finish());
    let mut lines = Vec::new();
    if let Some(Statement::Store(_, _, value)) = kernel.body.0.pop() {
        lines = print::block(&kernel, &kernel.body.0);
        lines.push(format!("return {};", values::shown(&kernel, value)));
    }
    let decide = |name: &Identifier| kernel.arguments.iter().any(|(_, argument)| argument.name == *name);
    let params = names.into_iter().filter(|(_, name)| decide(name)).collect();
    Written { lines, helpers: prelude::called(&kernel), params }
}

struct Writer<'a> {
    stencil: &'a Stencil,
    precision: Precision,
    own: Builder,
    k: ValueId,
    /// How many cells there are along each axis.
    counts: [ValueId; 3],
    params: BTreeMap<ParamId, ValueId>,
    /// Definitions, so many levels away.
    values: HashMap<(DefId, i32), ValueId>,
    /// How many operations the text of a value has.
    sizes: HashMap<ValueId, usize>,
}

/// Truths of more operations get a name, so that nothing is written twice.
const LONG: usize = 12;

impl Writer<'_> {
    /// The operations that a value is written with.
    fn size(&mut self, value: ValueId) -> usize {
        if let Some(&known) = self.sizes.get(&value) {
            return known;
        }
        let own = &self.own.kernel().values[value];
        let operands = if own.name.is_some() { Vec::new() } else { own.operation.operands() };
        let size = operands.into_iter().fold(1usize, |sum, operand| sum.saturating_add(self.size(operand)));
        self.sizes.insert(value, size);
        size
    }

    fn short(&mut self, truth: ValueId) -> ValueId {
        if self.size(truth) <= LONG {
            return truth;
        }
        let named = self.own.name("truth", truth);
        self.sizes.insert(named, 1);
        named
    }

    /// The value of a known node, `shift` levels away.
    fn known(&mut self, body: &Body, root: NodeId, shift: i32) -> ValueId {
        let body = body.rooted(root);
        let stencil = self.stencil;
        let unnamed = |(def, shift): &(DefId, i32)| self.unnamed(&stencil.defs[*def].body, *shift);
        for (def, shift) in needed_first(self.unnamed(&body, shift), unnamed) {
            let declared = &stencil.defs[def];
            let value = self.value(&declared.body, shift);
            let value = self.own.name(&declared.name, value);
            self.sizes.insert(value, 1);
            self.values.insert((def, shift), value);
        }
        self.value(&body, shift)
    }

    /// The definitions that a body uses, and where, which have no values yet.
    fn unnamed(&self, body: &Body, shift: i32) -> Vec<(DefId, i32)> {
        let uses = body.iter().filter_map(|(_, node)| match node {
            Node::Use { def, path } => Some((*def, shift.saturating_add(path.levels()))),
            _ => None,
        });
        uses.filter(|key| !self.values.contains_key(key)).collect()
    }

    /// The value of a body whose definitions have values. A known one reads nothing.
    fn value(&mut self, body: &Body, shift: i32) -> ValueId {
        let scalar = Scalar { precision: self.precision, math: Math::Own };
        let mut values: Vec<ValueId> = Vec::with_capacity(body.len());
        for (id, node) in body.iter() {
            let value = match node {
                Node::Param(param) => self.params[param],
                Node::Level => self.own.term(self.k.plus(shift)),
                Node::Count(axis) => self.counts[*axis as usize],
                Node::Use { def, path } => self.values[&(*def, shift.saturating_add(path.levels()))],
                _ => {
                    let value = scalar.value(&mut self.own, body, id, &|operand| values[operand.index()]);
                    value.unwrap_or(self.k)
                }
            };
            values.push(value);
        }
        values.last().copied().unwrap_or(self.k)
    }

    /// The truths that all have to hold for one.
    fn parts(&self, truth: ValueId) -> Vec<ValueId> {
        let (mut parts, mut waiting) = (Vec::new(), vec![truth]);
        while let Some(truth) = waiting.pop() {
            match self.own.kernel().values[truth] {
                crate::kernel::Value { operation: Operation::And(a, b), name: None, .. } => waiting.extend([b, a]),
                _ => parts.push(truth),
            }
        }
        parts
    }
}

impl Judge for Writer<'_> {
    type Truth = ValueId;

    fn constant(&mut self, truth: bool) -> ValueId {
        self.own.truth(truth)
    }

    fn and(&mut self, a: &ValueId, b: &ValueId) -> ValueId {
        // The same condition again adds nothing.
        let known = self.parts(*a);
        let new: Vec<ValueId> = self.parts(*b).into_iter().filter(|part| !known.contains(part)).collect();
        let truth = new.into_iter().fold(*a, |truth, part| self.own.and(truth, part));
        self.short(truth)
    }

    fn or(&mut self, a: &ValueId, b: &ValueId) -> ValueId {
        let truth = self.own.or(*a, *b);
        self.short(truth)
    }

    fn not(&mut self, a: &ValueId) -> ValueId {
        self.own.not(*a)
    }

    fn exists(&mut self, _: FieldId, shift: i32, levels: Levels) -> ValueId {
        // Behind the last level a field of levels has nothing, nor has one of interfaces after that.
        let goes_on = goes_on(self.stencil);
        let (relation, level) = match (shift, levels) {
            (_, Levels::None) | (0, Levels::Interfaces) => return self.own.truth(true),
            (0, Levels::Full) | (1, Levels::Interfaces) if !goes_on => return self.own.truth(true),
            (..0, _) => (Relation::Ge, Term::from(shift.unsigned_abs())),
            (_, Levels::Interfaces | Levels::Full) => (
                Relation::Lt,
                self.counts[GridAxis::K as usize].minus(if levels == Levels::Full { shift } else { shift - 1 }),
            ),
        };
        self.own.term(self.k.is(relation, level))
    }

    fn said(&mut self, _: FieldId, levels: Levels, shift: i32, (body, by, at): (&Body, NodeId, i32)) -> ValueId {
        let by = self.known(body, by, at);
        let level = self.own.term(self.k.plus(by).plus(shift));
        let last = self.counts[GridAxis::K as usize].minus(if levels == Levels::Full { 1 } else { 0 });
        let [first, last] = [(Relation::Ge, 0.into()), (Relation::Le, last)]
            .map(|(is, end): (Relation, Term)| self.own.term(level.is(is, end)));
        let truth = self.own.and(first, last);
        self.short(truth)
    }

    fn bound(&mut self, bound: &Bound) -> ValueId {
        let number = self.known(&bound.body, bound.body.root(), 0);
        let truth = self.own.term(self.k.is(bound.is.relation(), number));
        self.short(truth)
    }

    fn condition(&mut self, body: &Body, node: NodeId, shift: i32) -> ValueId {
        debug_assert_eq!(body.kind_of(node), Kind::Bool);
        let truth = self.known(body, node, shift);
        self.short(truth)
    }

    fn found(&mut self, def: DefId, _: i32, truth: ValueId) -> ValueId {
        debug_assert!(def.index() < self.stencil.defs.len());
        truth
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn written(text: &str) -> Written {
        let lowered = crate::check(&Source::new("s.stn", text));
        write(&crate::plan::prepare(&lowered.stencils[0], Precision::F64, true), Precision::F64)
    }

    #[test]
    fn what_does_not_decide_is_not_written() {
        let own = written(
            "stencil s { param on: bool = true; param n: int = 3; in a; out r; r = if on { a * n } else { a } }",
        );
        assert_eq!((own.lines, own.params.len()), (vec!["return true;".to_owned()], 0));
        let own = written("stencil s { param n: int = 3; in a; out r; r = if k > n { a[k-1] } else { a } }");
        assert_eq!((own.params.len(), own.lines.len()), (1, 1));
        assert_eq!(own.params[0].1, *"n");
    }

    /// Each truth is made of the one before, twice.
    #[test]
    fn long_chains_have_lines_of_their_own() {
        let mut text = "stencil s { param p: int = 3; in a; out r\nlet c0 = k > 0\n".to_owned();
        for n in 1..=200 {
            text += &format!("let c{n} = (c{0} && k > p) || (k < {n} && !c{0})\n", n - 1);
        }
        let own = written(&(text + "r = if c200 { a[k-1] } else { a } }"));
        let longest = own.lines.iter().map(String::len).max().unwrap();
        assert!(own.lines.len() < 500 && longest < 300, "{} lines, the longest of {longest}", own.lines.len());
    }
}
