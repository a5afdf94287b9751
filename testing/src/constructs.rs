//! Which constructs of the language a program holds: so that none is left out unseen.

use std::collections::BTreeMap;
use stencilc_compiler::ast::{
    Block, Constant, Expr, ExprId, Fields, File, Function, Infix, Item, Params, PlaceOn, Prefix, Range, Statement,
    Typed,
};
use stencilc_compiler::ir::program::GridAxis;

/// How often each construct was met, by its name.
#[derive(Debug, Default)]
pub struct Constructs {
    /// The counts.
    pub counts: BTreeMap<String, usize>,
}

impl Constructs {
    fn meet(&mut self, name: impl Into<String>) {
        *self.counts.entry(name.into()).or_insert(0) += 1;
    }

    /// Counts what a file holds.
    pub fn add(&mut self, file: &File) {
        for item in &file.items {
            match item {
                Item::Constant(constant) => self.constant(file, constant, "file"),
                Item::Function(function) => self.function(file, function, "file"),
                Item::Param(params) => self.params(file, params, "file"),
                Item::Stencil(stencil) => {
                    stencil.statements.iter().for_each(|statement| self.statement(file, statement))
                }
                Item::Program(program) => {
                    self.meet("program");
                    program.statements.iter().for_each(|statement| self.statement(file, statement));
                }
                Item::Test(_) => self.meet("test"),
                Item::Mesh(_) => self.meet("mesh"),
                Item::Type(own) => self.meet(format!("type: {}", own.stored.name())),
                // What is imported stands among the items.
                Item::Import(_) => {}
            }
        }
    }

    fn statement(&mut self, file: &File, statement: &Statement) {
        match statement {
            Statement::Field(fields) => self.fields(file, fields),
            Statement::Param(params) => self.params(file, params, "stencil"),
            Statement::Constant(constant) => self.constant(file, constant, "stencil"),
            Statement::Function(function) => self.function(file, function, "stencil"),
            Statement::Let(binding) => {
                self.meet("let");
                if let Some(typed) = &binding.typed {
                    self.meet(format!("let: {}", typed.stored.name()));
                }
                self.expr(file, binding.value);
            }
            Statement::Print(print) => {
                self.meet("print");
                self.expr(file, print.value);
            }
            Statement::Assign(assign) => self.expr(file, assign.value),
            Statement::Sweep(sweep) => {
                self.meet(format!("sweep k {}", sweep.direction.name()));
                sweep.statements.iter().for_each(|statement| self.statement(file, statement));
            }
            Statement::Repeat(repeat) => {
                self.meet("repeat");
                self.expr(file, repeat.times);
                repeat.statements.iter().for_each(|statement| self.statement(file, statement));
            }
            Statement::Boundary(boundary) => {
                boundary.rules.iter().for_each(|rule| self.meet(format!("boundary: {}", rule.kind.text)));
            }
            Statement::Reduce(_) => self.meet("reduce"),
            Statement::SumsByLevel(_) => self.meet("sums by level"),
            Statement::Zones(_) => self.meet("zones"),
            Statement::Within(within) => {
                self.meet(match (within.axis, within.end) {
                    (GridAxis::K, Some(_)) => "levels",
                    (GridAxis::K, None) => "level",
                    (GridAxis::I, _) => "part of i",
                    (GridAxis::J, _) => "part of j",
                });
                self.expr(file, within.first);
                within.end.into_iter().for_each(|end| self.expr(file, end));
            }
        }
    }

    fn fields(&mut self, file: &File, fields: &Fields) {
        self.meet(fields.role.text.as_str());
        self.meet(format!("field: {}", scalar(fields.typed.as_ref())));
        if fields.names.len() > 1 {
            self.meet("fields in a list");
        }
        match &fields.place {
            None => self.meet("on everything"),
            Some(PlaceOn::Mesh(..)) => self.meet("on a mesh"),
            Some(PlaceOn::Axes(axes, _)) => {
                let axes: Vec<&str> = axes.iter().map(|axis| axis.text.as_str()).collect();
                self.meet(format!("on ({})", axes.join(", ")));
            }
        }
        if let Some((low, high)) = fields.drawn {
            self.meet("range");
            self.expr(file, low);
            self.expr(file, high);
        }
    }

    fn params(&mut self, file: &File, params: &Params, level: &str) {
        self.meet(format!("param of the {level}"));
        self.meet(format!("param: {}", scalar(params.typed.as_ref())));
        self.meet(if params.default.is_some() { "param with a default" } else { "param without a default" });
        params.default.into_iter().for_each(|default| self.expr(file, default));
    }

    fn constant(&mut self, file: &File, constant: &Constant, level: &str) {
        self.meet(format!("const of the {level}"));
        self.meet(format!("const: {}", scalar(constant.typed.as_ref())));
        self.expr(file, constant.value);
    }

    fn function(&mut self, file: &File, function: &Function, level: &str) {
        self.meet(format!("fn of the {level}"));
        self.block(file, &function.body);
    }

