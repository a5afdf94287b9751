//! Each rule, broken.

use super::super::mesh::How;
use super::super::program::Action;
use super::*;
use crate::ir::program::FieldBinding;
use crate::ir::{
    Binary, Direction, Function, Home, Hop, MapId, MeshProgram, MeshStencil, NodeId, ParamId, Place, Stored, Sweep,
    SweepId, VariableId, phases,
};
use crate::source::{Source, Span};

const GRID: &str = "stencil s { in a; in w on (k); param p = 1.5; out b, c
    let x = 2 * a; let y = x + p; b = y + w; c = if a > 0 { x } else { y } }";

const SWEEP: &str = "stencil s { in a; out b, c
    sweep k up { b = if k == 0 { a } else { b[k-1] + a } }
    c = 2 * b }";

const MESH: &str = "mesh m {
        set cell, edge
        map edge.cells -> cell[2]
        map cell.near -> cell[2]
    }
    stencil s over m.edge {
        in q: real[2] on cell
        inc r on cell
        out o: real[2]
        reduce most: max
        let d = q[cells.0].0 - q[cells.1].1
        o = [d, 0.5 * d]
        r[cells.0] += d
        r[cells.1] -= d
        most = 2 * d
    }
    program t over m {
        in q: real[2] on cell
        out r on cell
        out o: real[2] on edge
        out big: real on ()
        param times: int = 3
        repeat times {
            r, o, most = s(q)
            big = most + 1
        }
    }";

fn lowered(text: &str) -> crate::lower::Lowered {
    let lowered = crate::check(&Source::new("own", text));
    assert!(lowered.is_ok(), "{:?}", lowered.diagnostics);
    lowered
}

/// The rule that a stencil breaks once something is done to it.
fn of_grid(text: &str, change: impl FnOnce(&mut Stencil)) -> String {
    let mut own = lowered(text).stencils.remove(0);
    assert_eq!(own.verify(), Ok(()));
    change(&mut own);
    own.verify().unwrap_err()
}

fn of_mesh(change: impl FnOnce(&mut MeshStencil)) -> String {
    let mut own = lowered(MESH).mesh_stencils.remove(0);
    assert_eq!((own.verify(), own.stencil.verify()), (Ok(()), Ok(())));
    change(&mut own);
    own.verify().unwrap_err()
}

fn of_program(change: impl FnOnce(&mut MeshProgram)) -> String {
    let mut own = lowered(MESH).mesh_programs.remove(0);
    assert_eq!(own.verify(), Ok(()));
    change(&mut own);
    own.verify().unwrap_err()
}

/// A body of one node.
fn only(node: Node, kind: Kind) -> Body {
    let mut body = Body::new();
    body.add(node, kind, Default::default());
    body
}

/// A body of an operation on a real number, twice.
fn twice(kind: Kind, operation: impl Fn(NodeId) -> Node) -> Body {
    let mut body = only(Node::Real(1.0), Kind::Real);
    body.add(operation(NodeId::new(0)), kind, Default::default());
    body
}

fn read(field: usize, path: Path, part: u32) -> Body {
    only(Node::Read { field: FieldId::new(field), path, part, by: None }, Kind::Real)
}

fn hops(hops: &[(usize, u32)]) -> Path {
    Path::through(hops.iter().map(|&(map, slot)| Hop { map: MapId::new(map), slot }).collect::<Vec<_>>())
}

fn left() -> Path {
    Path::from_offset(crate::ir::Offset { i: -1, ..Default::default() })
}

#[test]
fn operands_and_definitions_come_first() {
    let stored = |body: Body| of_grid(GRID, |own| own.stores[0].body = body);
    assert_eq!(stored(Body::new()), "b: empty body");
    let later = only(Node::Negate(NodeId::new(0)), Kind::Real);
    assert_eq!(stored(later), "b: node 0 uses a later one");
    let found = of_grid(GRID, |own| {
        let own_use = Node::Use { def: crate::ir::DefId::new(1), path: Path::default() };
        own.defs.values_mut().for_each(|def| def.body = only(own_use.clone(), Kind::Real));
    });
    assert_eq!(found, "definition x.0: it uses the later definition 1");
    let missing = |node: Node| stored(only(node, Kind::Real));
    assert_eq!(missing(Node::Param(ParamId::new(7))), "b: it uses the parameter 7, which is not there");
    assert_eq!(stored(read(7, Path::default(), 0)), "b: it reads the field 7, which is not there");
    let found = of_grid(GRID, |own| own.stores[0].field = FieldId::new(7));
    assert_eq!(found, "it stores the field 7, which is not there");
}

