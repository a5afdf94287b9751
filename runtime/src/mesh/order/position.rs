//! Where elements are.

use crate::array::{Data, Element};
use crate::error::{Error, Result};
use crate::mesh::inverse::Inverse;
use crate::mesh::slots::Slot;
use crate::mesh::{Field, HOLE, Mesh};
use rayon::prelude::*;

/// What fields of coordinates are called, where none is named.
const NAMES: &[&str] = &["x", "xyz", "xy", "coordinates", "points", "centre", "center"];

/// A point; in the plane, the last part is 0. NaN where nothing is known.
pub type Point = [f64; 3];

const UNKNOWN: Point = [f64::NAN; 3];

/// The positions of a set's elements: of the field of coordinates itself if it is on the set, else the means of the
/// positions of the elements that they are tied to.
///
/// # Errors
/// There is no field of coordinates, it holds no real numbers in 2 or 3 parts, one of them is not finite, no map ties the
/// set to the field's, or a map is too large for its inverse.
pub fn positions(mesh: &Mesh, set: usize, coordinates: Option<&str>) -> Result<Vec<Point>> {
    let field = field(mesh, set, coordinates)?;
    let points = points(mesh, field)?;
    let mut known: Vec<Option<Vec<Point>>> = vec![None; mesh.sets.len()];
    known[field.set] = Some(points);
    while known[set].is_none() {
        let mut round = Vec::new();
        for next in (0..mesh.sets.len()).filter(|&next| known[next].is_none()) {
            round.extend(means(mesh, next, &known)?.map(|points| (next, points)));
        }
        if round.is_empty() {
            let (name, on) = (&field.name, &mesh.sets[field.set].name);
            let message = format!("`{name}` is on {on}, and no map ties `{}` to that", mesh.sets[set].name);
            return Err(
                Error::input(message).help("let a set lead that the coordinates are on, or that maps tie to it")
            );
        }
        round.into_iter().for_each(|(next, points)| known[next] = Some(points));
    }
    Ok(known.swap_remove(set).unwrap_or_default())
}

fn is_coordinates(field: &Field) -> bool {
    field.map.is_none() && matches!(field.parts, 2 | 3) && matches!(field.data.element(), Element::F32 | Element::F64)
}

/// The field of coordinates: the one that is named, else one of a usual name, best on the set itself.
fn field<'a>(mesh: &'a Mesh, set: usize, name: Option<&str>) -> Result<&'a Field> {
    let fit = || mesh.fields.iter().filter(|field| is_coordinates(field));
    // Sets may have fields of one name each.
    let called = |name: &str| fit().filter(|field| field.name == name).min_by_key(|field| field.set != set);
    let found = match name {
        Some(name) => {
            if mesh.field_named(name).is_some() && called(name).is_none() {
                return Err(Error::call(format!("`{name}` is no field of coordinates"))
                    .help("coordinates are real numbers, 2 or 3 for each element of a set"));
            }
            called(name)
        }
        None => NAMES.iter().filter_map(|&name| called(name)).min_by_key(|field| field.set != set),
    };
    found.ok_or_else(|| {
        let message = match name {
            Some(name) => format!("{} has no field `{name}`", mesh.origin),
            None => format!("{} has no field of coordinates: none is called {}", mesh.origin, NAMES.join(", ")),
        };
        let names: Vec<String> = fit().map(|field| format!("`{}`", field.name)).collect();
        match names.is_empty() {
            true => Error::call(message).help("no field has real numbers in 2 or 3 parts; `rcm` needs no coordinates"),
            false => Error::call(message).help(format!("real numbers in 2 or 3 parts: {}", names.join(", "))),
        }
    })
}

fn points(mesh: &Mesh, field: &Field) -> Result<Vec<Point>> {
    let at = |element: usize| {
        let part = |part: usize| if part < field.parts { field.data.get(element * field.parts + part) } else { 0.0 };
        [part(0), part(1), part(2)]
    };
    let size = mesh.sets[field.set].size;
    let points: Vec<Point> = (0..size).into_par_iter().map(at).collect();
    match points.par_iter().position_first(|point| !point.iter().all(|part| part.is_finite())) {
        None => Ok(points),
        Some(element) => {
            let (name, set) = (&field.name, &mesh.sets[field.set].name);
            let parts: Vec<String> =
                (0..field.parts).map(|part| Data::text(&field.data, element * field.parts + part)).collect();
            Err(Error::input(format!("`{name}` of {set} {element} is no place: {}", parts.join(", "))))
        }
    }
}