    fn block(&mut self, file: &File, block: &Block) {
        for binding in &block.lets {
            self.meet("let in a block");
            self.expr(file, binding.value);
        }
        self.expr(file, block.value);
    }

    fn expr(&mut self, file: &File, expr: ExprId) {
        match &file.exprs[expr] {
            Expr::Real(_) => self.meet("real number"),
            Expr::Int(_) => self.meet("whole number"),
            Expr::Truth(_) => self.meet("truth value"),
            Expr::Name(name) if ["k", "nk", "ni", "nj", "pi"].contains(&name.as_str()) => self.meet(name.as_str()),
            Expr::Name(_) => self.meet("name"),
            Expr::Prefix(op, inner) => {
                self.meet(if *op == Prefix::Negate { "-a" } else { "!a" });
                self.expr(file, *inner);
            }
            Expr::Infix(op, left, right) => {
                match op {
                    Infix::Or => self.meet("||"),
                    Infix::And => self.meet("&&"),
                    Infix::Compare(relation) => self.meet(relation.name()),
                    Infix::Arithmetic(op) => self.meet(op.name()),
                    Infix::Power if matches!(file.exprs[*right], Expr::Prefix(..)) => self.meet("** of a negative"),
                    Infix::Power => self.meet("**"),
                }
                self.expr(file, *left);
                self.expr(file, *right);
            }
            Expr::Index(base, parts) => {
                for &part in parts {
                    self.index(file, part);
                }
                self.expr(file, *base);
            }
            Expr::Component(base, _) => {
                self.meet("v.0");
                self.expr(file, *base);
            }
            Expr::Call(name, arguments) => {
                let own = file.items.iter().any(|item| match item {
                    Item::Function(function) => function.name.text == name.text,
                    Item::Stencil(stencil) => stencil.statements.iter().any(|statement| match statement {
                        Statement::Function(function) => function.name.text == name.text,
                        Statement::Field(_)
                        | Statement::Param(_)
                        | Statement::Constant(_)
                        | Statement::Let(_)
                        | Statement::Print(_)
                        | Statement::Assign(_)
                        | Statement::Sweep(_)
                        | Statement::Repeat(_)
                        | Statement::Boundary(_)
                        | Statement::Reduce(_)
                        | Statement::Within(_)
                        | Statement::Zones(_)
                        | Statement::SumsByLevel(_) => false,
                    }),
                    Item::Constant(_)
                    | Item::Param(_)
                    | Item::Program(_)
                    | Item::Test(_)
                    | Item::Mesh(_)
                    | Item::Import(_)
                    | Item::Type(_) => false,
                });
                self.meet(if own { "call of a function".to_owned() } else { format!("{}(...)", name.text) });
                arguments.iter().for_each(|argument| self.expr(file, argument.value));
            }
            Expr::Choose(arms, otherwise) => {
                self.meet(if arms.len() > 1 { "else if" } else { "if" });
                for (condition, block) in arms {
                    self.expr(file, *condition);
                    self.block(file, block);
                }
                self.block(file, otherwise);
            }
            Expr::Fold(op, binders, block) => {
                self.meet(format!(
                    "{} of {}",
                    op.text,
                    if binders.len() > 1 { "several counters" } else { "a counter" }
                ));
                for binder in binders {
                    match binder.range {
                        Range::Numbers(low, high) => {
                            self.expr(file, low);
                            self.expr(file, high);
                        }
                        Range::Map(_) => self.meet("sum over a map"),
                    }
                }
                self.block(file, block);
            }
            Expr::Vector(parts) => {
                self.meet("vector");
                parts.iter().for_each(|&part| self.expr(file, part));
            }
            Expr::Group(inner) | Expr::Level(inner) => self.expr(file, *inner),
            Expr::Block(block) => {
                self.meet("block");
                self.block(file, block);
            }
        }
    }

    /// What stands in brackets: an axis and what is added, or the number of a part.
    fn index(&mut self, file: &File, part: ExprId) {
        if let Expr::Level(number) = &file.exprs[part] {
            self.meet("a[level n]");
            return self.expr(file, *number);
        }
        let mut first = part;
        let (mut by_name, mut is_moved) = (false, false);
        while let Expr::Infix(Infix::Arithmetic(_), left, right) = &file.exprs[first] {
            by_name |= matches!(file.exprs[*right], Expr::Name(_));
            is_moved |= matches!(file.exprs[*right], Expr::Index(..));
            first = *left;
        }
        match &file.exprs[first] {
            Expr::Name(axis) if ["i", "j", "k"].contains(&axis.as_str()) => {
                self.meet(format!("a[{axis}+1]"));
                if by_name {
                    self.meet("a[i+n]");
                }
                if is_moved {
                    self.meet("a[k+n[i+1]]");
                }
            }
            _ => {
                self.meet("v[n]");
                self.expr(file, part);
            }
        }
    }
}

fn scalar(typed: Option<&Typed>) -> &str {
    typed.map_or("not said", |typed| typed.stored.name())
}
