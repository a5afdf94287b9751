//! Calls that become one: a stencil that computes what several calls, one after the other, compute.
//!
//! A call's result that a later call reads becomes a definition, and the read a use of it along the same path: it is
//! computed where it is needed, as often as it is needed. Nothing is fused across a definition, so every bit stays. The
//! value is what the field would have held, so it is rounded as the field is stored.
//!
//! That the value *beyond an edge* is that of the result's formula there is for the caller to know: it is so where an
//! axis is a circle for all that is read, or where nobody looks beyond the edge. A stencil with a sweep is none of these: its
//! values depend on each other.

use crate::analysis::moving::read_anywhere;
use crate::ir::program::FieldBinding;
use crate::ir::{
    Arena, Body, Def, DefId, Field, FieldId, Handle, Node, NodeId, Origin, Path, Precision, Role, Stencil, Store,
    Stored, VariableId, Verify,
};
use std::collections::BTreeMap;

/// A stencil under construction, of calls that follow each other.
pub struct Fusion {
    stencil: Stencil,
    precision: Precision,
    /// What each variable is, after the calls so far.
    values: BTreeMap<VariableId, Value>,
    /// The fields that were there before the first call.
    inputs: BTreeMap<VariableId, FieldId>,
}

/// What a variable is.
#[derive(Clone)]
enum Value {
    /// What it was before the first call.
    Field(FieldId),
    /// What a call gave it, and how it is stored.
    Result(DefId, Field),
}

impl Fusion {
    /// Nothing yet.
    pub fn new(name: &str, precision: Precision) -> Self {
        let stencil = Stencil { name: name.to_owned(), ..Stencil::default() };
        Self { stencil, precision, values: BTreeMap::new(), inputs: BTreeMap::new() }
    }

    /// Whether a call can be added: what it reads on levels that are data, or said by their numbers, is whole then, so it is no result of a call before.
    pub fn takes(&self, own: &Stencil, fields: &[FieldBinding]) -> bool {
        let is_result = |variable: VariableId| matches!(self.values.get(&variable), Some(Value::Result(..)));
        let mut moved = read_anywhere(own).into_keys().filter_map(|field| fields[field.index()].read);
        !moved.any(is_result)
    }

    /// Adds a call of a stencil that it [takes](Self::takes), which is prepared and has no parameters, with these variables for its fields.
    pub fn call(&mut self, own: &Stencil, fields: &[FieldBinding]) {
        let mut reads: Vec<Option<Value>> = Vec::new();
        for ((_, field), binding) in own.fields.iter().zip(fields) {
            reads.push(binding.read.map(|variable| self.read(variable, field)));
        }
        let whole = &mut self.stencil;
        let first = whole.defs.len();
        let rewritten = |body: &Body| {
            body.map_nodes(|node| match node {
                Node::Read { field, path, part, by } => match &reads[field.index()] {
                    Some(Value::Result(def, _)) => Node::Use { def: *def, path: path.clone() },
                    Some(Value::Field(field)) => Node::Read { field: *field, path: path.clone(), part: *part, by: *by },
                    None => node.clone(),
                },
                Node::Use { def, path } => Node::Use { def: DefId::new(first + def.index()), path: path.clone() },
                node => node.clone(),
            })
        };
        for (_, def) in own.defs.iter() {
            whole.defs.add(Def { body: rewritten(&def.body), ..def.clone() });
        }
        let mut results = Vec::new();
        for store in &own.stores {
            let declared = &own.fields[store.field];
            // The value as the field would give it back.
            let body = rounded(rewritten(&store.body), declared.stored, self.precision);
            let def = whole.defs.add(Def { name: declared.name.clone(), origin: Origin::Let, over: None, body });
            let written = fields[store.field.index()].written;
            results.extend(written.map(|variable| (variable, Value::Result(def, declared.clone()))));
        }
        // All results at once: a call reads what there was before it.
        self.values.extend(results);
    }

    /// Gives a variable the value of another.
    pub fn rename(&mut self, from: VariableId, to: VariableId, declared: &Field) {
        let value = self.read(from, declared);
        self.values.insert(to, value);
    }

    /// What a variable is; what nobody computed is an input.
    fn read(&mut self, variable: VariableId, declared: &Field) -> Value {
        if let Some(value) = self.values.get(&variable) {
            return value.clone();
        }
        let mut field = declared.clone();
        field.role = Role::In;
        field.name = free_name(&self.stencil.fields, &field.name);
        let id = self.stencil.fields.add(field);
        self.inputs.insert(variable, id);
        let value = Value::Field(id);
        self.values.insert(variable, value.clone());
        value
    }

