//! A stencil by itself, as a program that calls it once: what runs is a program, always.

use super::program::{Action, Call, FieldBinding, Program, Variable};
use super::{Arena, Body, Def, DefId, Field, Kind, Node, Origin, Role, Stencil, VariableId};

/// The program that calls a stencil once, and its variables that are numbers: those of reductions. What is added to is given, or
/// starts from 0.
pub fn once(stencil: &Stencil, from_zero: bool) -> (Program, Vec<VariableId>) {
    let mut program = Program {
        name: stencil.name.clone(),
        doc: stencil.doc.clone(),
        file: stencil.file.clone(),
        stencils: vec![stencil.clone()],
        ..Program::default()
    };
    // Its parameters are the program's; their defaults are made of constants, which come along.
    let mut numbers = Stencil { params: stencil.params.clone(), defs: constants(stencil), ..Stencil::default() };
    let (mut fields, mut of_numbers) = (Vec::new(), Vec::new());
    for (_, field) in stencil.fields.iter() {
        let role = match field.role {
            // No array to anybody.
            Role::Carried => {
                fields.push(FieldBinding::default());
                continue;
            }
            Role::Inc if from_zero => Role::Out,
            Role::Inc => Role::InOut,
            Role::Reduce => Role::Out,
            Role::In | Role::Out | Role::InOut => field.role,
        };
        let Field { name, doc, place, stored, range, span, .. } = field.clone();
        let id = program.variables.add(Variable {
            name,
            original: None,
            doc,
            role: Some(role),
            is_shown: false,
            place,
            stored,
            range,
            edges: Default::default(),
            span,
        });
        fields
            .push(FieldBinding { read: role.is_read().then_some(id), written: field.role.is_written().then_some(id) });
        if field.role == Role::Reduce {
            of_numbers.push(id);
        }
    }
    let params = stencil.params.iter().map(|(id, param)| {
        let mut body = Body::new();
        body.add(Node::Param(id), param.kind, param.span);
        Some(body)
    });
    let call = Call { stencil: 0, fields, params: params.collect(), span: Default::default() };
    program.actions = vec![Action::Call(call)];
    for &id in &of_numbers {
        numbers.fields.add(Field { range: None, doc: Default::default(), ..program.variables[id].field(Role::In) });
    }
    program.numbers = numbers;
    (program, of_numbers)
}

/// The definitions of a stencil, of which those that are no constants are worth nothing: they keep their numbers.
fn constants(stencil: &Stencil) -> Arena<DefId, Def> {
    let mut defs = Arena::new();
    for (_, def) in stencil.defs.iter() {
        let mut own = def.clone();
        if own.origin != Origin::Constant {
            let mut body = Body::new();
            body.add(Node::Bool(false), Kind::Bool, Default::default());
            (own.body, own.over) = (body, None);
        }
        defs.add(own);
    }
    defs
}
