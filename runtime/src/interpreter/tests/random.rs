//! Random stencils.

use super::*;

/// A path of a few steps, along the axes that there are.
fn random_path(random: &mut Random, place: Place) -> Path {
    let levels = if place.levels == Levels::None { 0 } else { random.pick(&[0, 0, 0, -1, 1]) };
    let mut path = Path::levels_only(levels);
    for _ in 0..if place.horizontal { random.below(3) } else { 0 } {
        let (i, j) = random.pick(&[(1, 0), (-1, 0), (0, 1), (0, -1)]);
        path = path.then(&Path::from_offset(Offset { i, j, k: 0 }));
    }
    path
}

/// A random body: nodes on earlier nodes of fitting kinds.
fn random_body(random: &mut Random, s: &Stencil) -> Body {
    use Kind::{Bool, Int, Real};
    let mut w = Writer::default();
    w.real(random.real());
    w.add(Node::Int(random.below(5) as i32 - 1), Int);
    w.add(Node::Bool(random.below(2) == 0), Bool);
    let mut uses = 0;
    for _ in 0..6 + random.below(14) {
        // Recent nodes, so that much of the body counts.
        let of = |random: &mut Random, kind: Kind| {
            let all: Vec<NodeId> = w.0.iter().map(|(id, _)| id).filter(|&id| w.0.kind_of(id) == kind).collect();
            all[all.len() - 1 - random.below(all.len().min(3))]
        };
        let (kind, number) = (random.pick(&[Real, Int, Bool]), random.pick(&[Real, Int]));
        let (a, b) = (of(random, kind), of(random, kind));
        let (x, y) = (of(random, number), of(random, number));
        let (r, n, c, d) = (of(random, Real), of(random, Int), of(random, Bool), of(random, Bool));
        let relations = [Relation::Lt, Relation::Le, Relation::Gt, Relation::Ge, Relation::Eq, Relation::Ne];
        let (node, kind) = match random.below(16) {
            0 => [
                (Node::Level, Int),
                (Node::Count(GridAxis::K), Int),
                (Node::Param(ParamId::new(0)), Real),
                (Node::Param(ParamId::new(1)), Int),
                (Node::Param(ParamId::new(2)), Bool),
            ][random.below(5)]
            .clone(),
            1 | 2 => {
                let inputs: Vec<FieldId> = s.fields.handles().collect();
                let field = random.pick(&inputs);
                let Field { place, stored, .. } = s.fields[field];
                (Node::Read { field, path: random_path(random, place), part: 0, by: None }, stored.kind())
            }
            3 | 4 if !s.defs.is_empty() && uses < 2 => {
                uses += 1;
                let def = DefId::new(random.below(s.defs.len()));
                (Node::Use { def, path: random_path(random, Place::CELLS) }, s.defs[def].body.kind())
            }
            3..=5 => (Node::Compare(random.pick(&relations), a, b), Bool),
            6 => [(Node::ToReal(n), Real), (Node::ToSingle(r), Real), (Node::Not(c), Bool)][random.below(3)].clone(),
            7 => (Node::Negate(x), number),
            8 => [(Node::And(c, d), Bool), (Node::Or(c, d), Bool)][random.below(2)].clone(),
            9 | 10 => (Node::Choose { condition: c, yes: a, no: b }, kind),
            11 => (Node::Call(Function::Fma, vec![r, r, r]), Real),
            12 if number == Int => {
                let function = random.pick(&[Function::Min, Function::Max, Function::Abs, Function::Sign]);
                let operands = if matches!(function, Function::Min | Function::Max) { vec![x, y] } else { vec![x] };
                (Node::Call(function, operands), Int)
            }
            12 => {
                let binary = [Function::Min, Function::Max, Function::CopySign, Function::Pow, Function::Atan2];
                let function = random.pick(&binary);
                (Node::Call(function, vec![x, y]), Real)
            }
            13 => {
                let exact = [Function::Abs, Function::Sqrt, Function::Floor, Function::Ceil, Function::Sign];
                let own = [Function::Exp, Function::Log, Function::Sin, Function::Cos, Function::Tan];
                let others = [Function::Atan, Function::Tanh, Function::Cbrt];
                (Node::Call(random.pick(&[&exact[..], &own, &others].concat()), vec![r]), Real)
            }
            14 if number == Real => (Node::Binary(Binary::Div, x, y), Real),
            _ => (Node::Binary(random.pick(&[Binary::Add, Binary::Sub, Binary::Mul, Binary::Rem]), x, y), number),
        };
        w.add(node, kind);
    }
    w.0
}

#[test]
fn random_stencils_mean_what_the_ir_says() {
    let (mut computed, mut on_cells) = (0, 0);
    for seed in 1..400 {
        let mut random = Random(seed);
        let mut s = Stencil::default();
        for kind in [Kind::Real, Kind::Int, Kind::Bool] {
            s.params.add(param(kind));
        }
        for _ in 0..5 {
            let place = Place {
                horizontal: random.below(4) > 0,
                levels: random.pick(&[Levels::Full, Levels::Full, Levels::Interfaces, Levels::None]),
                home: None,
            };
            let stored = random.pick(&[Stored::Real, Stored::F32, Stored::F64, Stored::Int, Stored::Bool]);
            field(&mut s, Role::In, place, stored);
        }
        for _ in 0..random.below(6) {
            let body = random_body(&mut random, &s);
            s.defs.add(Def { name: String::new(), origin: Origin::Let, over: None, body });
        }
        let bodies = [(); 2].map(|()| random_body(&mut random, &s));
        for body in bodies {
            let stored = match body.kind() {
                Kind::Real => random.pick(&[Stored::F32, Stored::F64, Stored::Real]),
                Kind::Int => Stored::Int,
                Kind::Bool => Stored::Bool,
            };
            let field = field(&mut s, Role::Out, Place::CELLS, stored);
            s.stores.push(Store { field, body, sweep: None });
        }
        let precision = random.pick(&[Precision::F32, Precision::F64]);
        let params = [Value::Real(random.real()), Value::Int(random.below(5) as i32), Value::Bool(seed % 2 == 0)];
        computed += usize::from(same(&s, precision, Grid::rows(21, 20, 5), &params, seed));
        let adjacency = if seed % 4 == 0 { plane(11, 9) } else { anywhere(&mut random, 90, 9) };
        let grid = Grid::cells(adjacency.cells(), 5);
        on_cells += usize::from(same_on(&s, precision, grid, Some(&adjacency), &params, seed));
    }
    assert!(computed > 100 && on_cells > 100, "only {computed} and {on_cells} of the stencils have a region");
}