#[test]
fn kinds_fit() {
    let stored = |body: Body| of_grid(GRID, |own| own.stores[0].body = body);
    for body in [
        only(Node::Real(1.0), Kind::Int),
        only(Node::Level, Kind::Real),
        only(Node::Param(ParamId::new(0)), Kind::Int),
        twice(Kind::Int, Node::Negate),
        twice(Kind::Bool, Node::Not),
        twice(Kind::Real, Node::ToReal),
        twice(Kind::Int, |a| Node::Binary(Binary::Div, a, a)),
        twice(Kind::Real, |a| Node::Compare(crate::ir::Relation::Lt, a, a)),
        twice(Kind::Real, |a| Node::Call(Function::Min, vec![a])),
        twice(Kind::Real, |a| Node::Choose { condition: a, yes: a, no: a }),
    ] {
        let found = stored(body);
        assert!(found.contains("does not fit"), "{found}");
    }
    assert_eq!(stored(only(Node::Int(1), Kind::Int)), "b: a int is stored in it");
}

#[test]
fn fields_are_read_and_stored_as_they_are_declared() {
    let stored = |body: Body| of_grid(GRID, |own| own.stores[0].body = body);
    assert_eq!(stored(read(3, Path::default(), 0)), "b: the out field c is read");
    assert!(stored(read(1, left(), 0)).starts_with("b: w is read at [i-1], along an axis that it lacks"));
    let found = of_grid(GRID, |own| own.stores.truncate(1));
    assert_eq!(found, "out field c is stored 0 times");
    let found = of_grid(GRID, |own| own.stores.push(own.stores[0].clone()));
    assert_eq!(found, "out field b is stored 2 times");
    let found = of_grid(GRID, |own| own.fields.values_mut().for_each(|field| field.role = Role::In));
    assert_eq!(found, "in field b is stored 1 times");
}

#[test]
fn constants_read_nothing() {
    let default = |body: Body, kind: Kind| {
        of_grid(GRID, |own| {
            own.params.values_mut().for_each(|param| (param.default, param.kind) = (Some(body.clone()), kind));
        })
    };
    assert!(default(read(0, Path::default(), 0), Kind::Real).contains("p: node 0"));
    let mut level = only(Node::Level, Kind::Int);
    level.add(Node::ToReal(NodeId::new(0)), Kind::Real, Default::default());
    assert!(default(level, Kind::Real).contains("p: node 0"));
    assert!(default(only(Node::Param(ParamId::new(0)), Kind::Real), Kind::Real).contains("p: node 0"));
    let found = of_grid(GRID, |own| {
        own.params.values_mut().for_each(|param| param.default = Some(only(Node::Int(1), Kind::Int)));
    });
    assert_eq!(found, "p: a int is its default");
}

#[test]
fn values_of_sweeps_are_known_where_they_are_read() {
    let carried = |own: &Stencil| own.fields.iter().find(|(_, field)| field.role == Role::Carried).unwrap().0;
    let reading = |at: Path| {
        of_grid(SWEEP, |own| {
            let body = read(carried(own).index(), at, 0);
            own.stores.iter_mut().filter(|store| store.sweep.is_some()).for_each(|store| store.body = body.clone());
        })
    };
    assert!(reading(Path::levels_only(1)).contains("is read before it is known"));
    assert!(reading(left()).contains("in another column"));
    let found = of_grid(SWEEP, |own| own.stores.iter_mut().for_each(|store| store.sweep = None));
    assert!(found.starts_with("no sweep stores"), "{found}");
    // What a phase before has stored is known in the next; not all is stored in one.
    let own = lowered(SWEEP).stencils.remove(0);
    for mut phase in phases(&own) {
        assert_eq!(phase.verify(), Ok(()));
        phase.stencil.stores.push(phase.stencil.stores[0].clone());
        assert!(phase.verify().is_err());
    }
}

