//! From text to [`ast`](crate::ast): a pest grammar, and an error message of our own where it does not fit.

mod division;
mod expected;
mod expression;
mod mesh;
mod mistakes;
mod prescan;
mod print;
mod program;
mod test;

use crate::ast::{
    Assign, Block, Constant, Fields, File, Function, Item, Let, Name, Params, PlaceOn, Statement, Stencil, Sweep,
    Target, Trail, Typed,
};
use crate::depth;
use crate::diagnostic::Diagnostic;
use crate::ir::Direction;
use crate::source::{Source, Span};
use pest::Parser as _;
use pest::iterators::Pair;

/// The generated parser. Its items carry no documentation; the grammar file does.
#[allow(missing_docs, reason = "generated from grammar.pest, which documents the rules")]
mod grammar {
    #[derive(pest_derive::Parser)]
    #[grammar = "grammar.pest"]
    pub struct Grammar;
}
use grammar::{Grammar, Rule};
use mesh::{reduce, trail, trail_in};

pub use prescan::LENGTH;

type Node<'a> = Pair<'a, Rule>;

/// The syntax tree of a file.
///
/// # Errors
/// What cannot be parsed, told once: the rest of the file would be guesswork.
pub fn parse(source: &Source) -> Result<File, Diagnostic> {
    depth::on_own_stack(|| parsed(source)).flatten()
}

fn parsed(source: &Source) -> Result<File, Diagnostic> {
    prescan::prescan(&source.text)?;
    let mut pairs = Grammar::parse(Rule::file, &source.text).map_err(|error| expected::diagnose(&error, source))?;
    let file = File { warnings: division::lost_divisions(&source.text), ..File::default() };
    let mut builder = Builder { text: &source.text, file, depths: Vec::new() };
    if let Some(file) = pairs.next() {
        for pair in file.into_inner().filter(|pair| pair.as_rule() == Rule::item) {
            let item = builder.item(pair)?;
            builder.file.items.push(item);
        }
    }
    Ok(builder.file)
}

/// Builds the tree. Recursion follows brackets only, whose nesting the prescan bounds.
struct Builder<'a> {
    text: &'a str,
    file: File,
    /// How deeply each expression is nested.
    depths: Vec<u32>,
}

type Built<T> = Result<T, Diagnostic>;

fn span(pair: &Node) -> Span {
    let text = pair.as_str();
    // A rule that ends in an optional part has trailing blanks in its span.
    Span::new(pair.as_span().start(), pair.as_span().start() + text.trim_end().len())
}

fn name(pair: &Node) -> Name {
    Name { text: pair.as_str().trim_end().to_owned(), span: span(pair) }
}

fn names(pair: Node) -> Vec<Name> {
    pair.into_inner().map(|pair| name(&pair)).collect()
}

/// The construct's first line.
fn headline(pair: &Node) -> Span {
    let start = pair.as_span().start();
    let line = pair.as_str().lines().next().unwrap_or("").trim_end();
    Span::new(start, start + line.len())
}

