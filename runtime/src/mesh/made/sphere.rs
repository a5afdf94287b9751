//! Geometry on the unit sphere. Points are vectors of length 1.

pub(super) type Point = [f64; 3];

pub(super) fn sum(a: Point, b: Point) -> Point {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

pub(super) fn difference(a: Point, b: Point) -> Point {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

pub(super) fn dot(a: Point, b: Point) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(super) fn cross(a: Point, b: Point) -> Point {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

pub(super) fn scaled(a: Point, by: f64) -> Point {
    a.map(|part| part * by)
}

pub(super) fn unit(a: Point) -> Point {
    scaled(a, dot(a, a).sqrt().recip())
}

/// The length of the arc of a great circle between two points.
pub(super) fn arc(a: Point, b: Point) -> f64 {
    let chord = difference(a, b);
    2.0 * (0.5 * dot(chord, chord).sqrt()).min(1.0).asin()
}

/// The area of a triangle of arcs, positive where its corners go counter-clockwise seen from outside.
///
/// tan(area / 2) = a·(b × c) / (1 + a·b + b·c + c·a): F. Eriksson, "On the measure of solid angles", Mathematics Magazine 63
/// (1990), page 184. The triple product is taken of differences, which lose no digits where the triangle is small.
pub(super) fn triangle(a: Point, b: Point, c: Point) -> f64 {
    let volume = dot(a, cross(difference(b, a), difference(c, a)));
    2.0 * volume.atan2(1.0 + dot(a, b) + dot(b, c) + dot(c, a))
}

/// The point that is equally far from three, on their side of the sphere if they go counter-clockwise.
pub(super) fn circumcentre(a: Point, b: Point, c: Point) -> Point {
    unit(cross(difference(b, a), difference(c, a)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    #[test]
    fn an_octant_by_hand() {
        let [x, y, z] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        assert_eq!((triangle(x, y, z), triangle(x, z, y)), (PI / 2.0, -PI / 2.0));
        assert!((arc(x, y) - PI / 2.0).abs() < 1e-15);
        assert!(circumcentre(x, y, z).iter().all(|part| (part - 3_f64.sqrt().recip()).abs() < 1e-15));
        // A small triangle is as large as a plane one, to the third power of its size.
        let near = |u: f64, v: f64| unit([u, v, 1.0]);
        let area = triangle(near(0.0, 0.0), near(1e-6, 0.0), near(0.0, 1e-6));
        assert!((area / 5e-13 - 1.0).abs() < 1e-9, "{area}");
    }
}
