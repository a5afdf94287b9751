//! Arrays that belong to somebody else, as those of a stencil: whose each is, whether it suits, and how its elements lie.

use crate::device::Device;
use crate::error::{Error, Result};
use crate::lent::{Lent, Memory};
use crate::problem::element_of;
use stencilc_compiler::diagnostic::guess;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::{Field, FieldId, Handle, Levels, Precision, Role, Stencil};
use stencilc_compiler::storage::fastest::Fastest;

/// Arrays that a stencil is called on, by the names of its fields.
#[derive(Debug, Default)]
pub struct Arrays<'a> {
    reads: Vec<(String, Lent<'a>)>,
    writes: Vec<(String, Lent<'a>)>,
    /// Of which what they held is read, too.
    updates: Vec<String>,
}

impl<'a> Arrays<'a> {
    /// The same, and one that is read.
    #[must_use]
    pub fn read(mut self, name: &str, array: Lent<'a>) -> Self {
        self.reads.push((name.to_owned(), array));
        self
    }

    /// The same, and one that is written: where the stencil computes, and not beyond. An `inout` field has two arrays: what it held
    /// before is read from the other.
    #[must_use]
    pub fn write(mut self, name: &str, array: Lent<'a>) -> Self {
        self.writes.push((name.to_owned(), array));
        self
    }

    /// The names of those that are written.
    pub(super) fn written(&self) -> impl Iterator<Item = &str> {
        self.writes.iter().map(|(name, _)| name.as_str())
    }

    /// The shape of an array that is read, or else of one that is written.
    pub(super) fn shape(&self, name: &str) -> Option<&[usize]> {
        let found = self.reads.iter().chain(&self.writes).find(|(own, _)| own == name);
        found.map(|(_, lent)| &lent.shape[..])
    }

    /// The same, and one of an `inout` field that is changed in place: what it held is copied aside before each run, since neighbours
    /// are read that would have changed already.
    #[must_use]
    pub fn update(mut self, name: &str, array: Lent<'a>) -> Self {
        self.updates.push(name.to_owned());
        self.write(name, array)
    }
}

/// Arrays of a stencil, by field.
pub(super) struct Lending<'a> {
    pub reads: Vec<Option<Lent<'a>>>,
    pub writes: Vec<Option<Lent<'a>>>,
    /// Fields whose array is changed in place: they have none among those that are read.
    pub updates: Vec<FieldId>,
}

impl<'a> Lending<'a> {
    /// Whose each array is.
    pub fn new(stencil: &Stencil, Arrays { reads, writes, updates }: Arrays<'a>) -> Result<Self> {
        let updated = |name: &str| updates.iter().any(|own| own == name);
        if let Some((_, field)) = stencil.fields.iter().find(|(_, own)| updated(&own.name) && own.role != Role::InOut) {
            return Err(Error::call(format!("`{}` is no `inout` field: what it held is not read", field.name))
                .help("lend its array by `Arrays::write`"));
        }
        if let Some((name, _)) = reads.iter().find(|(name, _)| updated(name)) {
            return Err(Error::call(format!("`{name}` is changed in place, and an array is lent to be read"))
                .help("lend one: by `Arrays::update`, or two by `Arrays::read` and `Arrays::write`"));
        }
        let reads = by_field(stencil, reads, false, &updated)?;
        let writes = by_field(stencil, writes, true, &updated)?;
        let named = stencil.fields.iter().filter(|(_, own)| updated(&own.name));
        let updates = named.map(|(id, _)| id).collect();
        Ok(Self { reads, writes, updates })
    }

    /// The shape of the array that a field has.
    pub fn shape(&self, stencil: &Stencil, name: &str) -> Option<&[usize]> {
        let field = stencil.field_named(name)?.index();
        self.reads[field].as_ref().or(self.writes[field].as_ref()).map(|own| &own.shape[..])
    }

