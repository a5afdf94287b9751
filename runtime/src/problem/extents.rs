//! The extents of a grid in rows, from what is given and the shapes of arrays.

use super::{checked, fields};
use crate::error::{Error, Result};
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::{Field, Levels, Stencil};

/// What an array says about the extents.
struct Claim<'a> {
    field: &'a Field,
    shape: &'a [usize],
    /// Along j, i and k, which is their order in messages; nothing where the field has no such axis.
    extents: [Option<usize>; 3],
}

/// The axes of a claim.
const AXES: [&str; 3] = ["j", "i", "k"];

/// The extents along [`AXES`], as far as they are known.
type Known = [Option<usize>; 3];

/// The grid.
///
/// # Errors
/// An array has a shape that its field cannot have, or another than the others or `given` say; an extent is not known.
pub(crate) fn find<'a>(
    stencil: &'a Stencil,
    given: Option<Grid>,
    shapes: &dyn Fn(&str) -> Option<&'a [usize]>,
) -> Result<Grid> {
    let claims = fields(stencil).filter_map(|field| Some(Claim::new(field, shapes(&field.name)?)));
    let claims = claims.collect::<Result<Vec<Claim>>>()?;
    let known = match given {
        Some(Grid { ni, nj, nk, .. }) => {
            let known = [Some(nj), Some(ni), Some(nk)];
            claims.iter().try_for_each(|claim| claim.check(known, &|_| "the given grid has".to_owned()))?;
            known
        }
        None => agreed(&claims)?,
    };
    let needs_levels = fields(stencil).any(|field| field.place.levels != Levels::None);
    match known {
        [Some(nj), Some(ni), Some(nk)] => checked(Grid::rows(ni, nj, nk)),
        // A stencil without levels has one.
        [Some(nj), Some(ni), None] if !needs_levels => checked(Grid::rows(ni, nj, 1)),
        _ => Err(Error::call(format!("the extents of the grid are not known for stencil `{}`", stencil.name)).help(
            format!(
                "give --grid NIxNJxNK (halo included), or the inputs as arrays: --in {0}={0}.npy",
                fields(stencil).find(|field| field.role.is_read()).map_or("phi", |field| field.name.as_str())
            ),
        )),
    }
}

/// The extents that all arrays agree on.
///
/// # Errors
/// They do not. Where more than half of them agree, the others are wrong; where no side has more, nobody is blamed.
fn agreed(claims: &[Claim]) -> Result<Known> {
    let mut tie = None;
    for axis in 0..AXES.len() {
        let said = || claims.iter().filter_map(|claim| Some((claim, claim.extents[axis]?)));
        let Some((first, _)) = said().next() else { continue };
        let Some((second, _)) = said().find(|(_, n)| Some(*n) != first.extents[axis]) else { continue };
        let votes = |n: usize| said().filter(|(_, other)| *other == n).count();
        let usual = said().map(|(_, n)| n).find(|&n| 2 * votes(n) > said().count());
        let Some(usual) = usual else {
            tie = tie.or(Some((axis, first, second)));
            continue;
        };
        let Some((odd, _)) = said().find(|(_, n)| *n != usual) else { continue };
        // What it should be is what those say that are not odd, if they say one thing.
        let others = || claims.iter().filter(|claim| claim.extents[axis].is_none_or(|n| n == usual));
        let known = [0, 1, 2].map(|axis| {
            let mut extents = others().filter_map(|claim| claim.extents[axis]);
            let first = extents.next()?;
            extents.all(|n| n == first).then_some(first)
        });
        let who = |axis: usize| {
            let names = others().filter(|claim| claim.extents[axis].is_some()).map(|claim| claim.field.name.as_str());
            match names.collect::<Vec<_>>().as_slice() {
                [one] => format!("`{one}` has"),
                many => format!("`{}` have", many.join("`, `")),
            }
        };
        odd.check(known, &who)?;
    }
    match tie {
        Some((axis, first, second)) => Err(differ(axis, first, second)),
        None => Ok([0, 1, 2].map(|axis| claims.iter().find_map(|claim| claim.extents[axis]))),
    }
}