#[test]
fn a_grid_has_no_maps() {
    let stored = |body: Body| of_grid(GRID, |own| own.stores[0].body = body);
    assert_eq!(stored(read(0, hops(&[(0, 1)]), 0)), "b: a path on a grid has hops: [map 0 slot 1]");
    assert_eq!(stored(read(0, Path::default(), 1)), "b: part 1 of a is read, which it has not");
    let present = only(Node::Present { path: Path::default() }, Kind::Bool);
    assert!(stored(present).contains("does not fit"));
}

#[test]
fn hops_lead_from_set_to_set() {
    let def = |body: Body| of_mesh(|own| own.stencil.defs.values_mut().for_each(|def| def.body = body.clone()));
    let told = |path: Path| def(read(0, path, 0));
    assert!(told(hops(&[(9, 0)])).contains("a path leads through a map that is not there"));
    assert!(told(hops(&[(0, 2)])).contains("a path leads through a slot that its map has not"));
    assert!(told(hops(&[(1, 0)])).contains("a path goes on from a set that it does not lead to"));
    assert!(told(hops(&[(0, 0), (0, 0)])).contains("a path goes on from a set that it does not lead to"));
    assert!(told(hops(&[(0, 0)]).then(&Path::levels_only(1))).contains("a path leads to another level"));
    assert!(told(left()).contains("a path over a mesh has steps"));
    assert!(def(only(Node::Present { path: Path::default() }, Kind::Bool)).contains("does not fit"));
    let swept = of_mesh(|own| own.stencil.stores[0].sweep = Some(SweepId::new(0)));
    assert_eq!(swept, "it stores in a sweep that is not there");
    let swept = of_mesh(|own| {
        own.stencil.sweeps.add(Sweep { direction: Direction::Up, span: Span::default() });
    });
    assert_eq!(swept, "it sweeps, and adds or folds");
}

#[test]
fn reads_end_where_fields_are_at_home() {
    let def = |body: Body| of_mesh(|own| own.stencil.defs.values_mut().for_each(|def| def.body = body.clone()));
    assert!(def(read(0, Path::default(), 0)).contains("q is read at , where it is not at home"));
    assert!(def(read(0, hops(&[(0, 0)]), 2)).contains("part 2 of q is read, which it has not"));
    let nowhere = of_mesh(|own| {
        own.stencil.fields[FieldId::new(0)].place = Place { horizontal: false, levels: Levels::None, home: None };
    });
    assert!(nowhere.contains("along an axis that it lacks"), "{nowhere}");
    let found = of_mesh(|own| {
        let used = Node::Use { def: crate::ir::DefId::new(0), path: hops(&[(0, 0)]) };
        own.stencil.stores[0].body = only(used, Kind::Real);
    });
    assert_eq!(found, "o: it uses a definition at [cells.0], where there are none");
    let home = |change: &dyn Fn(&mut Home)| {
        of_mesh(|own| own.stencil.fields.values_mut().filter_map(|field| field.place.home.as_mut()).for_each(change))
    };
    assert!(home(&|own| own.set = SetId::new(7)).contains("is at home at nothing"));
    assert!(home(&|own| own.map = Some(MapId::new(7))).contains("is at home at nothing"));
    assert!(home(&|own| own.parts += 1).contains("is at home at nothing"));
    assert_eq!(of_mesh(|own| own.over = None), "it runs over no set");
    assert_eq!(of_mesh(|own| own.over = Some(SetId::new(7))), "it runs over a set that is not there");
    let maps = of_mesh(|own| own.mesh.maps.values_mut().for_each(|map| map.to = SetId::new(7)));
    assert_eq!(maps, "the map cells leads nowhere");
}

