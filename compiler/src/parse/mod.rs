//! From text to [`ast`](crate::ast): a pest grammar, and an error message of our own where it does not fit.

mod division;
mod expected;
mod expression;
mod mesh;
mod mistakes;
mod prescan;
mod print;
mod program;
mod rest;
mod test;

use crate::ast::{
    Along, Assign, Block, Constant, ExprId, Fields, File, Function, Item, Let, Name, Params, PlaceOn, Reduce,
    Statement, Stencil, Sweep, Target, Trail, TypeName, Typed, Where, Within, Zones,
};
use crate::depth;
use crate::diagnostic::{Diagnostic, guess, wrong};
use crate::ir::program::GridAxis;
use crate::ir::{Direction, Stored};
use crate::source::{Imports, Source, Span};
use crate::text::FreeText;
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
    let files: Vec<_> = source.files().collect();
    for own in &files {
        let text = &source.text[own.clone()];
        prescan::prescan(text).map_err(|told| told.moved(own.start))?;
        if files.len() > 1 {
            // What one file leaves open is not closed by another.
            grammatical(text).map_err(|told| told.moved(own.start))?;
        }
    }
    if let Imports::Failed(told) = &source.imports {
        return Err((**told).clone());
    }
    let mut pairs = grammatical(&source.text)?;
    let own = files.first().map_or("", |own| &source.text[own.clone()]);
    let imported_from = source.imported_from();
    let (given_types, names_single) = (source.types.clone(), source.text.contains(Stored::F32.name()));
    let file =
        File { warnings: division::lost_divisions(own), imported_from, given_types, names_single, ..File::default() };
    let mut builder = Builder { text: &source.text, file, depths: Vec::new(), rests: rest::Rests::default() };
    let items: Vec<Node> = pairs.next().iter().flat_map(|file| parts(file, Rule::item)).collect();
    // A type may be used above its line.
    for own in items.iter().filter_map(|item| part(item, Rule::type_name)) {
        let TypeName { name, stored } = type_name(&own)?;
        builder.file.types.entry(name.text).or_insert(stored);
    }
    for pair in items {
        let is_own = imported_from.is_none_or(|from| pair.as_span().start() < from as usize);
        if is_own || !is_for_itself(&pair) {
            let item = builder.item(pair)?;
            builder.file.items.push(item);
        }
    }
    if let (Imports::Unread, Some(place)) = (&source.imports, builder.file.imports().next().map(|path| path.span)) {
        let found = Diagnostic::error(place, "this text stands by itself: nobody reads what it imports");
        return Err(found.label("not read").help("give its path, so that it is known which file is meant"));
    }
    builder.write_out_rests()?;
    Ok(builder.file)
}

fn grammatical(text: &str) -> Result<pest::iterators::Pairs<'_, Rule>, Diagnostic> {
    Grammar::parse(Rule::file, text).map_err(|error| expected::diagnose(&error, text))
}

/// Whether something of a file is no use to others: its programs, and its tests.
fn is_for_itself(item: &Node) -> bool {
    item.clone().into_inner().any(|own| matches!(own.as_rule(), Rule::program | Rule::test))
}

/// The names that a text has for types, and where it says what each is; nothing if it cannot be parsed.
pub(crate) fn types(text: &str) -> Option<Vec<(String, Span)>> {
    let found = depth::on_own_stack(|| {
        prescan::prescan(text).ok()?;
        let file = grammatical(text).ok()?.next()?;
        let items = parts(&file, Rule::item).filter_map(|item| part(&item, Rule::type_name));
        let own = items.filter_map(|own| Some((word(&own, Rule::ident).ok()?, word(&own, Rule::scalar).ok()?)));
        Some(own.map(|(name, scalar)| (name.text, scalar.span)).collect())
    });
    found.ok().flatten()
}

/// The paths that a text imports, and where they are written; none if it cannot be parsed.
pub(crate) fn imports(text: &str) -> Vec<(String, Span)> {
    let found = depth::on_own_stack(|| {
        prescan::prescan(text).ok()?;
        let file = grammatical(text).ok()?.next()?;
        let items = parts(&file, Rule::item).flat_map(Node::into_inner);
        let own = items.filter(|own| own.as_rule() == Rule::import).filter_map(|own| path(&own).ok());
        Some(own.map(|path| (path.text, path.span)).collect())
    });
    found.ok().flatten().unwrap_or_default()
}

