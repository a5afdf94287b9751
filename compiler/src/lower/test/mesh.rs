//! Tests of what runs over a mesh: the test's own stencils over its sets. [`super::made`] finds the mesh itself.
//!
//! An input lives on some set, and so does what is expected; each is a stencil of its own over that set. Names that are given by
//! `let` mean on each set what they say there, and need to make sense only where they are used.

use super::super::declare::new_field;
use super::super::mesh::{Declared, Over};
use super::super::report::has_error;
use super::super::scope::Binding;
use super::super::{Found, Lowering};
use super::parts::names;
use super::subject::{Target, name_of};
use super::{Coordinates, Outline, Tests};
use crate::analysis::values::values;
use crate::ast::{self, TestPart};
use crate::diagnostic::{Diagnostic, wrong};
use crate::ir::mesh::{Home, How, Write};
use crate::ir::{
    Arena, Body, Field, FieldId, Kind, Levels, Mesh, MeshCheck, MeshProgram, MeshStencil, MeshTest, Node, OF_ELEMENT,
    Place, Role, SetId, Stencil, Store, Stored, Verify,
};
use crate::source::Span;
use std::collections::{BTreeMap, HashSet};

/// The field that tells zones.
const ZONE: &str = "zone";

/// A stencil or program over a mesh, as a test sees it.
pub struct Subject<'a> {
    /// What is given to it and taken from it, and its parameters. What is added to is given.
    facade: Stencil,
    /// The mesh.
    declared: &'a Declared,
    /// Over which set it runs; a program runs over all.
    set: Option<SetId>,
    /// What is added to, and begins with 0 if it is not given.
    sums: Vec<String>,
}

impl<'a> Subject<'a> {
    /// A stencil.
    pub fn of_stencil(own: &MeshStencil, meshes: &'a [Declared]) -> Option<Self> {
        let mut facade = own.stencil.clone();
        let mut sums = Vec::new();
        for field in facade.fields.values_mut() {
            match field.role {
                Role::Inc => {
                    field.role = Role::InOut;
                    sums.push(field.name.clone());
                }
                Role::Reduce => field.role = Role::Out,
                Role::In | Role::Out | Role::InOut | Role::Carried => {}
            }
        }
        Some(Self { facade, declared: declared(meshes, &own.mesh.name)?, set: own.over, sums })
    }

    /// A program.
    pub fn of_program(own: &MeshProgram, meshes: &'a [Declared]) -> Option<Self> {
        let mut numbers = own.program.clone();
        // Fields that stand for numbers are there as the numbers themselves.
        numbers.numbers.fields = Arena::new();
        let mut facade = numbers.facade();
        // How large sets are, nobody sets.
        for (size, _) in &own.sizes {
            let mut zero = Body::new();
            zero.add(Node::Int(0), Kind::Int, Span::default());
            facade.params[*size].default = Some(zero);
        }
        Some(Self { facade, declared: declared(meshes, &own.mesh.name)?, set: None, sums: Vec::new() })
    }

    /// What a test calls it.
    pub fn name(&self) -> &str {
        &self.facade.name
    }

    /// The mesh over which it runs.
    pub fn mesh(&self) -> &'a Mesh {
        &self.declared.mesh
    }

    /// The sets on which something can be expected, the likeliest first.
    fn sets(&self) -> Vec<SetId> {
        let all = self.mesh().sets.iter().map(|(id, _)| id).filter(|&id| Some(id) != self.set);
        self.set.into_iter().chain(all).collect()
    }

    /// Whether it is added to, and begins with 0.
    fn is_sum(&self, name: &str) -> bool {
        self.sums.iter().any(|own| own == name)
    }
}

fn lives_on_a_set(field: &Field) -> bool {
    field.place.home.is_some_and(|home| home.map.is_none())
}

fn declared<'a>(meshes: &'a [Declared], name: &str) -> Option<&'a Declared> {
    meshes.iter().find(|own| own.mesh.name == name)
}

/// What `let` gives names to, on one set or another.
#[derive(Default)]
struct Lets {
    /// By the place of their names: those that meant something on some set.
    right: HashSet<Span>,
    /// What was wrong with them, where they meant nothing.
    wrong: BTreeMap<u32, Vec<Diagnostic>>,
    /// Those that something uses.
    used: HashSet<Span>,
}