    /// The stencil whose outputs are these variables, in this order, and which variables its fields stand for. A variable that is none of the results, or is another's value from before, is left out.
    pub fn finish(mut self, outputs: &[VariableId]) -> (Stencil, Vec<FieldBinding>) {
        let mut written = Vec::new();
        for &variable in outputs {
            let Some(Value::Result(def, field)) = self.values.get(&variable).cloned() else { continue };
            let mut field = Field { role: Role::Out, range: None, ..field };
            field.name = free_name(&self.stencil.fields, &format!("{}_new", field.name));
            let kind = field.stored.kind();
            let id = self.stencil.fields.add(field);
            let span = self.stencil.fields[id].span;
            let mut body = Body::new();
            body.add(Node::Use { def, path: Path::default() }, kind, span);
            self.stencil.stores.push(Store { field: id, body, sweep: None });
            written.push((id, variable));
        }
        let mut fields = vec![FieldBinding::default(); self.stencil.fields.len()];
        self.inputs.into_iter().for_each(|(variable, field)| fields[field.index()].read = Some(variable));
        written.into_iter().for_each(|(field, variable)| fields[field.index()].written = Some(variable));
        (self.stencil.verified("making one call of several"), fields)
    }
}

/// A body whose value is what a field of this type gives back.
fn rounded(mut body: Body, stored: Stored, precision: Precision) -> Body {
    let loses = matches!((stored, precision), (Stored::F32, Precision::F64));
    if loses {
        let root: NodeId = body.root();
        let (kind, span) = (body.kind_of(root), body.span_of(root));
        body.add(Node::ToSingle(root), kind, span);
    }
    body
}

/// `name`, with a number if another field has it.
fn free_name(fields: &Arena<FieldId, Field>, name: &str) -> String {
    let is_free = |name: &String| fields.iter().all(|(_, own)| own.name != *name);
    let numbered = (2..).map(|n| format!("{name}_{n}"));
    std::iter::once(name.to_owned()).chain(numbered).find(is_free).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::extents::reaches;
    use crate::plan::prepare;
    use crate::source::Source;

    fn stencil(text: &str) -> Stencil {
        let lowered = crate::check(&Source::new("own", text));
        assert!(lowered.is_ok(), "{:?}", lowered.diagnostics);
        prepare(&lowered.stencils[0], Precision::F64, true)
    }

    fn binding(read: Option<VariableId>, written: Option<VariableId>) -> FieldBinding {
        FieldBinding { read, written }
    }

    /// A stencil computed several times: what it writes into the last variable is what it reads of the first the next time.
    fn repeated(step: &Stencil, times: usize, precision: Precision) -> (Stencil, Vec<FieldBinding>) {
        let mut fusion = Fusion::new("several", precision);
        let last = step.fields.len() - 1;
        let fields = (0..=last).map(|n| match n == last {
            true => binding(None, Some(VariableId::new(0))),
            false => binding(Some(VariableId::new(n)), None),
        });
        let fields: Vec<FieldBinding> = fields.collect();
        (0..times).for_each(|_| fusion.call(step, &fields));
        fusion.finish(&[VariableId::new(0)])
    }

    #[test]
    fn a_step_that_is_repeated_reaches_further() {
        let step = stencil("stencil step { in a, c; out b; b = c * a[i-1] + a[i+2, j-1] }");
        let [a, c] = [0, 1].map(FieldId::new);
        let (thrice, _) = repeated(&step, 3, Precision::F64);
        assert_eq!(thrice.verify(), Ok(()));
        let reach = reaches(&thrice);
        let along = |field: FieldId| reach[field.index()].map(|reach| (reach.low.i, reach.high.i, reach.low.j));
        assert_eq!((along(a), along(c)), (Some((-3, 6, -3)), Some((-2, 4, -2))));
        assert_eq!((thrice.defs.len(), thrice.stores.len()), (3, 1));
    }

    #[test]
    fn what_is_stored_as_f32_is_rounded_on_the_way() {
        let step = stencil("stencil step { in a: f32; out b: f32; b = 0.1 * a }");
        let rounds = |precision| {
            let (twice, _) = repeated(&step, 2, precision);
            twice.defs.iter().any(|(_, def)| def.body.iter().any(|(_, node)| matches!(node, Node::ToSingle(_))))
        };
        assert!(rounds(Precision::F64) && !rounds(Precision::F32));
    }

    #[test]
    fn calls_that_follow_each_other_are_one() {
        let lap = stencil("stencil lap { in a; out l; l = a[i-1] + a[i+1] - 2*a }");
        let add = stencil("stencil add { in a, l; out b; b = a + 3 * l[j+1] }");
        let mut fusion = Fusion::new("both", Precision::F64);
        // Variable 0 is the field, 1 its Laplacian.
        let [field, laplacian] = [0, 1].map(|n| Some(VariableId::new(n)));
        fusion.call(&lap, &[binding(field, None), binding(None, laplacian)]);
        fusion.call(&add, &[binding(field, None), binding(laplacian, None), binding(None, field)]);
        let (both, fields) = fusion.finish(&[VariableId::new(0)]);
        assert_eq!(both.verify(), Ok(()));
        assert_eq!((fields, both.stores.len()), (vec![binding(field, None), binding(None, field)], 1));
        let reach = reaches(&both)[0].unwrap();
        assert_eq!((reach.low.i, reach.high.i, reach.high.j), (-1, 1, 1));
    }
}
