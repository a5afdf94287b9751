//! Calls that become one: a stencil that computes what several calls, one after the other, compute.
//!
//! A call's result that a later call reads becomes a definition, and the read a use of it along the same path: it is
//! computed where it is needed, as often as it is needed. Nothing is fused across a definition, so every bit stays. The
//! value is what the field would have held, so it is rounded as the field is stored.
//!
//! That the value *beyond an edge* is that of the result's formula there is for the caller to know: it is so where an
//! axis is a circle for all that is read, or where nobody looks beyond the edge. A stencil with a sweep is none of these: its
//! values depend on each other.

use crate::ir::{
    Arena, Body, Def, DefId, Field, FieldId, Handle, Node, NodeId, Origin, Param, ParamId, Path, Precision, Role,
    Stencil, Store, Stored, Verify,
};
use std::collections::BTreeMap;

/// A stencil under construction, of calls that follow each other. Variables are numbers that the caller chooses.
pub struct Fusion {
    stencil: Stencil,
    precision: Precision,
    /// What each variable is, after the calls so far.
    values: BTreeMap<usize, Value>,
    /// The fields that were there before the first call.
    inputs: BTreeMap<usize, FieldId>,
}

/// What a variable is.
#[derive(Clone)]
enum Value {
    /// What it was before the first call.
    Field(FieldId),
    /// What a call gave it, and how it is stored.
    Result(DefId, Field),
}

/// A call to be fused with others.
pub struct Fused<'a> {
    /// The stencil, prepared.
    pub stencil: &'a Stencil,
    /// By its fields: the variables that are read, and written.
    pub fields: Vec<(Option<usize>, Option<usize>)>,
    /// By its parameters: which parameter of the whole each is.
    pub params: Vec<ParamId>,
}

impl Fusion {
    /// Nothing yet, with the parameters of the whole.
    pub fn new(name: &str, precision: Precision, params: Vec<Param>) -> Self {
        let mut stencil = Stencil { name: name.to_owned(), ..Stencil::default() };
        for param in params {
            stencil.params.add(param);
        }
        Self { stencil, precision, values: BTreeMap::new(), inputs: BTreeMap::new() }
    }

    /// Adds a call.
    pub fn call(&mut self, call: &Fused) {
        let own = call.stencil;
        let mut reads: Vec<Option<Value>> = Vec::new();
        for ((_, field), (read, _)) in own.fields.iter().zip(&call.fields) {
            reads.push(read.map(|variable| self.read(variable, field)));
        }
        let stores = with_definitions(&mut self.stencil, own, &reads, &call.params);
        let mut results = Vec::new();
        for (field, body) in stores {
            let value = result(&mut self.stencil, &own.fields[field], body, self.precision);
            if let (_, Some(variable)) = call.fields[field.index()] {
                results.push((variable, value));
            }
        }
        // All results at once: a call reads what there was before it.
        self.values.extend(results);
    }

    /// Gives a variable the value of another.
    pub fn rename(&mut self, from: usize, to: usize, declared: &Field) {
        let value = self.read(from, declared);
        self.values.insert(to, value);
    }

    /// What a variable is; what nobody computed is an input.
    fn read(&mut self, variable: usize, declared: &Field) -> Value {
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

    /// The stencil whose outputs are these variables, in this order, and its fields: by variable what is read, and what is
    /// written. A variable that is none of the results, or is another's value from before, is left out.
    pub fn finish(mut self, outputs: &[usize]) -> (Stencil, BTreeMap<usize, FieldId>, BTreeMap<usize, FieldId>) {
        let mut written = BTreeMap::new();
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
            written.insert(variable, id);
        }
        (self.stencil.verified("making one call of several"), self.inputs, written)
    }
}

/// A stencil computed several times, one after the other: `carry` says which output becomes which input the next time.
/// The fields of the result are those of `stencil`; its outputs are those of the last time.
pub fn repeated(stencil: &Stencil, carry: &[(FieldId, FieldId)], times: usize, precision: Precision) -> Stencil {
    let mut whole = Stencil { defs: Arena::new(), stores: Vec::new(), prints: Vec::new(), ..stencil.clone() };
    let params: Vec<ParamId> = stencil.params.handles().collect();
    let mut reads: Vec<Option<Value>> = stencil.fields.handles().map(|id| Some(Value::Field(id))).collect();
    for time in 0..times.max(1) {
        let is_last = time + 1 == times.max(1);
        let mut next = reads.clone();
        for (field, body) in with_definitions(&mut whole, stencil, &reads, &params) {
            if is_last {
                whole.stores.push(Store { field, body, sweep: None });
                continue;
            }
            let value = result(&mut whole, &stencil.fields[field], body, precision);
            for (_, input) in carry.iter().filter(|(output, _)| *output == field) {
                next[input.index()] = Some(value.clone());
            }
        }
        reads = next;
    }
    whole.verified("making one step of several")
}