/// What is given by name.
struct Given<'a> {
    spans: BTreeMap<&'a str, Span>,
    fields: Vec<(FieldId, ast::ExprId)>,
}

impl<'a> Tests<'a> {
    /// A test of what runs over a mesh, unless something is wrong with it.
    pub(super) fn over_mesh(
        &mut self,
        test: &'a ast::Test,
        outline: &Outline<'a>,
        subject: &'a Subject<'a>,
    ) -> Found<MeshTest> {
        let before = self.told.diagnostics.len();
        let made = self.made(test, subject);
        let levels = self.levels(test, subject);
        let sets = subject.sets();
        let Some(&any) = sets.first() else {
            let found = Diagnostic::error(outline.subject.name.span, "a mesh without sets has no elements");
            return self.report(found.label("nothing can be given on it"));
        };
        let mut settings = self.over_set(subject, any, &test.title.text);
        let given = settings.set_params(outline, subject);
        let (settings, _) = self.finished(settings);
        let mut lets = Lets::default();
        let mut inputs = Vec::new();
        for (field, value) in &given.fields {
            let own = &subject.facade.fields[*field];
            let set = own.place.home.map_or(any, |home| home.set);
            let mut builder = self.over_set(subject, set, &test.title.text);
            builder.declare_before(subject, &given);
            let unknown = builder.lets_before(&outline.before, subject, &given, &mut lets);
            builder.check_given_before(*value, subject, &given);
            builder.input_over_mesh(*value, own);
            let own = self.own_stencil(builder, unknown, &mut lets);
            // Those on maps and those that are single numbers are written as no stencil of a file may: number by number.
            let is_plain = lives_on_a_set(&subject.facade.fields[*field]);
            inputs.extend(own.map(|own| if is_plain { own.verified("lowering") } else { own }));
        }
        let zones = self.zones(test, outline, subject, &given, &mut lets);
        let mut checks = Vec::new();
        let mut passed: Vec<&'a ast::Let> = outline.before.clone();
        for part in &outline.after {
            match part {
                TestPart::Let(binding) => passed.push(binding),
                TestPart::Expect(truth, span) => {
                    checks.extend(self.check_somewhere(subject, &sets, &passed, (*truth, *span), &mut lets));
                }
                TestPart::Grid(..) | TestPart::Made(..) | TestPart::Depth(..) | TestPart::Zone(..) => {}
                TestPart::TestedCall(_) => {}
            }
        }
        self.tell_of_lets(&passed, lets);
        let (made, levels) = (made?, levels?);
        if has_error(&self.told.diagnostics[before..]) {
            return None;
        }
        let all =
            inputs.iter().chain(zones.iter().map(|(_, own)| own)).chain(checks.iter().map(|check| &check.stencil));
        if let Some(found) = all.map(|own| &own.stencil).find_map(|own| values(own, "this test", test.title.span)) {
            return self.report(found.help("expect less at once: a file may have several tests"));
        }
        let not_given = subject.sums.iter().filter(|name| !given.spans.contains_key(name.as_str()));
        Some(MeshTest {
            title: test.title.text.clone(),
            span: test.title.span,
            subject: subject.name().to_owned(),
            subject_span: outline.subject.name.span,
            made,
            levels,
            settings: settings.verified("lowering"),
            inputs,
            zones,
            from_zero: not_given.cloned().collect(),
            checks: checks
                .into_iter()
                .map(|own| MeshCheck { stencil: own.stencil.verified("lowering"), ..own })
                .collect(),
        })
    }

