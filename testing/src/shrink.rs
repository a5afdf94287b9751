//! What is smaller than a stencil on a grid: parts of the tree are dropped, or replaced by what they are made of.

use crate::case::Case;
use crate::graph::Graph;
use crate::tree::{Declaration, Expr, Program, Statement};
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::plan::Choices;
use stencilc_compiler::{access, storage};

/// Cases that are one step smaller, the greatest steps first.
pub fn smaller(case: &Case) -> Vec<Case> {
    let programs = case.tree.iter().flat_map(smaller_programs);
    let of = |tree: Program| Case { text: tree.to_string(), tree: Some(tree), ..case.clone() };
    programs.map(of).chain(simpler_cases(case)).collect()
}

/// Whether a strategy works with a storage.
fn suits(access: &str, storage: &str) -> bool {
    let found = access::find(access).ok().zip(storage::find(storage).ok());
    found.is_some_and(|(access, storage)| access.refusal(storage).is_none())
}

/// The same program under simpler choices.
fn simpler_cases(case: &Case) -> Vec<Case> {
    let mut simpler = Vec::new();
    let Grid { ni, nj, nk, .. } = case.grid;
    let grids = match &case.graph {
        Some(graph) => {
            let of = |graph: Graph| (Grid::cells(graph.adjacency().cells(), nk), Some(graph));
            let mut grids = vec![(Grid::rows(graph.ni, graph.nj, nk), None)];
            grids.extend(graph.smaller().into_iter().map(of));
            grids.push((Grid::cells(ni, nk - 1), Some(graph.clone())));
            grids
        }
        None => {
            [[ni - 1, nj, nk], [ni, nj - 1, nk], [ni, nj, nk - 1]].map(|[i, j, k]| (Grid::rows(i, j, k), None)).into()
        }
    };
    let grids = grids.into_iter().filter(|(grid, _)| grid.columns() * grid.nk > 0);
    simpler.extend(grids.map(|(grid, graph)| Case { grid, graph, ..case.clone() }));
    let own = &case.choices;
    let usual = Choices::default();
    let choices = [
        Choices {
            access: if suits(&own.access, &usual.storage) { own.access.clone() } else { usual.access.clone() },
            storage: usual.storage,
            neighbors: usual.neighbors,
            layout: usual.layout.clone(),
            short_last: false,
            constant: false,
            ..own.clone()
        },
        Choices { fastest: usual.fastest, ..own.clone() },
        Choices { neighbors: usual.neighbors, ..own.clone() },
        Choices { layout: usual.layout, ..own.clone() },
        Choices { short_last: false, ..own.clone() },
        Choices { run_width: usual.run_width, ..own.clone() },
        Choices { fields: usual.fields, ..own.clone() },
        Choices { constant: false, ..own.clone() },
        Choices { access: usual.access, ..own.clone() },
        Choices { block: usual.block, ..own.clone() },
        Choices { knobs: usual.knobs, ..own.clone() },
        Choices { wide: usual.wide, ..own.clone() },
        Choices { contract: usual.contract, ..own.clone() },
        Choices { precision: Precision::F64, ..own.clone() },
    ];
    simpler.extend(choices.into_iter().filter(|new| new != own).map(|choices| Case { choices, ..case.clone() }));
    for name in case.settings.keys() {
        let mut settings = case.settings.clone();
        settings.remove(name);
        simpler.push(Case { settings, ..case.clone() });
    }
    simpler
}

/// Programs that are one step smaller, the greatest steps first.
fn smaller_programs(program: &Program) -> Vec<Program> {
    let mut smaller = Vec::new();
    for index in (0..program.statements.len()).rev() {
        let mut own = program.clone();
        let removed = own.statements.remove(index);
        // An output goes with its assignment.
        if let Statement::Assign(name, _) = &removed {
            own.statements.retain_mut(|statement| match statement {
                Statement::Field { role: role @ ("out" | "inout"), names, .. } if names.contains(name) => {
                    *role = "in";
                    true
                }
                Statement::Field { .. } | Statement::Declare(_) | Statement::Let(..) | Statement::Assign(..) => true,
                Statement::SumsByLevel | Statement::Within(..) => true,
            });
        }
        smaller.push(own);
    }
    for index in (0..program.items.len()).rev() {
        let mut own = program.clone();
        own.items.remove(index);
        smaller.push(own);
    }
    for index in 0..program.statements.len() {
        for plainer in plainer_statements(&program.statements[index]) {
            let mut own = program.clone();
            own.statements[index] = plainer;
            smaller.push(own);
        }
    }
    let fields: Vec<&String> = program
        .statements
        .iter()
        .filter_map(|statement| match statement {
            Statement::Field { role: "in" | "inout", names, .. } => names.first(),
            Statement::Field { .. } | Statement::Declare(_) | Statement::Let(..) | Statement::Assign(..) => None,
            Statement::SumsByLevel | Statement::Within(..) => None,
        })
        .take(2)
        .collect();
    for index in 0..program.size() {
        let mut replacements = Vec::new();
        at(&mut program.clone(), index, |expr| replacements = smaller_expressions(expr, &fields));
        for replacement in replacements {
            let mut own = program.clone();
            at(&mut own, index, |expr| *expr = replacement);
            smaller.push(own);
        }
    }
    // A list of fields taken apart is no smaller, but its fields can go one by one.
    for (index, statement) in program.statements.iter().enumerate() {
        if let Statement::Field { role, names, typed, place, range } = statement
            && names.len() > 1
        {
            let mut own = program.clone();
            let field = |name: &String| Statement::Field {
                role,
                names: vec![name.clone()],
                typed: *typed,
                place: *place,
                range: range.clone(),
            };
            own.statements.splice(index..=index, names.iter().map(field));
            smaller.push(own);
        }
    }
    smaller
}