    /// What a field held before, where it lies.
    pub fn read(&self, field: usize) -> Option<&Lent<'a>> {
        let in_place = || self.writes[field].as_ref().filter(|_| self.updates.iter().any(|id| id.index() == field));
        self.reads[field].as_ref().or_else(in_place)
    }

    /// Whether each array is one of its field, on a device, and none is written where another one is; and how their elements lie.
    pub fn check(&self, stencil: &Stencil, precision: Precision, grid: Grid, device: Device) -> Result<Apart> {
        let all = || {
            let named = stencil.fields.iter();
            named.flat_map(|(id, own)| {
                let own_arrays = [&self.reads, &self.writes].map(|all| all[id.index()].as_ref());
                own_arrays.into_iter().flatten().map(move |lent| (own, lent))
            })
        };
        for (field, lent) in all() {
            check(field, lent, precision, grid, device)?;
        }
        let apart = apart(grid, &all().collect::<Vec<_>>())?;
        for (written, (_, field)) in self.writes.iter().zip(stencil.fields.iter()) {
            let (Some(written), name) = (written, &field.name) else { continue };
            if !is_nested(written) {
                return Err(Error::call(format!(
                    "elements of the array that `{name}` is written to lie on each other"
                ))
                .help("its strides are smaller than what they pass over"));
            }
            let other = all().find(|(_, other)| !std::ptr::eq(*other, written) && overlap(written, other));
            if let Some((other, _)) = other {
                return Err(Error::call(format!(
                    "the array that `{name}` is written to overlaps that of `{}`",
                    other.name
                ))
                .help("neighbours are read that would have changed already: write to another array"));
            }
        }
        Ok(apart)
    }
}

/// How elements lie, of all fields alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Apart {
    pub fastest: Fastest,
    /// Elements from a level to the next; where levels are fastest, from a column to the next.
    pub outer: usize,
    /// Columns from a row to the next.
    pub row: usize,
}

/// Arrays by field, of those that are read or of those that are written.
fn by_field<'a>(
    stencil: &Stencil,
    given: Vec<(String, Lent<'a>)>,
    is_written: bool,
    updated: &dyn Fn(&str) -> bool,
) -> Result<Vec<Option<Lent<'a>>>> {
    let is_own = |field: &Field| match field.role {
        Role::Carried | Role::Inc | Role::Reduce => false,
        Role::In | Role::Out | Role::InOut if is_written => field.role.is_written(),
        Role::In | Role::Out | Role::InOut => field.role.is_read(),
    };
    let (doing, kind) = if is_written { ("written", "output") } else { ("read", "input") };
    let names: Vec<&str> =
        stencil.fields.iter().filter(|(_, own)| is_own(own)).map(|(_, own)| own.name.as_str()).collect();
    let mut all: Vec<Option<Lent>> = stencil.fields.iter().map(|_| None).collect();
    for (name, lent) in given {
        let id = stencil.field_named(&name).filter(|id| is_own(&stencil.fields[*id])).ok_or_else(|| {
            let error = Error::call(format!("stencil `{}` has no {kind} `{name}`", stencil.name));
            match guess(&name, names.iter().copied()) {
                Some(guess) => error.help(format!("did you mean `{guess}`?")),
                None => error.help(format!("what is {doing}: {}", names.join(", "))),
            }
        })?;
        if is_written && !lent.is_writable {
            return Err(Error::call(format!("`{name}` is written, and its array may only be read"))
                .help("lend it by `Lent::write`"));
        }
        if all[id.index()].replace(lent).is_some() {
            return Err(Error::call(format!("two arrays are lent for what is {doing} of `{name}`")));
        }
    }
    let missing = stencil.fields.iter().filter(|(id, own)| {
        // What is changed in place is read where it is written.
        is_own(own) && all[id.index()].is_none() && (is_written || !updated(&own.name))
    });
    let missing: Vec<String> = missing.map(|(_, own)| format!("`{}`", own.name)).collect();
    match missing.is_empty() {
        true => Ok(all),
        false => Err(Error::call(format!("no array is lent for what is {doing}: {}", missing.join(", ")))),
    }
}

/// Whether an array is one of a field: its shape, its type, and the memory where it lies.
fn check(field: &Field, lent: &Lent, precision: Precision, grid: Grid, device: Device) -> Result<()> {
    let (name, element) = (&field.name, element_of(field.stored, precision));
    if lent.element != element {
        let (own, given) = (element.name(), lent.element.name());
        return Err(Error::call(format!("`{name}` is an array of {own}, not of {given}")));
    }
    let shape = grid.shape(field.place);
    let is_one_level = field.place.levels == Levels::Full && shape.first() == Some(&1) && lent.shape == shape[1..];
    if lent.shape != shape && !is_one_level {
        return Err(Error::call(format!("`{name}` has the shape {shape:?}, not {:?}", lent.shape)));
    }
    if !lent.address.is_multiple_of(element.bytes() as u64) {
        return Err(Error::call(format!("the array of `{name}` does not begin at a multiple of its elements' size")));
    }
    match (device, lent.memory) {
        (Device::Cuda(_), Memory::Host) => {
            Err(Error::call(format!("the array of `{name}` is in the host's memory, and {device} computes"))
                .help("lend one of the GPU's memory, or `Job::start`, which brings arrays there"))
        }
        (Device::Cpu | Device::Emulate | Device::Native, Memory::Device) => {
            Err(Error::call(format!("the array of `{name}` is in a GPU's memory, and {device} computes")))
        }
        (Device::Cuda(_), Memory::Device) | (Device::Cpu | Device::Emulate | Device::Native, Memory::Host) => Ok(()),
    }
}