    /// What says in which zone each element is, set by set.
    fn zones(
        &mut self,
        test: &'a ast::Test,
        outline: &Outline<'a>,
        subject: &'a Subject<'a>,
        given: &Given<'a>,
        lets: &mut Lets,
    ) -> Vec<(String, MeshStencil)> {
        let mut found: Vec<(String, MeshStencil)> = Vec::new();
        for part in &test.parts {
            let TestPart::Zone(name, value, span) = part else { continue };
            let mesh = subject.mesh();
            let mut builder = Lowering::new(self.globals, "", "");
            let set = builder.zoned_set(mesh, name);
            self.told.take(&mut builder);
            let Some(set) = set else { continue };
            if found.iter().any(|(own, _)| *own == name.text) {
                let again = wrong(*span, format!("the zones of `{}` are given twice", name.text), "again here");
                self.told.diagnostics.push(again.help("leave one of them out"));
                continue;
            }
            let home = Some(Home { set, map: None, parts: 1, width: 1 });
            let place = Place { horizontal: true, levels: Levels::None, home };
            let mut builder = self.over_set(subject, set, &test.title.text);
            builder.declare_before(subject, given);
            let unknown = builder.lets_before(&outline.before, subject, given, lets);
            builder.check_given_before(*value, subject, given);
            builder.input_over_mesh(*value, &new_field(ZONE, Role::In, place, Stored::Int, name.span));
            let Some(mut own) = self.own_stencil(builder, unknown, lets) else { continue };
            if own.stencil.bodies().any(|body| body.iter().any(|(_, node)| matches!(node, Node::InZone(_)))) {
                let found = wrong(*span, "this says in which zone each element is", "and asks for it");
                self.told.diagnostics.push(found.help("make it of `i`, `position` and fields that come with the mesh"));
                continue;
            }
            // It is computed where nobody knows of zones yet.
            own.mesh.sets.values_mut().for_each(|set| set.zones.clear());
            found.push((name.text.clone(), own.verified("lowering")));
        }
        found
    }