impl Builder<'_> {
    fn item(&mut self, pair: Node) -> Built<Item> {
        let (mut doc, place) = (String::new(), span(&pair));
        let mut item = None;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::docs => doc = self.docs(&part),
                Rule::stencil => item = Some(Item::Stencil(self.stencil(part, std::mem::take(&mut doc))?)),
                Rule::function => item = Some(Item::Function(self.function(part)?)),
                Rule::constant => item = Some(Item::Constant(self.constant(part)?)),
                Rule::param => item = Some(Item::Param(self.param(part, std::mem::take(&mut doc))?)),
                Rule::test => item = Some(Item::Test(self.test(part)?)),
                Rule::program => item = Some(Item::Program(self.program(part, std::mem::take(&mut doc))?)),
                _ => item = Some(Item::Mesh(self.mesh(part, std::mem::take(&mut doc))?)),
            }
        }
        self.present(item, place)
    }

    /// The documentation of what follows: the last run of `///` lines that no empty line separates from it. What stands
    /// before, at the head of the file, documents the file.
    fn docs(&mut self, pair: &Node) -> String {
        let end = pair.as_span().end();
        let mut runs: Vec<Vec<&str>> = vec![Vec::new()];
        let mut last_end = pair.as_span().start();
        for doc in pair.clone().into_inner() {
            let at = doc.as_span();
            if self.text[last_end..at.start()].contains('\n') {
                runs.push(Vec::new());
            }
            last_end = at.end();
            let line = doc.as_str().trim_start_matches("///").trim_end();
            if let Some(run) = runs.last_mut() {
                run.push(line.strip_prefix(' ').unwrap_or(line));
            }
        }
        if self.text[last_end..end].contains('\n') {
            runs.push(Vec::new());
        }
        let own = runs.pop().unwrap_or_default().join("\n");
        let before = runs.into_iter().map(|run| run.join("\n")).collect::<Vec<_>>().join("\n\n");
        if self.file.items.is_empty() && self.file.doc.is_empty() {
            self.file.doc = before;
        }
        own
    }

    fn stencil(&mut self, pair: Node, doc: String) -> Built<Stencil> {
        let mut stencil = Stencil { doc, name: name(&pair), over: None, statements: Vec::new() };
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::ident => stencil.name = name(&part),
                Rule::over => stencil.over = trail_in(part),
                Rule::body => stencil.statements = self.statements(part)?,
                _ => {}
            }
        }
        Ok(stencil)
    }

    fn statements(&mut self, body: Node) -> Built<Vec<Statement>> {
        let statements = body.into_inner().filter(|part| part.as_rule() == Rule::statement);
        statements.map(|statement| self.statement(statement)).collect()
    }

    fn statement(&mut self, pair: Node) -> Built<Statement> {
        let place = headline(&pair);
        let mut doc = String::new();
        for part in pair.into_inner() {
            return Ok(match part.as_rule() {
                Rule::docs => {
                    doc = self.docs(&part);
                    continue;
                }
                Rule::field => Statement::Field(self.field(part, doc)?),
                Rule::param => Statement::Param(self.param(part, doc)?),
                Rule::constant => Statement::Constant(self.constant(part)?),
                Rule::function => Statement::Function(self.function(part)?),
                Rule::r#let => Statement::Let(self.binding(part)?),
                Rule::print => Statement::Print(self.print(part)?),
                Rule::assign => Statement::Assign(self.assign(part)?),
                Rule::sweep => Statement::Sweep(self.sweep(part)?),
                Rule::repeat => Statement::Repeat(self.repeat(part)?),
                Rule::boundary => Statement::Boundary(self.boundary(part)?),
                _ => Statement::Reduce(reduce(part, doc)),
            });
        }
        Err(Diagnostic::error(place, "this is incomplete").label("a part is missing here"))
    }

    fn sweep(&mut self, pair: Node) -> Built<Sweep> {
        let (axis, direction, span) = (name(&pair), Direction::Up, headline(&pair));
        let mut sweep = Sweep { axis, direction, statements: Vec::new(), span };
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::ident => sweep.axis = name(&part),
                Rule::direction if part.as_str().trim_end() == "down" => sweep.direction = Direction::Down,
                Rule::body => sweep.statements = self.statements(part)?,
                _ => {}
            }
        }
        Ok(sweep)
    }

    fn field(&mut self, pair: Node, doc: String) -> Built<Fields> {
        let mut fields = Fields { doc, role: name(&pair), names: Vec::new(), typed: None, place: None, drawn: None };
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::role => fields.role = name(&part),
                Rule::names => fields.names = names(part),
                Rule::typed => fields.typed = Some(self.typed(part)?),
                Rule::place => fields.place = Some(place(part)),
                Rule::drawn => {
                    let mut ends = part.into_inner().filter(|part| part.as_rule() == Rule::expr);
                    if let (Some(low), Some(high)) = (ends.next(), ends.next()) {
                        fields.drawn = Some((self.expr(low)?, self.expr(high)?));
                    }
                }
                _ => {}
            }
        }
        Ok(fields)
    }

    fn param(&mut self, pair: Node, doc: String) -> Built<Params> {
        let mut params = Params { doc, names: Vec::new(), typed: None, default: None };
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::names => params.names = names(part),
                Rule::typed => params.typed = Some(self.typed(part)?),
                Rule::expr => params.default = Some(self.expr(part)?),
                _ => {}
            }
        }
        Ok(params)
    }

    fn constant(&mut self, pair: Node) -> Built<Constant> {
        let (mut own, mut annotation, mut value) = (name(&pair), None, None);
        let place = span(&pair);
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::ident => own = name(&part),
                Rule::typed => annotation = Some(self.typed(part)?),
                Rule::expr => value = Some(self.expr(part)?),
                _ => {}
            }
        }
        Ok(Constant { name: own, typed: annotation, value: self.present(value, place)? })
    }

    fn function(&mut self, pair: Node) -> Built<Function> {
        let (mut own, mut params, mut body) = (name(&pair), Vec::new(), None);
        let place = span(&pair);
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::ident => own = name(&part),
                Rule::names => params = names(part),
                Rule::block => body = Some(self.block(part)?),
                Rule::expr => body = Some(Block { lets: Vec::new(), value: self.expr(part)? }),
                _ => {}
            }
        }
        Ok(Function { name: own, params, body: self.present(body, place)? })
    }

    fn binding(&mut self, pair: Node) -> Built<Let> {
        let (mut bound, mut value) = (Vec::new(), None);
        let place = span(&pair);
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::names => bound = names(part),
                Rule::expr => value = Some(self.expr(part)?),
                _ => {}
            }
        }
        Ok(Let { names: bound, value: self.present(value, place)? })
    }

    fn assign(&mut self, pair: Node) -> Built<Assign> {
        let (mut targets, mut op, mut value) = (Vec::new(), name(&pair), None);
        let place = span(&pair);
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::target => {
                    let mut parts = part.into_inner();
                    if let Some(field) = parts.next() {
                        let mut index = None;
                        if let Some(own) = parts.next() {
                            let at = span(&own);
                            index = Some((own.into_inner().map(|part| self.expr(part)).collect::<Built<_>>()?, at));
                        }
                        targets.push(Target { name: name(&field), index });
                    }
                }
                Rule::assign_op => op = name(&part),
                Rule::expr => value = Some(self.expr(part)?),
                _ => {}
            }
        }
        Ok(Assign { targets, op, value: self.present(value, place)? })
    }

    fn typed(&mut self, pair: Node) -> Built<Typed> {
        let mut typed = Typed { scalar: name(&pair), parts: None };
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::scalar => typed.scalar = name(&part),
                _ => typed.parts = self.arity(part)?,
            }
        }
        Ok(typed)
    }

    /// What the grammar promises; an error rather than a panic should grammar and builder ever disagree.
    fn present<T>(&self, part: Option<T>, place: Span) -> Built<T> {
        part.ok_or_else(|| Diagnostic::error(place, "this is incomplete").label("a part is missing here"))
    }
}

fn place(pair: Node) -> PlaceOn {
    let whole = span(&pair);
    match pair.clone().into_inner().find(|part| part.as_rule() == Rule::axes) {
        Some(axes) => {
            let at = span(&axes);
            let axis = |pair: Node| Name { text: pair.as_str().split_whitespace().collect(), span: span(&pair) };
            PlaceOn::Axes(axes.into_inner().map(axis).collect(), at)
        }
        None => {
            let mut parts = pair.into_inner();
            let trail = parts.find(|part| part.as_rule() == Rule::path).map(trail);
            let none = parts.find(|part| part.as_rule() == Rule::no_levels);
            let none = none.and_then(|part| part.into_inner().find(|part| part.as_rule() == Rule::ident));
            let nameless = Trail { names: Vec::new(), span: whole };
            PlaceOn::Mesh(trail.unwrap_or(nameless), none.map(|none| name(&none)))
        }
    }
}