/// What `import` names.
fn path(pair: &Node) -> Built<Name> {
    let text = quoted(pair).unwrap_or_default().trim().to_owned();
    Ok(Name { text, span: span(&present(part(pair, Rule::string), span(pair))?) })
}

/// Builds the tree. Recursion follows brackets only, whose nesting the prescan bounds.
struct Builder<'a> {
    text: &'a str,
    file: File,
    /// How deeply each expression is nested.
    depths: Vec<u32>,
    rests: rest::Rests,
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

/// The construct's first line.
fn headline(pair: &Node) -> Span {
    let start = pair.as_span().start();
    let line = pair.as_str().lines().next().unwrap_or("").trim_end();
    Span::new(start, start + line.len())
}

/// The parts of a construct that are of a kind.
fn parts<'a>(pair: &Node<'a>, rule: Rule) -> impl Iterator<Item = Node<'a>> {
    pair.clone().into_inner().filter(move |part| part.as_rule() == rule)
}

/// The first part of a construct that is of a kind.
fn part<'a>(pair: &Node<'a>, rule: Rule) -> Option<Node<'a>> {
    parts(pair, rule).next()
}

/// What the grammar promises; an error rather than a panic should grammar and builder ever disagree.
fn present<T>(part: Option<T>, place: Span) -> Built<T> {
    part.ok_or_else(|| Diagnostic::error(place, "this is incomplete").label("a part is missing here"))
}

/// The word of a kind in a construct, such as its name.
fn word(pair: &Node, rule: Rule) -> Built<Name> {
    present(part(pair, rule), span(pair)).map(|own| name(&own))
}

/// The names that a construct lists.
fn names(pair: &Node) -> Vec<Name> {
    part(pair, Rule::names).iter().flat_map(|own| parts(own, Rule::ident)).map(|own| name(&own)).collect()
}

/// `cells.1.edges` in a construct.
fn way(pair: &Node) -> Option<Trail> {
    let own = part(pair, Rule::way)?;
    Some(Trail { names: own.clone().into_inner().map(|own| name(&own)).collect(), span: span(&own) })
}

/// `airfoil.edge` in a construct.
fn trail(pair: &Node) -> Option<Trail> {
    let own = part(pair, Rule::path)?;
    Some(Trail { names: parts(&own, Rule::ident).map(|own| name(&own)).collect(), span: span(&own) })
}

/// What stands between the quotes of a construct.
fn quoted<'a>(pair: &Node<'a>) -> Option<&'a str> {
    part(&part(pair, Rule::string)?, Rule::text).map(|text| text.as_str())
}