/// Lengths and strides along levels, j and i; of an axis that an array lacks, there is one.
fn axes(field: &Field, lent: &Lent) -> [(usize, usize); 3] {
    let mut own = lent.shape.iter().copied().zip(lent.strides.iter().copied()).rev();
    let mut next = |is_there: bool| if is_there { own.next().unwrap_or((1, 0)) } else { (1, 0) };
    let (i, j) = (next(field.place.horizontal), next(field.place.horizontal));
    [next(field.place.levels != Levels::None), j, i]
}

/// A distance that is the same for all arrays: what lies so far apart, whose it was first, and how far.
struct Known<'a> {
    what: &'static str,
    first: Option<(&'a str, usize)>,
}

impl<'a> Known<'a> {
    fn of(what: &'static str) -> Self {
        Self { what, first: None }
    }

    /// Takes the distance of an array.
    fn is(&mut self, name: &'a str, distance: usize) -> Result<()> {
        let (first, own) = *self.first.get_or_insert((name, distance));
        if own == distance {
            return Ok(());
        }
        let what = self.what;
        Err(Error::call(format!("{what} of `{name}` are {distance} elements apart, those of `{first}` {own}"))
            .help("a kernel knows one distance for all its arrays; `Job::start` copies what lies in another way"))
    }

    fn or(&self, usual: usize) -> usize {
        self.first.map_or(usual, |(_, distance)| distance)
    }
}

/// How elements lie, of all arrays alike.
fn apart(grid: Grid, all: &[(&Field, &Lent)]) -> Result<Apart> {
    let has_columns = |field: &Field| field.place.horizontal && field.place.levels != Levels::None;
    // Of an axis with one element, a stride says nothing.
    let is_by_levels = |(field, lent): &(&Field, &Lent)| {
        let [k, j, i] = axes(field, lent);
        has_columns(field) && k.0 > 1 && k.1 == 1 && (i.0 > 1 || j.0 > 1) && (i.0 <= 1 || i.1 > 1)
    };
    let by_levels = all.iter().find(|own| is_by_levels(own)).map(|(field, _)| &field.name);
    let fastest = if by_levels.is_some() { Fastest::Levels } else { Fastest::Columns };
    let [mut rows, mut levels, mut columns] = ["rows", "levels", "columns"].map(Known::of);
    for (field, lent) in all {
        let [k, j, i] = axes(field, lent);
        let name = &field.name;
        let is_by_column = has_columns(field) && fastest == Fastest::Levels;
        let (dense, axis) = if field.place.horizontal && !is_by_column { ("i", i) } else { ("k", k) };
        if axis.0 > 1 && axis.1 != 1 {
            let others = by_levels.filter(|_| is_by_column).map(|own| format!(", as those of `{own}` do"));
            let why =
                format!("elements of `{name}` do not follow each other along {dense}{}", others.unwrap_or_default());
            return Err(Error::call(why)
                .help("kernels read neighbouring elements together; `Job::start` copies what lies in another way"));
        }
        if is_by_column {
            // A grid of one column a row has no other distance between columns.
            let column = if i.0 > 1 || j.0 <= 1 { i.1 } else { j.1 };
            if i.0 > 1 || j.0 > 1 {
                columns.is(name, column)?;
            }
            if i.0 > 1 && j.0 > 1 {
                if !j.1.is_multiple_of(column) {
                    let why =
                        format!("rows of `{name}` are {} elements apart, no multiple of the {column} of columns", j.1);
                    return Err(Error::call(why).help("`Job::start` copies what lies in another way"));
                }
                rows.is(name, j.1 / column)?;
            }
        } else if field.place.horizontal {
            if k.0 > 1 {
                levels.is(name, k.1)?;
            }
            if j.0 > 1 {
                rows.is(name, j.1)?;
            }
        }
    }
    let row = rows.or(if fastest == Fastest::Levels && grid.ni == 1 { 1 } else { grid.ni });
    let outer = match fastest {
        Fastest::Levels => columns.or(grid.nk + 1),
        Fastest::Columns => levels.or(row.saturating_mul(grid.nj)),
    };
    Ok(Apart { fastest, outer, row })
}