/// Two arrays that cannot both be right, and nobody knows which is wrong.
fn differ(axis: usize, first: &Claim, second: &Claim) -> Error {
    // The one on interfaces is the one whose level is easily forgotten.
    if AXES[axis] == "k"
        && let Some((interfaces, other)) =
            [(first, second), (second, first)].into_iter().find(|(own, _)| own.is_on_interfaces())
        && let (Some(nk), false) = (other.extents[axis], other.is_on_interfaces())
    {
        let levels = interfaces.extents[axis].unwrap_or(0) + 1;
        return levels_missing(interfaces.field, levels, nk, &format!("`{}` has", other.field.name));
    }
    let [said, other] = [first, second].map(|claim| claim.extents[axis].unwrap_or(0));
    let [name, other_name] = [first, second].map(|claim| &claim.field.name);
    let shapes =
        format!("`{name}` has the shape {}, `{other_name}` {}", shape_text(first.shape), shape_text(second.shape));
    let turned = other_order(second, first.extents).or_else(|| other_order(first, second.extents));
    let error = Error::input(format!("`{name}` has {said} cells along {}, `{other_name}` has {other}", AXES[axis]));
    error.help(match turned {
        Some((turned, _)) if turned == TRANSPOSE => format!(
            "{shapes}: one of them seems to have its axes in another order than (nk, nj, ni), i fastest; in NumPy, save its {TRANSPOSE}"
        ),
        Some(_) => format!(
            "{shapes}: one of them seems to have its axes in another order than (nk, nj, ni), i fastest; `array.transpose` \
             turns it in NumPy"
        ),
        None => format!("{shapes}; arrays are (nk, nj, ni), i fastest, halo included"),
    })
}

impl<'a> Claim<'a> {
    /// What an array says about the extents.
    ///
    /// # Errors
    /// It has a shape that its field cannot have.
    fn new(field: &'a Field, shape: &'a [usize]) -> Result<Self> {
        let interfaces = field.place.levels == Levels::Interfaces;
        let (levels, rest): (Option<usize>, &[usize]) = match (field.place.levels, field.place.horizontal, shape) {
            (Levels::None, true, [_, _]) => (None, shape),
            // A level axis of size 1 may be left out.
            (Levels::None, true, [1, rest @ ..]) if rest.len() == 2 => (None, rest),
            (Levels::None, true, _) => return Err(wrong_shape(field, shape)),
            (_, true, [_, _]) if !interfaces => (Some(1), shape),
            (_, true, [levels, rest @ ..]) if rest.len() == 2 => (Some(*levels), rest),
            (_, false, [levels]) => (Some(*levels), &[]),
            _ => return Err(wrong_shape(field, shape)),
        };
        if interfaces && levels == Some(0) {
            return Err(wrong_shape(field, shape));
        }
        let (nj, ni) = match rest {
            [nj, ni] => (Some(*nj), Some(*ni)),
            _ => (None, None),
        };
        let nk = levels.map(|levels| levels - usize::from(interfaces));
        Ok(Self { field, shape, extents: [nj, ni, nk] })
    }

    fn is_on_interfaces(&self) -> bool {
        self.field.place.levels == Levels::Interfaces
    }