impl Builder<'_> {
    /// A construct with its documentation before it.
    fn documented<'a>(&mut self, pair: Node<'a>) -> Built<(String, Node<'a>)> {
        let place = headline(&pair);
        let mut parts = pair.into_inner();
        let docs = present(parts.next(), place)?;
        Ok((self.docs(&docs), present(parts.next(), place)?))
    }

    fn item(&mut self, pair: Node) -> Built<Item> {
        let (doc, own) = self.documented(pair)?;
        Ok(match own.as_rule() {
            Rule::import => Item::Import(path(&own)?),
            Rule::stencil => Item::Stencil(self.stencil(&own, doc)?),
            Rule::function => Item::Function(self.function(&own)?),
            Rule::constant => Item::Constant(self.constant(&own)?),
            Rule::param => Item::Param(self.param(&own, doc)?),
            Rule::test => Item::Test(self.test(&own)?),
            Rule::program => Item::Program(self.stencil(&own, doc)?),
            Rule::type_name => Item::Type(type_name(&own)?),
            _ => Item::Mesh(self.mesh(&own, doc)?),
        })
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

    /// A stencil or a program.
    fn stencil(&mut self, pair: &Node, doc: String) -> Built<Stencil> {
        let over = part(pair, Rule::over).and_then(|own| trail(&own));
        Ok(Stencil { doc, name: word(pair, Rule::ident)?, over, statements: self.body(pair)? })
    }

    /// The statements between the braces of a construct.
    fn body(&mut self, pair: &Node) -> Built<Vec<Statement>> {
        let body = present(part(pair, Rule::body), span(pair))?;
        parts(&body, Rule::statement).map(|own| self.statement(own)).collect()
    }

    fn statement(&mut self, pair: Node) -> Built<Statement> {
        let place = part(&pair, Rule::somewhere);
        let (doc, own) = self.documented(pair)?;
        let statement = self.bare_statement(&own, doc)?;
        if let Some(place) = place {
            self.place(&statement, &place)?;
        }
        Ok(statement)
    }

    /// Keeps where a call is computed.
    fn place(&mut self, statement: &Statement, pair: &Node) -> Built<()> {
        let at = span(pair);
        let (Statement::Let(Let { value, .. }) | Statement::Assign(Assign { value, .. })) = statement else {
            return Ok(());
        };
        let mut place = Where { zones: Vec::new(), within: Vec::new(), span: at };
        for own in parts(pair, Rule::where_part) {
            match part(&own, Rule::within) {
                None => place.zones.push(word(&own, Rule::ident)?),
                Some(within) => {
                    let within = self.within(&within)?;
                    if let Some(before) = place.within.iter().find(|before| before.axis == within.axis) {
                        let message = match within.axis {
                            GridAxis::I | GridAxis::J => format!("the part of `{}` is said twice", within.axis),
                            GridAxis::K => "levels are said twice".to_owned(),
                        };
                        return Err(wrong(within.span, message, "again here").note(before.span, "first here"));
                    }
                    place.within.push(within);
                }
            }
        }
        self.file.wheres.insert(*value, place);
        Ok(())
    }

    fn bare_statement(&mut self, own: &Node, doc: String) -> Built<Statement> {
        Ok(match own.as_rule() {
            Rule::field => Statement::Field(self.field(own, doc)?),
            Rule::param => Statement::Param(self.param(own, doc)?),
            Rule::constant => Statement::Constant(self.constant(own)?),
            Rule::function => Statement::Function(self.function(own)?),
            Rule::r#let => Statement::Let(self.binding(own)?),
            Rule::print => Statement::Print(self.print(own)?),
            Rule::assign => Statement::Assign(self.assign(own)?),
            Rule::sweep => Statement::Sweep(self.sweep(own)?),
            Rule::repeat => Statement::Repeat(self.repeat(own)?),
            Rule::boundary => Statement::Boundary(self.boundary(own)?),
            Rule::by_level => Statement::SumsByLevel(headline(own)),
            Rule::within => Statement::Within(self.within(own)?),
            Rule::in_zones => Statement::Zones(Zones { names: names(own), span: headline(own) }),
            _ => {
                Statement::Reduce(Reduce { doc, names: names(own), op: word(own, Rule::fold_op)?, span: headline(own) })
            }
        })
    }

    fn within(&mut self, pair: &Node) -> Built<Within> {
        let axis = match part(pair, Rule::on_axis) {
            None => GridAxis::K,
            Some(own) if own.as_str() == "k" => {
                let found =
                    wrong(span(&own), "the part of `k` is said as levels", "one says `levels 1..nk`, or `level 0`");
                return Err(found.help("`i` and `j` are said by themselves: `i 0..3, levels 1..nk`"));
            }
            Some(own) if own.as_str() == "i" => GridAxis::I,
            Some(_) => GridAxis::J,
        };
        let bounds = self.values(pair)?;
        let first = present(bounds.first().copied(), span(pair))?;
        let (end, text) = (bounds.get(1).copied(), FreeText::new(pair.as_str()));
        Ok(Within { axis, first, end, span: headline(pair), text })
    }

    fn sweep(&mut self, pair: &Node) -> Built<Sweep> {
        let is_down = word(pair, Rule::direction)?.text == "down";
        Ok(Sweep {
            axis: word(pair, Rule::ident)?,
            direction: if is_down { Direction::Down } else { Direction::Up },
            statements: self.body(pair)?,
            span: headline(pair),
        })
    }

    fn field(&mut self, pair: &Node, doc: String) -> Built<Fields> {
        Ok(Fields {
            doc,
            role: word(pair, Rule::role)?,
            original: part(pair, Rule::original).map(|own| name(&own)),
            names: names(pair),
            typed: self.typed(pair)?,
            place: part(pair, Rule::place).map(|own| place(&own)),
            drawn: part(pair, Rule::drawn).map(|own| self.ends(&own)).transpose()?,
        })
    }

    fn param(&mut self, pair: &Node, doc: String) -> Built<Params> {
        Ok(Params { doc, names: names(pair), typed: self.typed(pair)?, default: self.optional(pair)? })
    }

    fn constant(&mut self, pair: &Node) -> Built<Constant> {
        Ok(Constant { name: word(pair, Rule::ident)?, typed: self.typed(pair)?, value: self.value(pair)? })
    }

    fn function(&mut self, pair: &Node) -> Built<Function> {
        let body = match part(pair, Rule::block) {
            Some(block) => self.block(&block)?,
            None => Block { lets: Vec::new(), value: self.value(pair)? },
        };
        Ok(Function { name: word(pair, Rule::ident)?, params: names(pair), body })
    }

    fn binding(&mut self, pair: &Node) -> Built<Let> {
        Ok(Let {
            names: names(pair),
            typed: self.typed(pair)?,
            place: part(pair, Rule::place).map(|own| place(&own)),
            value: self.value(pair)?,
        })
    }

    fn assign(&mut self, pair: &Node) -> Built<Assign> {
        let rest = parts(pair, Rule::target).find_map(|own| part(&own, Rule::rest));
        if let Some(rest) = rest {
            let value = self.value(pair)?;
            if parts(pair, Rule::target).count() > 1 {
                return Err(rest::misplaced(span(&rest), "`..` takes all results, and stands alone"));
            }
            self.rests.assigned.insert(value, span(&rest));
            return Ok(Assign { targets: Vec::new(), op: word(pair, Rule::assign_op)?, value });
        }
        Ok(Assign {
            targets: parts(pair, Rule::target).map(|own| self.target(&own)).collect::<Built<_>>()?,
            op: word(pair, Rule::assign_op)?,
            value: self.value(pair)?,
        })
    }

    fn target(&mut self, pair: &Node) -> Built<Target> {
        let index = part(pair, Rule::index).map(|own| Ok((self.indices(&own)?, span(&own)))).transpose()?;
        Ok(Target { name: word(pair, Rule::ident)?, index })
    }

    /// `: real[4]` in a construct.
    fn typed(&mut self, pair: &Node) -> Built<Option<Typed>> {
        let typed = |own: Node| {
            let parts = self.arity(&own)?;
            let Some(Name { text, span }) = part(&own, Rule::named_type).map(|own| name(&own)) else {
                let Name { text, span } = word(&own, Rule::scalar)?;
                return Ok(Typed { stored: present(Stored::named(&text), span)?, is_named: false, span, parts });
            };
            match self.file.types.get(&text) {
                Some(&stored) => {
                    self.file.types_used.insert(text);
                    Ok(Typed { stored, is_named: true, span, parts })
                }
                None => Err(self.no_type(&text, span)),
            }
        };
        part(pair, Rule::typed).map(typed).transpose()
    }

    /// A word that is no type, where one is needed.
    fn no_type(&self, text: &str, span: Span) -> Diagnostic {
        let found = Diagnostic::error(span, format!("`{text}` is no type"));
        match guess(text, self.file.types.keys().map(String::as_str)) {
            Some(guess) => found.label(format!("did you mean `{guess}`?")),
            None => expected::no_type(self.text, span).unwrap_or(found.label("expected a type")),
        }
    }

    /// `[4]` in a construct.
    fn arity(&mut self, pair: &Node) -> Built<Option<(ExprId, Span)>> {
        part(pair, Rule::arity).map(|own| Ok((self.value(&own)?, span(&own)))).transpose()
    }
}

/// `type vp = f32`
fn type_name(pair: &Node) -> Built<TypeName> {
    let scalar = word(pair, Rule::scalar)?;
    Ok(TypeName { name: word(pair, Rule::ident)?, stored: present(Stored::named(&scalar.text), scalar.span)? })
}

fn place(pair: &Node) -> PlaceOn {
    if let Some(axes) = part(pair, Rule::axes) {
        return PlaceOn::Axes(parts(&axes, Rule::axis).map(axis).collect(), span(&axes));
    }
    let trail = trail(pair).unwrap_or(Trail { names: Vec::new(), span: span(pair) });
    let no_levels = part(pair, Rule::no_levels).and_then(|own| word(&own, Rule::ident).ok()).map(Along::No);
    let along = || part(&part(pair, Rule::along)?, Rule::axis).map(|own| Along::Axis(axis(own)));
    PlaceOn::Mesh(trail, no_levels.or_else(along))
}

/// `k+1`, without blanks.
fn axis(pair: Node) -> Name {
    Name { text: pair.as_str().split_whitespace().collect(), span: span(&pair) }
}