/// Whether no two elements of an array lie in one place.
fn is_nested(lent: &Lent) -> bool {
    let mut axes: Vec<(usize, usize)> =
        lent.strides.iter().copied().zip(lent.shape.iter().copied()).filter(|(_, length)| *length > 1).collect();
    axes.sort_unstable();
    let mut reach = 0usize;
    axes.into_iter().all(|(stride, length)| {
        let is_beyond = stride > reach;
        reach = reach.saturating_add(stride.saturating_mul(length - 1));
        is_beyond
    })
}

/// Whether two arrays have an element in one place. Parts of one array may lie between each other and have none.
fn overlap(a: &Lent, b: &Lent) -> bool {
    let bytes = |own: &Lent| own.extent().unwrap_or(usize::MAX) as u128 * own.element.bytes() as u128;
    let [from, other] = [a, b].map(|own| u128::from(own.address));
    if a.memory != b.memory || from >= other + bytes(b) || other >= from + bytes(a) {
        return false;
    }
    let between = i128::from(b.address) - i128::from(a.address);
    let each = a.element.bytes() as i128;
    let is_alike = a.element == b.element && a.strides == b.strides && between % each == 0 && is_nested(b);
    // Of others it would be long to say: nobody needs them.
    if !is_alike {
        return true;
    }
    // A place of each with the distance between: along each axis so many strides as they have elements, at most.
    let mut axes: Vec<[i128; 3]> = (0..a.strides.len())
        .map(|axis| [a.strides[axis], a.shape[axis] - 1, b.shape[axis] - 1].map(|own| own as i128))
        .filter(|[_, own, other]| own + other > 0)
        .collect();
    axes.sort_unstable();
    reaches(&axes, between / each)
}

/// Whether a sum of strides, each at most so often added, or taken away, comes to a distance. Those of the last axis are the largest.
fn reaches(axes: &[[i128; 3]], distance: i128) -> bool {
    let Some((&[stride, most, least], others)) = axes.split_last() else { return distance == 0 };
    let rest: i128 = others.iter().map(|[stride, own, other]| stride * own.max(other)).sum();
    let (from, to) = ((distance - rest).div_euclid(stride), (distance + rest).div_euclid(stride) + 1);
    (from.max(-least)..=to.min(most)).any(|times| reaches(others, distance - times * stride))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(first: usize, shape: &[usize], strides: &[usize]) -> Lent<'static> {
        // SAFETY: nothing is read or written there.
        unsafe { Lent::at(Memory::Host, 8 * first as u64, crate::Element::F64, shape, strides, true) }.unwrap()
    }

    /// Against all pairs of elements.
    #[test]
    fn arrays_overlap_if_an_element_is_in_both() {
        let places = |first: usize, shape: &[usize; 3], strides: &[usize; 3]| {
            let mut all = Vec::new();
            for k in 0..shape[0] {
                for j in 0..shape[1] {
                    all.extend((0..shape[2]).map(|i| first + k * strides[0] + j * strides[1] + i * strides[2]));
                }
            }
            all
        };
        let (mut apart, mut together) = (0, 0);
        for strides in [[20, 5, 1], [21, 7, 1], [4, 16, 1], [1, 3, 12]] {
            for (a, b) in [([3, 2, 2], [2, 3, 3]), ([2, 4, 1], [3, 1, 3]), ([1, 1, 3], [3, 3, 2])] {
                for first in 0..90 {
                    let [one, other] = [part(40, &a, &strides), part(first, &b, &strides)];
                    let known = places(40, &a, &strides);
                    let expected = places(first, &b, &strides).iter().any(|place| known.contains(place));
                    if is_nested(&other) {
                        assert_eq!(overlap(&one, &other), expected, "{strides:?} {a:?} {b:?} {first}");
                        *if expected { &mut together } else { &mut apart } += 1;
                    }
                }
            }
        }
        assert!(apart > 100 && together > 100, "{apart} {together}");
    }

    #[test]
    fn elements_that_lie_on_each_other_are_found() {
        for (shape, strides, is_nested) in [
            (vec![2, 3, 4], vec![12, 4, 1], true),
            (vec![2, 3, 4], vec![11, 4, 1], false),
            (vec![2, 3, 4], vec![4, 8, 1], true),
            (vec![1, 3, 4], vec![0, 4, 1], true),
            (vec![2, 3, 4], vec![0, 4, 1], false),
            (vec![4], vec![0], false),
        ] {
            assert_eq!(super::is_nested(&part(0, &shape, &strides)), is_nested, "{shape:?} {strides:?}");
        }
    }
}