    /// Whether it says what is known; `who` says so along an axis: "`phi` has".
    ///
    /// # Errors
    /// It says something else.
    fn check(&self, known: Known, who: &dyn Fn(usize) -> String) -> Result<()> {
        for (axis, letter) in AXES.into_iter().enumerate() {
            let (Some(found), Some(expected)) = (self.extents[axis], known[axis]) else { continue };
            if found == expected {
                continue;
            }
            let turned = other_order(self, known);
            if letter == "k" && self.is_on_interfaces() && turned.is_none() {
                return Err(levels_missing(self.field, found + 1, expected, &who(axis)));
            }
            let error = format!("`{}` has {found} cells along {letter}, {} {expected}", self.field.name, who(axis));
            let shape = shape_text(self.shape);
            return Err(Error::input(error).help(match turned {
                Some((turned, expected)) => format!(
                    "its shape is {shape}, and {} would fit: its axes seem to be in another order; in NumPy, save {turned}",
                    shape_text(&expected)
                ),
                None if letter == "k" && self.shape.len() == 2 => format!(
                    "its shape is {shape}, which is one level; give all levels, or declare what is the same on all of them: `{} on (i, j)`",
                    self.field.name
                ),
                None => format!("its shape is {shape}; arrays are (nk, nj, ni), i fastest, halo included"),
            }));
        }
        Ok(())
    }
}

/// A field on interfaces whose array has so many `levels` beside `nk`, which somebody says: "`phi` has".
pub(super) fn levels_missing(Field { name, place, .. }: &Field, levels: usize, nk: usize, who: &str) -> Error {
    let place = place.to_string().replacen(" on", "", 1);
    Error::input(format!("`{name}` is on interfaces{place}: it needs {} levels, its array has {levels}", nk + 1)).help(
        format!("{who} {nk} levels, and there is one interface more than levels, one below each and one above all"),
    )
}

/// How NumPy turns an array around.
const TRANSPOSE: &str = "`array.T`";

/// How to turn an array whose axes seem to be in another order than (nk, nj, ni), or (nj, ni); and its shape then.
fn other_order(claim: &Claim, known: Known) -> Option<(String, Vec<usize>)> {
    let [nj, ni, nk] = known;
    let nk = nk.map(|nk| nk + usize::from(claim.is_on_interfaces()));
    let shape = claim.shape;
    let expected: Vec<usize> = match shape {
        [_, _, _] => vec![nk?, nj?, ni?],
        [_, _] => vec![nj?, ni?],
        _ => return None,
    };
    let orders: &[&[usize]] =
        if shape.len() == 3 { &[&[2, 1, 0], &[0, 2, 1], &[1, 0, 2], &[1, 2, 0], &[2, 0, 1]] } else { &[&[1, 0]] };
    if shape == expected {
        return None;
    }
    let order = orders.iter().find(|order| order.iter().map(|&axis| shape[axis]).eq(expected.iter().copied()))?;
    let turned = if order.iter().rev().copied().eq(0..shape.len()) {
        TRANSPOSE.to_owned()
    } else {
        let axes: Vec<String> = order.iter().map(usize::to_string).collect();
        format!("`array.transpose({})`", axes.join(", "))
    };
    Some((turned, expected))
}

fn wrong_shape(field: &Field, shape: &[usize]) -> Error {
    let expected = match (field.place.horizontal, field.place.levels) {
        (true, Levels::Full) => "(nk, nj, ni)",
        (true, Levels::Interfaces) => "(nk + 1, nj, ni)",
        (true, Levels::None) => "(nj, ni)",
        (false, Levels::Interfaces) => "(nk + 1)",
        (false, _) => "(nk)",
    };
    Error::input(format!("`{}` has the shape {}, expected {expected}", field.name, shape_text(shape))).help(
        format!("the field lives on every cell{}; i is the fastest axis", field.place)
            .replace("every cell on", "cells on"),
    )
}

