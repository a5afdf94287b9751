//! The extents of a grid in rows, from what is given and the shapes of arrays.

use super::{checked, fields};
use crate::array::Array;
use crate::error::{Error, Result};
use std::collections::BTreeMap;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::{Field, Levels, Stencil};

/// What arrays say about the extents: each with the field that says so.
#[derive(Default)]
struct Extents {
    ni: Option<(usize, String)>,
    nj: Option<(usize, String)>,
    nk: Option<(usize, String)>,
}

/// The grid.
///
/// # Errors
/// An array has a shape that its field cannot have, or another than the others or `given` say; an extent is not known.
pub(super) fn find(stencil: &Stencil, given: Option<Grid>, arrays: &BTreeMap<String, Array>) -> Result<Grid> {
    let mut extents = Extents::default();
    if let Some(Grid { ni, nj, nk, .. }) = given {
        let said = |n| Some((n, "--grid".to_owned()));
        extents = Extents { ni: said(ni), nj: said(nj), nk: said(nk) };
    }
    for field in fields(stencil) {
        if let Some(array) = arrays.get(&field.name) {
            read_extents(field, &array.shape, &mut extents)?;
        }
    }
    let needs_levels = fields(stencil).any(|field| field.place.levels != Levels::None);
    match (extents.ni, extents.nj, extents.nk) {
        (Some((ni, _)), Some((nj, _)), Some((nk, _))) => checked(Grid::rows(ni, nj, nk)),
        // A stencil without levels has one.
        (Some((ni, _)), Some((nj, _)), None) if !needs_levels => checked(Grid::rows(ni, nj, 1)),
        _ => Err(Error::call(format!("the extents of the grid are not known for stencil `{}`", stencil.name)).help(
            format!(
                "give --grid NIxNJxNK (halo included), or the inputs as arrays: --in {0}={0}.npy",
                fields(stencil).find(|field| field.role.is_read()).map_or("phi", |field| field.name.as_str())
            ),
        )),
    }
}

fn read_extents(field: &Field, shape: &[usize], extents: &mut Extents) -> Result<()> {
    let name = &field.name;
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
    let other_order = other_order(shape, extents, interfaces);
    let agree = |axis: &str, found: usize, known: &mut Option<(usize, String)>| match known {
        Some((expected, source)) if *expected != found => Err(Error::input(format!(
            "`{name}` has {found} cells along {axis}, {} {expected}",
            if source == "--grid" { "--grid says".to_owned() } else { format!("`{source}` has") }
        ))
        .help(other_order.clone().unwrap_or_else(|| {
            format!("its shape is {}; arrays are (nk, nj, ni), i fastest, halo included", shape_text(shape))
        }))),
        Some(_) => Ok(()),
        None => {
            *known = Some((found, name.clone()));
            Ok(())
        }
    };
    if let [nj, ni] = rest {
        agree("j", *nj, &mut extents.nj)?;
        agree("i", *ni, &mut extents.ni)?;
    }
    match levels {
        Some(0) if interfaces => Err(wrong_shape(field, shape)),
        Some(levels) => agree("k", levels - usize::from(interfaces), &mut extents.nk),
        None => Ok(()),
    }
}

/// How to turn an array whose axes seem to be in another order than (nk, nj, ni), or (nj, ni).
fn other_order(shape: &[usize], extents: &Extents, interfaces: bool) -> Option<String> {
    let known = |extent: &Option<(usize, String)>| extent.as_ref().map(|(n, _)| *n);
    let nk = known(&extents.nk).map(|nk| nk + usize::from(interfaces));
    let expected: Vec<usize> = match shape {
        [_, _, _] => vec![nk?, known(&extents.nj)?, known(&extents.ni)?],
        [_, _] => vec![known(&extents.nj)?, known(&extents.ni)?],
        _ => return None,
    };
    let orders: &[&[usize]] =
        if shape.len() == 3 { &[&[2, 1, 0], &[0, 2, 1], &[1, 0, 2], &[1, 2, 0], &[2, 0, 1]] } else { &[&[1, 0]] };
    let order = orders.iter().find(|order| order.iter().map(|&axis| shape[axis]).eq(expected.iter().copied()))?;
    let turned = if order.iter().rev().copied().eq(0..shape.len()) {
        "`array.T`".to_owned()
    } else {
        let axes: Vec<String> = order.iter().map(usize::to_string).collect();
        format!("`array.transpose({})`", axes.join(", "))
    };
    Some(format!(
        "its shape is {}, and {} would fit: its axes seem to be in another order; in NumPy, save {turned}",
        shape_text(shape),
        shape_text(&expected)
    ))
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
