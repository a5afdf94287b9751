//! Reads of numbers that no call has computed: what a `let` makes, and an `out`, begin as NaN, 0 or false.

use super::MeshProblem;
use super::written::Part;
use std::collections::BTreeMap;
use std::ops::Range;
use stencilc_compiler::analysis::levels::Known;
use stencilc_compiler::analysis::surely::surely_read;
use stencilc_compiler::ir::program::{Action, Call};
use stencilc_compiler::ir::{Field, FieldId, Handle, Kind, Levels, Path, Role, VariableId};
use stencilc_compiler::source::Span;

/// What calls have computed of variables so far, of those that are not computed as a whole.
type Computed = BTreeMap<VariableId, Vec<Part>>;

/// How often each call is looked at, on average and at most: loops within loops change what is there in each of their turns.
const LOOKS: usize = 8;

/// A read of a number that no call has computed.
#[derive(Debug)]
pub struct Unwritten {
    call: Span,
    variable: VariableId,
    told: String,
}

impl Unwritten {
    /// What is told about it.
    pub fn told(&self) -> &str {
        &self.told
    }
}

/// A number of a field that is read where something is computed.
struct Found {
    /// Where it is computed: an element.
    from: usize,
    /// What is read there: an element, and on which level.
    to: usize,
    level: usize,
}

impl MeshProblem {
    /// The reads of numbers that no call has computed, each variable once a call. What only numbers decide counts as not read.
    pub fn unwritten(&self) -> Vec<Unwritten> {
        let begins = |role: Option<Role>| matches!(role, None | Some(Role::Out));
        let variables = self.program.program.variables.iter();
        let begin = variables.filter(|(id, own)| begins(own.role) && !self.is_number(*id));
        let mut computed: Computed = begin.map(|(id, _)| (id, Vec::new())).collect();
        let mut found = Vec::new();
        let mut left = LOOKS * self.program.program.calls().len();
        self.follow(&self.program.program.actions, &mut computed, (&mut found, &mut left));
        found
    }

    fn follow(&self, actions: &[Action], computed: &mut Computed, (found, left): (&mut Vec<Unwritten>, &mut usize)) {
        for action in actions {
            match action {
                Action::Call(_) if *left == 0 => return,
                Action::Call(call) => {
                    *left -= 1;
                    self.look_at(call, computed, found);
                    self.compute(call, computed);
                }
                Action::Rename(own) => match computed.get(&own.from).cloned() {
                    Some(parts) => drop(computed.insert(own.to, parts)),
                    None => drop(computed.remove(&own.to)),
                },
                Action::Repeat(own) => {
                    // The second turn may begin with other values.
                    for _ in 0..self.known_times(&own.times).unwrap_or(2).min(2) {
                        let before = computed.clone();
                        self.follow(&own.actions, computed, (&mut *found, &mut *left));
                        if before == *computed {
                            break;
                        }
                    }
                }
                Action::Number(_) => {}
            }
        }
    }

    /// Finds what a call reads that is not there.
    fn look_at(&self, call: &Call, computed: &Computed, found: &mut Vec<Unwritten>) {
        let own = &self.program.stencils[call.stencil];
        let partial = |field: FieldId| {
            let variable = call.fields[field.index()].read?;
            Some((variable, computed.get(&variable)?))
        };
        if !self.is_known(call) || own.stencil.fields.handles().all(|field| partial(field).is_none()) {
            return;
        }
        let params = self.params_of(call);
        let Ok(levels) = self.computed(call.stencil, &params) else { return };
        let known = Known::new(&own.stencil, self.precision, self.levels, &params);
        for (run, reads) in surely_read(&known, levels) {
            for (field, path) in &reads {
                let Some((variable, parts)) = partial(*field) else { continue };
                let is_told = found.iter().any(|own| (own.call, own.variable) == (call.span, variable));
                if let (false, Some(place)) = (is_told, self.missing(call, *field, (&run, path), parts)) {
                    let told = self.told(call, *field, variable, &place);
                    found.push(Unwritten { call: call.span, variable, told });
                }
            }
        }
    }