#[test]
fn writes_are_those_of_their_fields() {
    let how = |store: usize, how: How| of_mesh(|own| own.writes[store].how = how);
    assert!(how(0, How::Add(hops(&[(0, 0)]))).contains("is done with the out field o"));
    assert!(how(2, How::Assign).contains("is done with the inc field r"));
    assert!(how(2, How::Add(Path::default())).contains("where it is not at home"));
    assert!(how(2, How::Add(hops(&[(0, 5)]))).contains("a slot that its map has not"));
    assert_eq!(of_mesh(|own| own.writes[0].part = 2), "part 2 of o is written, which it has not");
    assert_eq!(of_mesh(|own| own.writes[0].part = 1), "part 1 of o is written 2 times");
    let fewer = of_mesh(|own| {
        own.writes.pop();
    });
    assert_eq!(fewer, "5 stores, and 4 writes");
    let all = |own: &mut MeshStencil, keep: usize| {
        own.writes.truncate(keep);
        own.stencil.stores.truncate(keep);
    };
    assert_eq!(of_mesh(|own| all(own, 4)), "reduce field most is stored 0 times");
    assert_eq!(of_mesh(|own| all(own, 1)), "out field o is stored 1 times");
    // Of stages that are computed one after the other each stores its part, and a later one reads what one before it has written.
    let own = lowered(MESH).mesh_stencils.remove(0);
    let mut parts = [own.clone(), own];
    all(&mut parts[0], 2);
    parts[1].writes.drain(..4);
    parts[1].stencil.stores.drain(..4);
    parts[1].stencil.stores[0].body = read(2, Path::default(), 0);
    assert_eq!(Stages(&parts).verify(), Ok(()));
    parts.reverse();
    assert_eq!(Stages(&parts).verify().unwrap_err(), "most: the out field o is read");
}

/// The call of the program, which stands in a loop.
fn call(program: &mut MeshProgram) -> &mut crate::ir::program::Call {
    let in_loop = program.program.actions.iter_mut().find_map(|action| match action {
        Action::Repeat(own) => Some(&mut own.actions),
        _ => None,
    });
    let call = in_loop.unwrap().iter_mut().find_map(|action| match action {
        Action::Call(call) => Some(call),
        _ => None,
    });
    call.unwrap()
}

#[test]
fn calls_fit_their_stencils() {
    let broken = |change: &dyn Fn(&mut crate::ir::program::Call)| of_program(|own| change(call(own)));
    assert_eq!(broken(&|call| call.stencil = 7), "a call is of stencil 7, which is not there");
    assert_eq!(broken(&|call| call.fields.truncate(1)), "a call of s has bindings for other fields or parameters");
    assert_eq!(broken(&|call| call.params.push(None)), "a call of s has bindings for other fields or parameters");
    let binding = |read: Option<usize>, written: Option<usize>| FieldBinding {
        read: read.map(VariableId::new),
        written: written.map(VariableId::new),
    };
    assert_eq!(broken(&|call| call.fields[2] = binding(Some(0), None)), "a call of s takes o for what it is not");
    assert_eq!(broken(&|call| call.fields[0] = binding(None, Some(0))), "a call of s takes q for what it is not");
    assert_eq!(broken(&|call| call.fields[0] = binding(Some(99), None)), "there is no variable 99");
    let other = of_program(|own| own.program.variables.values_mut().for_each(|own| own.stored = Stored::Int));
    assert!(other.contains("is of another kind") || other.contains("is a real"), "{other}");
    let fewer = of_program(|own| own.numbers.push(VariableId::new(0)));
    assert_eq!(fewer, "fields of its numbers stand for no variables");
}

#[test]
fn numbers_of_programs_are_made_of_numbers() {
    let times = |body: Body| {
        of_program(|own| {
            for action in &mut own.program.actions {
                if let Action::Repeat(own) = action {
                    own.times = body.clone();
                }
            }
        })
    };
    assert_eq!(times(only(Node::Real(1.5), Kind::Real)), "a number of repetitions is a real");
    let missing = times(only(Node::Param(ParamId::new(7)), Kind::Int));
    assert_eq!(missing, "a number of repetitions: it uses the parameter 7, which is not there");
}