/// The means of the positions of what elements of a set are tied to, if maps tie it to sets whose positions are known:
/// through its own maps if there are such, else the other way round.
fn means(mesh: &Mesh, set: usize, known: &[Option<Vec<Point>>]) -> Result<Option<Vec<Point>>> {
    let to = |from: usize| known[from].as_ref();
    for map in mesh.maps.iter().filter(|map| map.from == set) {
        if let Some(points) = to(map.to) {
            let of = |element: usize| {
                mean(map.row(element).iter().filter(|&&target| target != HOLE).map(|&target| points[target as usize]))
            };
            return Ok(Some((0..mesh.sets[set].size).into_par_iter().map(of).collect()));
        }
    }
    for (number, map) in mesh.maps.iter().enumerate().filter(|(_, map)| map.to == set) {
        if let Some(points) = to(map.from) {
            let inverse = Inverse::new(mesh, &Slot::all(mesh, number), None)?;
            let of = |element: usize| mean(inverse.of(element).iter().map(|&entry| points[inverse.element(entry)]));
            return Ok(Some((0..mesh.sets[set].size).into_par_iter().map(of).collect()));
        }
    }
    Ok(None)
}

/// The mean of the points that are known.
fn mean(points: impl Iterator<Item = Point>) -> Point {
    let (mut sum, mut count) = ([0.0; 3], 0.0);
    for point in points.filter(|point| !point[0].is_nan()) {
        (0..3).for_each(|part| sum[part] += point[part]);
        count += 1.0;
    }
    if count > 0.0 { sum.map(|part| part / count) } else { UNKNOWN }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::sample;

    #[test]
    fn positions_are_means() {
        let mut mesh = sample::quads(3, 2);
        assert_eq!(positions(&mesh, 0, None).unwrap()[5], [1.0, 1.0, 0.0]);
        assert_eq!(positions(&mesh, 1, Some("x")).unwrap()[0], [1.0, 0.5, 0.0]);
        assert_eq!(positions(&mesh, 2, None).unwrap()[4], [1.5, 1.5, 0.0]);
        // Without its map to nodes, a cell is where its edges are.
        mesh.maps.remove(2);
        assert_eq!(positions(&mesh, 2, None).unwrap()[0], [0.75, 0.75, 0.0]);
        // What the set has itself is the best.
        let cells = Data::F32(vec![5.0; 12]);
        mesh.fields.push(Field { name: "x".to_owned(), set: 2, map: None, parts: 2, data: cells });
        assert_eq!(positions(&mesh, 2, None).unwrap(), positions(&mesh, 2, Some("x")).unwrap());
        assert_eq!(positions(&mesh, 2, None).unwrap()[0], [5.0, 5.0, 0.0]);
        mesh.fields.pop();
        // A hole tells nothing.
        mesh.maps[1].table[0] = HOLE;
        assert_eq!(positions(&mesh, 2, None).unwrap()[0], [0.5, 1.0, 0.0]);
        mesh.maps[1].table.fill(HOLE);
        assert!(positions(&mesh, 2, None).unwrap()[0][0].is_nan());
    }

    #[test]
    fn what_is_missing_is_said() {
        let mut mesh = sample::quads(3, 2);
        let fails = |mesh: &Mesh, name| positions(mesh, 2, name).unwrap_err().to_string();
        insta::assert_snapshot!(fails(&mesh, Some("y")), @r"
        made of 3 x 2 squares has no field `y`
          help: real numbers in 2 or 3 parts: `x`
        ");
        mesh.fields[0].name = "where".to_owned();
        insta::assert_snapshot!(fails(&mesh, None), @r"
        made of 3 x 2 squares has no field of coordinates: none is called x, xyz, xy, coordinates, points, centre, center
          help: real numbers in 2 or 3 parts: `where`
        ");
        mesh.fields[0].data = Data::F64(vec![f64::NAN; 24]);
        insta::assert_snapshot!(fails(&mesh, Some("where")), @"`where` of node 0 is no place: NaN, NaN");
        mesh.fields[0].data = Data::I32(vec![1; 24]);
        insta::assert_snapshot!(fails(&mesh, Some("where")), @r"
        `where` is no field of coordinates
          help: coordinates are real numbers, 2 or 3 for each element of a set
        ");
        insta::assert_snapshot!(fails(&mesh, None), @r"
        made of 3 x 2 squares has no field of coordinates: none is called x, xyz, xy, coordinates, points, centre, center
          help: no field has real numbers in 2 or 3 parts; `rcm` needs no coordinates
        ");
        let mut mesh = sample::quads(3, 2);
        mesh.maps.retain(|map| map.to != 0);
        insta::assert_snapshot!(fails(&mesh, None), @r"
        `x` is on node, and no map ties `cell` to that
          help: let a set lead that the coordinates are on, or that maps tie to it
        ");
    }
}