/// Adds the definitions of a stencil to the whole, with what is read and with parameters of the whole: what it stores then.
fn with_definitions(
    whole: &mut Stencil,
    own: &Stencil,
    reads: &[Option<Value>],
    params: &[ParamId],
) -> Vec<(FieldId, Body)> {
    let first = whole.defs.len();
    let rewritten = |body: &Body| {
        body.map_nodes(|node| match node {
            Node::Read { field, path, .. } => match &reads[field.index()] {
                Some(Value::Result(def, _)) => Node::Use { def: *def, path: path.clone() },
                Some(Value::Field(field)) => Node::Read { field: *field, path: path.clone(), part: 0 },
                None => node.clone(),
            },
            Node::Use { def, path } => Node::Use { def: DefId::new(first + def.index()), path: path.clone() },
            Node::Param(param) => Node::Param(params[param.index()]),
            node => node.clone(),
        })
    };
    for (_, def) in own.defs.iter() {
        whole.defs.add(Def { body: rewritten(&def.body), ..def.clone() });
    }
    own.stores.iter().map(|store| (store.field, rewritten(&store.body))).collect()
}

/// What a call gives a field that it stores: the value as the field would give it back.
fn result(whole: &mut Stencil, declared: &Field, body: Body, precision: Precision) -> Value {
    let body = rounded(body, declared.stored, precision);
    let def = whole.defs.add(Def { name: declared.name.clone(), origin: Origin::Let, body });
    Value::Result(def, declared.clone())
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

    #[test]
    fn a_step_that_is_repeated_reaches_further() {
        let step = stencil("stencil step { in a, c; out b; b = c * a[i-1] + a[i+2, j-1] }");
        let [a, c, b] = [0, 1, 2].map(FieldId::new);
        let thrice = repeated(&step, &[(b, a)], 3, Precision::F64);
        assert_eq!(thrice.verify(), Ok(()));
        let reach = reaches(&thrice);
        let along = |field: FieldId| reach[field.index()].map(|reach| (reach.low.i, reach.high.i, reach.low.j));
        assert_eq!((along(a), along(c)), (Some((-3, 6, -3)), Some((-2, 4, -2))));
        assert_eq!((thrice.defs.len(), thrice.stores.len()), (2, 1));
    }

    #[test]
    fn what_is_stored_as_f32_is_rounded_on_the_way() {
        let step = stencil("stencil step { in a: f32; out b: f32; b = 0.1 * a }");
        let rounds = |precision| {
            let twice = repeated(&step, &[(FieldId::new(1), FieldId::new(0))], 2, precision);
            twice.defs.iter().any(|(_, def)| def.body.iter().any(|(_, node)| matches!(node, Node::ToSingle(_))))
        };
        assert!(rounds(Precision::F64) && !rounds(Precision::F32));
    }

    #[test]
    fn calls_that_follow_each_other_are_one() {
        let lap = stencil("stencil lap { in a; out l; l = a[i-1] + a[i+1] - 2*a }");
        let add = stencil("stencil add { in a, l; param c; out b; b = a + c * l[j+1] }");
        let params: Vec<Param> = add.params.iter().map(|(_, param)| param.clone()).collect();
        let mut fusion = Fusion::new("both", Precision::F64, params);
        // Variable 0 is the field, 1 its Laplacian.
        fusion.call(&Fused { stencil: &lap, fields: vec![(Some(0), None), (None, Some(1))], params: vec![] });
        let fields = vec![(Some(0), None), (Some(1), None), (None, Some(0))];
        fusion.call(&Fused { stencil: &add, fields, params: vec![ParamId::new(0)] });
        let (both, reads, writes) = fusion.finish(&[0]);
        assert_eq!(both.verify(), Ok(()));
        assert_eq!((reads.len(), writes.len(), both.stores.len()), (1, 1, 1));
        let reach = reaches(&both)[reads[&0].index()].unwrap();
        assert_eq!((reach.low.i, reach.high.i, reach.high.j), (-1, 1, 1));
    }
}