    /// The first number that is read and not there.
    fn missing(
        &self,
        call: &Call,
        field: FieldId,
        (run, path): (&Range<usize>, &Path),
        parts: &[Part],
    ) -> Option<Found> {
        let stencil = &self.program.stencils[call.stencil];
        let place = stencil.stencil.fields[field].place;
        let shifted = |level: usize| (level as i64 + i64::from(path.levels())) as usize;
        let levels = if place.levels == Levels::None { 0..1 } else { shifted(run.start)..shifted(run.end) };
        let lacks = |to: usize| {
            levels
                .clone()
                .find(|level| !parts.iter().any(|part| part.levels.contains(level) && part.has(&self.bound, to)))
        };
        let is_whole =
            |part: &Part| part.zones.is_none() && part.levels.start <= levels.start && levels.end <= part.levels.end;
        if parts.iter().any(is_whole) {
            return None;
        }
        let Some(home) = place.home else { return lacks(0).map(|level| Found { from: 0, to: 0, level }) };
        // Of a field on a map, the last step is a slot of the element before it.
        let hops = match home.map {
            Some(_) => path.hops().split_last().map_or(path.hops(), |(_, before)| before),
            None => path.hops(),
        };
        // Elements of a zone have the same levels.
        let mut zones: BTreeMap<u8, Option<usize>> = BTreeMap::new();
        let is_computed = |&from: &usize| {
            let zones = stencil.stencil.zones;
            zones.is_none_or(|zones| zones.contain(self.bound.zone(stencil.set(), from)))
        };
        (0..self.bound.size(stencil.set())).filter(is_computed).find_map(|from| {
            let to = usize::try_from(self.bound.walk(from as i32, hops)).ok()?;
            let level = *zones.entry(self.bound.zone(home.set, to)).or_insert_with(|| lacks(to));
            level.map(|level| Found { from, to, level })
        })
    }

    fn told(&self, call: &Call, field: FieldId, variable: VariableId, place: &Found) -> String {
        let stencil = &self.program.stencils[call.stencil];
        let Field { place: on, stored, .. } = &stencil.stencil.fields[field];
        let set = |id: stencilc_compiler::ir::SetId| &stencil.mesh.sets[id].name;
        let level = match on.levels {
            Levels::None => String::new(),
            Levels::Full => format!(" on level {}", place.level),
            Levels::Interfaces => format!(" on interface {}", place.level),
        };
        let element = on.home.map_or(String::new(), |home| match (home.set == stencil.set(), place.from == place.to) {
            (true, true) => format!(" of {} {}", set(home.set), place.to),
            _ => format!(" of {} {}, for {} {}", set(home.set), place.to, set(stencil.set()), place.from),
        });
        let begins = match stored.kind() {
            Kind::Real => "NaN",
            Kind::Int => "0",
            Kind::Bool => "false",
        };
        format!(
            "`{}` reads `{}`{level}{element}, which no call of program `{}` has computed before: there it is {begins}; compute it there, or read it \
             elsewhere alone",
            stencil.stencil.told(),
            self.program.program.variables[variable].name,
            self.program.program.name
        )
    }

    /// Notes what a call has computed.
    fn compute(&self, call: &Call, computed: &mut Computed) {
        let own = &self.program.stencils[call.stencil];
        let mut after = Vec::new();
        for (field, role) in own.stencil.fields.iter().map(|(id, field)| (id, field.role)) {
            let binding = call.fields[field.index()];
            let Some(written) = binding.written else { continue };
            let before = match role {
                Role::Out
                    if self.program.program.variables[written].role.is_none()
                        && self.program.program.begins(written, call) =>
                {
                    Some(Vec::new())
                }
                Role::Out => computed.get(&written).cloned(),
                // What is added to keeps what it lacks.
                _ => binding.read.and_then(|read| computed.get(&read).cloned()),
            };
            let part = if role == Role::Inc { None } else { self.part(call, field) };
            after.push((
                written,
                match (before, part) {
                    (Some(parts), None) if role == Role::Inc => Some(parts),
                    (Some(parts), Some(part)) if parts.contains(&part) => Some(parts),
                    (Some(parts), Some(part)) => Some(parts.into_iter().chain([part]).collect()),
                    _ => None,
                },
            ));
        }
        for (variable, parts) in after {
            match parts {
                Some(parts) => drop(computed.insert(variable, parts)),
                None => drop(computed.remove(&variable)),
            }
        }
    }
}