    /// What writes down a stencil of the test's own over a set, which knows what an element is.
    fn over_set(&self, subject: &'a Subject<'a>, set: SetId, title: &str) -> Lowering<'a> {
        let mut lowering = Lowering::new(self.globals, title, "");
        lowering.over = Some(Over::new(subject.declared, set));
        let home = |parts| Place {
            horizontal: true,
            levels: Levels::None,
            home: Some(Home { set, map: None, parts, width: parts }),
        };
        let [number, count, position] = OF_ELEMENT;
        let field = |name, place, stored| new_field(name, Role::In, place, stored, Span::default());
        let mut add = |field| lowering.stencil.fields.add(field);
        let fields = [add(field(number, home(1), Stored::Int)), add(field(count, Place::NOWHERE, Stored::Int))];
        let position = add(field(position, home(3), Stored::Real));
        lowering.coordinates = Some(Coordinates::Element { fields });
        // A field of that name goes before.
        let is_taken = subject.facade.field_named("position").is_some() || self.globals.find("position").is_some();
        if !is_taken {
            lowering.define(&name_of("position", Span::default()), Binding::Field(position));
        }
        lowering
    }

    /// What was written down, unless something is wrong with it. What is wrong with a name that it uses is told with it.
    fn own_stencil(
        &mut self,
        mut lowering: Lowering<'a>,
        unknown: Vec<Diagnostic>,
        lets: &mut Lets,
    ) -> Found<MeshStencil> {
        let is_written = !lowering.stencil.stores.is_empty();
        if !is_written && !has_error(&lowering.reports.diagnostics) {
            lowering.reports.diagnostics.extend(unknown);
        }
        let over = lowering.over.take()?;
        let (stencil, unused) = self.finished(lowering);
        lets.used.extend(lets.right.iter().filter(|span| !unused.contains(span)).copied().collect::<Vec<_>>());
        is_written.then(|| over.stencil(stencil))
    }

    /// An expectation, on the set where it means something.
    fn check_somewhere(
        &mut self,
        subject: &'a Subject<'a>,
        sets: &[SetId],
        before: &[&'a ast::Let],
        (truth, span): (ast::ExprId, Span),
        lets: &mut Lets,
    ) -> Found<MeshCheck> {
        let (mut found, mut failed) = (Vec::new(), None);
        for &set in sets {
            let mut builder = self.over_set(subject, set, "");
            builder.declare_after(subject);
            let unknown = builder.lets_after(before, lets);
            let expectation = builder.expectation(truth, span, 0);
            builder.check_params(&subject.facade);
            if let Some(expectation) = expectation.filter(|_| !has_error(&builder.reports.diagnostics)) {
                found.push((expectation, builder));
                // What a stencil computes is looked at where it runs.
                if subject.set == Some(set) {
                    break;
                }
            } else if failed.is_none() {
                failed = Some((builder, unknown));
            }
        }
        if let [(_, first), (_, second), ..] = found.as_slice()
            && let (Some(first), Some(second)) = (first.reads_of_set(), second.reads_of_set())
        {
            let names = [first, second].map(|set| subject.mesh().sets[set].name.as_str());
            let message = format!("this could be expected of each `{}` or of each `{}`", names[0], names[1]);
            let found = Diagnostic::error(span, message).label("of which?");
            return self.report(found.help("name a field at the element itself: it says of which set"));
        }
        if found.is_empty() {
            let (builder, unknown) = failed?;
            self.own_stencil(builder, unknown, lets);
            return None;
        }
        let (expectation, builder) = found.swap_remove(0);
        let stencil = self.own_stencil(builder, Vec::new(), lets)?;
        Some(MeshCheck { stencil, expectation })
    }

    /// Tells of names that mean nothing on any set, and of those that nothing uses.
    fn tell_of_lets(&mut self, all: &[&'a ast::Let], mut lets: Lets) {
        if has_error(&self.told.diagnostics) {
            return;
        }
        for name in all.iter().flat_map(|binding| &binding.names) {
            if !lets.right.contains(&name.span)
                && let Some(found) = lets.wrong.remove(&name.span.start)
            {
                self.told.diagnostics.extend(found);
            } else if !lets.used.contains(&name.span) {
                self.told.diagnostics.push(Diagnostic::unused(name.span, "the value", &name.text));
            }
        }
    }
}

impl<'a> Lowering<'a> {
    /// Sets the parameters that a test gives, and finds the fields that it gives.
    fn set_params(&mut self, outline: &Outline<'a>, subject: &Subject) -> Given<'a> {
        let facade = &subject.facade;
        self.declare_params_of(facade);
        let mut given = Given { spans: BTreeMap::new(), fields: Vec::new() };
        let mut all_known = true;
        for assign in &outline.subject.values {
            let Some((name, target)) = self.target(assign, facade) else {
                all_known = false;
                continue;
            };
            if self.is_given_again(name, &mut given.spans) {
                continue;
            }
            match target {
                Target::Field(id) => given.fields.push((id, assign.value)),
                Target::Param(id) => self.set_param(id, assign.value, facade),
            }
        }
        if all_known {
            // Fields may come with the mesh.
            self.check_given(outline.subject, facade, &given.spans, false);
        }
        given
    }

    /// Declares what there is before the subject ran: what comes with the mesh.
    fn declare_before(&mut self, subject: &Subject, given: &Given) {
        self.declare_params_of(&subject.facade);
        for (_, own) in subject.facade.own_fields() {
            let comes_along = own.role.is_read() && !subject.is_sum(&own.name) && !given.spans.contains_key(&*own.name);
            let binding = if comes_along {
                let field = Field { role: Role::In, range: None, ..own.clone() };
                Binding::Field(self.stencil.fields.add(field))
            } else {
                Binding::Broken
            };
            self.define(&name_of(&own.name, own.span), binding);
        }
    }

    /// Declares what there is afterwards, when everything can be read.
    fn declare_after(&mut self, subject: &Subject) {
        self.declare_params_of(&subject.facade);
        for (_, own) in subject.facade.own_fields() {
            let id = self.stencil.fields.add(Field { role: Role::In, range: None, ..own.clone() });
            self.define(&name_of(&own.name, own.span), Binding::Field(id));
        }
    }

    /// Gives names before the subject ran; what is wrong with those that mean nothing here.
    fn lets_before(
        &mut self,
        all: &[&'a ast::Let],
        subject: &Subject,
        given: &Given,
        lets: &mut Lets,
    ) -> Vec<Diagnostic> {
        let mut wrong = Vec::new();
        for binding in all {
            wrong.extend(self.let_somewhere(binding, lets, |own| {
                own.check_given_before(binding.value, subject, given);
            }));
        }
        wrong
    }

    fn lets_after(&mut self, all: &[&'a ast::Let], lets: &mut Lets) -> Vec<Diagnostic> {
        all.iter().flat_map(|binding| self.let_somewhere(binding, lets, |_| {})).collect()
    }

    /// Gives a name if its value means something on this set; else what is wrong with it.
    fn let_somewhere(
        &mut self,
        binding: &'a ast::Let,
        lets: &mut Lets,
        check: impl FnOnce(&mut Self),
    ) -> Vec<Diagnostic> {
        let told = self.reports.diagnostics.len();
        check(self);
        self.define_let(binding);
        let found = self.reports.diagnostics.split_off(told);
        if has_error(&found) {
            if let Some(name) = binding.names.first() {
                lets.wrong.entry(name.span.start).or_insert_with(|| found.clone());
            }
            return found;
        }
        // A name made of another that means nothing here means nothing itself.
        let is_known = |name: &&ast::Name| !matches!(self.scope.binding(&name.text), None | Some(Binding::Broken));
        lets.right.extend(binding.names.iter().filter(is_known).map(|name| name.span));
        Vec::new()
    }

    /// Reports fields that a value is made of and that have no numbers before the subject ran.
    fn check_given_before(&mut self, value: ast::ExprId, subject: &Subject, given: &Given) {
        for (name, span) in names(self.file, value) {
            let Some(id) = subject.facade.field_named(name) else { continue };
            let own = &subject.facade.fields[id];
            if own.role.is_read() && !subject.is_sum(name) && !given.spans.contains_key(name) {
                continue;
            }
            let found = Diagnostic::error(span, format!("the field `{name}` has no numbers here"));
            self.tell(found.label("known only after it ran").help(
                "inputs are made of `i`, `ni`, `position`, `k`, `nk`, parameters, fields that come with the mesh, and names given \
                 by `let` before",
            ));
        }
    }

    /// The value of an input: of a vector, of all its parts; of a field on a map, one for each slot or one for all of them.
    fn input_over_mesh(&mut self, value: ast::ExprId, own: &Field) -> Found<()> {
        let span = self.span(value);
        let kind = own.stored.kind();
        let bodies = self.bodies(|lowering| {
            let value = lowering.value(value)?;
            value.map(|node| lowering.convert(node, kind, span, &own.name)).collected()
        })?;
        let mut bodies = bodies.into_parts();
        let (parts, width) = own.place.home.map_or((1, 1), |home| (home.parts as usize, home.width as usize));
        if bodies.len() == parts && parts < width {
            bodies = bodies.iter().cycle().take(width).cloned().collect();
        }
        if bodies.len() != width {
            let found =
                Diagnostic::error(span, format!("`{}` has {width} numbers, this value has {}", own.name, bodies.len()));
            let found = found.label(format!("{} given", bodies.len())).note(own.span, "declared here");
            return self.report(if width == 1 {
                found.help("take a part of it, as in `v.0`")
            } else if parts == 1 {
                found.help(format!("give a number for all slots, or one for each: `[a, b, ...]` with {width}"))
            } else {
                found.help(format!("a vector is given whole: `[a, b, ...]` with {parts} parts"))
            });
        }
        let mut varies = (false, false);
        for body in &bodies {
            let own = super::super::value::varies(&self.stencil, body);
            varies = (varies.0 || own.0, varies.1 || own.1);
        }
        let what = match (own.place.home, own.place.levels) {
            (None, _) if varies.0 => Some("from element to element"),
            (_, Levels::None) if varies.1 => Some("along k"),
            _ => None,
        };
        if let Some(what) = what {
            let found = wrong(
                span,
                format!("`{}` is the same everywhere, its value varies {what}", own.name),
                format!("varies {what}"),
            );
            return self.report(found.note(own.span, "declared here"));
        }
        let field = new_field(&own.name, Role::Out, own.place, own.stored, own.span);
        let field = self.stencil.fields.add(field);
        for (part, body) in bodies.into_iter().enumerate() {
            self.stencil.stores.push(Store { field, body, sweep: None });
            self.over.as_mut()?.writes.push(Write { part: part as u32, how: How::Assign });
        }
        Some(())
    }

    /// The set over which it runs, if it reads anything that lives on a set.
    fn reads_of_set(&self) -> Option<SetId> {
        let is_read = |node: &Node| match node {
            Node::Read { field, .. } => self.stencil.fields[*field].place.home.is_some(),
            _ => false,
        };
        let mut bodies = self.stencil.bodies();
        bodies.any(|body| body.iter().any(|(_, node)| is_read(node))).then(|| self.over.as_ref()?.set)?
    }
}