/// Calls `change` with expression number `index`.
fn at(program: &mut Program, index: usize, change: impl FnOnce(&mut Expr)) {
    let (mut number, mut change) = (0, Some(change));
    program.each_expression(&mut |expr| {
        let found = number == index;
        number += 1;
        if let (true, Some(change)) = (found, change.take_if(|_| found)) {
            change(expr);
        }
        found
    });
}

fn plainer_statements(statement: &Statement) -> Vec<Statement> {
    match statement {
        Statement::SumsByLevel | Statement::Within(..) => Vec::new(),
        Statement::Field { role, names, typed, place, range } => {
            let mut plainer = Vec::new();
            let field = |names: &[String], typed, place, range: &Option<(Expr, Expr)>| Statement::Field {
                role,
                names: names.to_vec(),
                typed,
                place,
                range: range.clone(),
            };
            if names.len() > 1 {
                plainer.push(field(&names[..1], *typed, *place, range));
                plainer.push(field(&names[1..], *typed, *place, range));
            }
            if typed.is_some() {
                plainer.push(field(names, None, *place, range));
            }
            if place.is_some() {
                plainer.push(field(names, *typed, None, range));
            }
            if range.is_some() {
                plainer.push(field(names, *typed, *place, &None));
            }
            plainer
        }
        Statement::Declare(Declaration::Function { name, params, body }) if !body.lets.is_empty() => {
            (0..body.lets.len())
                .map(|index| {
                    let (name, params, mut body) = (name.clone(), params.clone(), body.clone());
                    body.lets.remove(index);
                    Statement::Declare(Declaration::Function { name, params, body })
                })
                .collect()
        }
        Statement::Declare(_) | Statement::Let(..) | Statement::Assign(..) => Vec::new(),
    }
}

/// What may stand for an expression and is smaller.
fn smaller_expressions(expr: &mut Expr, fields: &[&String]) -> Vec<Expr> {
    let mut smaller: Vec<Expr> = expr.children_mut().into_iter().map(|child| child.clone()).collect();
    if !matches!(expr, Expr::Literal(_) | Expr::Name(_)) {
        smaller.extend(fields.iter().map(|name| Expr::name(name)));
    }
    match &*expr {
        Expr::Choose(arms, otherwise) if arms.len() > 1 => {
            for index in 0..arms.len() {
                let mut rest = arms.clone();
                rest.remove(index);
                smaller.push(Expr::Choose(rest, otherwise.clone()));
            }
        }
        Expr::Offset(base, axes) if axes.len() > 1 => {
            for index in 0..axes.len() {
                let mut rest = axes.clone();
                rest.remove(index);
                smaller.push(Expr::Offset(base.clone(), rest));
            }
        }
        Expr::Fold(op, binders, block) => {
            for index in 0..binders.len() {
                let mut shorter = binders.clone();
                if shorter[index].1 != shorter[index].2 {
                    shorter[index].2 = shorter[index].1.clone();
                    smaller.push(Expr::Fold(op, shorter, block.clone()));
                }
            }
        }
        Expr::Call(name, arguments) if (name == "min" || name == "max") && arguments.len() > 2 => {
            smaller.push(Expr::Call(name.clone(), arguments[..2].to_vec()));
        }
        Expr::Choose(..)
        | Expr::Offset(..)
        | Expr::Call(..)
        | Expr::Literal(_)
        | Expr::Name(_)
        | Expr::Prefix(..)
        | Expr::Infix(..)
        | Expr::Part(..)
        | Expr::Component(..)
        | Expr::Vector(_)
        | Expr::Group(_)
        | Expr::Block(_) => {}
    }
    if !matches!(expr, Expr::Literal(_)) {
        smaller.extend(["1.0", "1", "true"].map(Expr::literal));
    }
    smaller
}