/// `(4, 5)`
pub(super) fn shape_text(shape: &[usize]) -> String {
    let axes: Vec<String> = shape.iter().map(usize::to_string).collect();
    format!("({})", axes.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stencilc_compiler::source::Source;

    /// What is said of arrays of these shapes, message and advice, or the grid.
    fn said(fields: &str, shapes: &[(&str, &[usize])]) -> String {
        let inputs: Vec<&str> = shapes.iter().map(|(name, _)| *name).collect();
        let text = format!("stencil s {{ {fields}; out r; r = {} }}", inputs.join(" + "));
        let checked = stencilc_compiler::check(&Source::new("s.stn", &text));
        let stencil = checked.stencils.into_iter().next().unwrap_or_else(|| panic!("{:?}", checked.diagnostics));
        let shape = |name: &str| shapes.iter().find(|(own, _)| *own == name).map(|(_, shape)| *shape);
        match find(&stencil, None, &shape) {
            Ok(grid) => grid.to_string(),
            Err(error) => format!("{}: {}", error.message, error.help.unwrap_or_default()),
        }
    }

    #[test]
    fn the_odd_one_out_is_blamed_wherever_it_stands() {
        let turned: (&str, &[usize]) = ("u", &[64, 48, 6]);
        let others: [(&str, &[usize]); 2] = [("v", &[6, 48, 64]), ("map", &[48, 64])];
        for at in 0..3 {
            let mut shapes = others.to_vec();
            shapes.insert(at, turned);
            let said = said("in u; in v; in map on (i, j)", &shapes);
            assert!(
                said.starts_with("`u` has 6 cells along i, `v`, `map` have 64: its shape is (64, 48, 6)"),
                "{said}"
            );
            assert!(said.ends_with("in NumPy, save `array.T`"), "{said}");
        }
        let said = said("in a; in b; in c", &[("a", &[5, 6, 7]), ("b", &[5, 6, 8]), ("c", &[5, 6, 8])]);
        assert!(said.starts_with("`a` has 7 cells along i, `b`, `c` have 8: its shape"), "{said}");
    }

    #[test]
    fn of_two_nobody_is_blamed() {
        let both = said("in u; in v", &[("u", &[64, 48, 6]), ("v", &[6, 48, 64])]);
        assert!(
            both.starts_with("`u` has 6 cells along i, `v` has 64: `u` has the shape (64, 48, 6), `v` (6, 48, 64)")
        );
        assert!(
            both.contains("one of them seems to have its axes in another order")
                && both.ends_with("save its `array.T`")
        );
        let size = said("in u; in v", &[("u", &[6, 48, 64]), ("v", &[6, 48, 65])]);
        assert!(size.contains("arrays are (nk, nj, ni)") && !size.contains("seems"), "{size}");
    }

    #[test]
    fn interfaces_are_one_more_than_levels() {
        let fields = "in c; in h on (i, j, k+1)";
        assert_eq!(said(fields, &[("c", &[20, 12, 16]), ("h", &[21, 12, 16])]), "16x12x20");
        let few = said(fields, &[("c", &[20, 12, 16]), ("h", &[20, 12, 16])]);
        assert!(
            few.starts_with("`h` is on interfaces (i, j, k+1): it needs 21 levels, its array has 20: `c` has 20"),
            "{few}"
        );
        let lone = said("in c; in h on (k+1)", &[("c", &[20, 12, 16]), ("h", &[20])]);
        assert!(lone.starts_with("`h` is on interfaces (k+1): it needs 21 levels, its array has 20"), "{lone}");
    }

    #[test]
    fn one_level_among_several_is_not_turned() {
        let said = said("in a; in b; in c", &[("a", &[8, 8]), ("b", &[4, 8, 8]), ("c", &[4, 8, 8])]);
        assert!(
            said.ends_with(
                "its shape is (8, 8), which is one level; give all levels, or declare what is the same on all of them: `a on (i, j)`"
            ),
            "{said}"
        );
    }

    #[test]
    fn shapes_are_those_of_the_axes() {
        let fields = "in a; in b on (i, j); in c on (k); in d on (k+1)";
        for flat in [&[4, 5][..], &[1, 4, 5]] {
            let grid = said(fields, &[("a", &[3, 4, 5]), ("b", flat), ("c", &[3]), ("d", &[4])]);
            assert_eq!(grid, "5x4x3");
        }
    }
}
