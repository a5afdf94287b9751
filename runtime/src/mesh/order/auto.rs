//! Whether the elements of a mesh are worth new numbers, and by which method.
//!
//! The threads of a warp read together what 32 elements lead to that follow each other. Memory comes in sectors of 32 bytes, of
//! four numbers in double precision. A mesh whose numbering is local fills the sectors that it touches.
//!
//! Where the levels of an element follow each other, sectors are full whatever the numbering. Then it is the elements at work at once
//! that should lead to few others, whose columns come from memory once.

use super::{Method, Options, Ordering, find};
use crate::error::Result;
use crate::mesh::{HOLE, Map, Mesh};
use rayon::prelude::*;
use stencilc_compiler::gpu::{self, WARP};

/// What the command line calls this choice.
pub const AUTO: &str = "auto";

/// One line about it.
pub const SUMMARY: &str =
    "none if the numbering is local as it is, else hilbert, or rcm where there are no coordinates";

/// What the numbering of a mesh is looked at for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touched {
    /// Numbers of elements that follow each other.
    Sectors,
    /// Columns of levels.
    Columns,
}

/// Numbers of a sector.
const SECTOR: i32 = (gpu::SECTOR / size_of::<f64>()) as i32;

/// Elements whose columns are at work at once.
const AT_WORK: usize = 4096;

/// So many warps of a map are looked at, at most; and so many times as many elements.
const WARPS: usize = 4096;

/// Up to so many sectors for one that would be full, a numbering is local. What is made row by row has less than 2, what is at random
/// nearly 4.
const LOCAL: f64 = 2.0;

/// The same for columns.
const LOCAL_COLUMNS: f64 = 1.1;

/// New numbers have to save so much.
const WORTH: f64 = 0.9;

/// How many sectors or columns elements touch that are at work together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Locality {
    /// Sectors that a warp touches, added up; or columns.
    pub touched: u64,
    /// Sectors that what it leads to would fill; or columns that there are for so many elements of all.
    pub filled: u64,
}

impl Locality {
    /// Through some maps of a mesh.
    pub fn new(mesh: &Mesh, maps: &[usize], touched: Touched) -> Self {
        let each = maps.iter().map(|&map| match touched {
            Touched::Sectors => Self::of_map(&mesh.maps[map]),
            Touched::Columns => Self::of_columns(mesh, &mesh.maps[map]),
        });
        each.fold(Self::default(), Self::and)
    }

    fn of_columns(mesh: &Mesh, map: &Map) -> Self {
        let elements = AT_WORK * map.arity.max(1);
        let stretches = map.table.len().div_ceil(elements);
        let looked_at = stretches.min(WARPS * WARP / AT_WORK);
        let all = mesh.sets[map.from].size.max(1);
        let of = |number: usize| {
            let first = (number * stretches / looked_at) * elements;
            let own = &map.table[first..map.table.len().min(first + elements)];
            let mut to: Vec<i32> = own.iter().copied().filter(|&to| to != HOLE).collect();
            to.sort_unstable();
            to.dedup();
            let share = own.len() / map.arity.max(1) * mesh.sets[map.to].size / all;
            Self { touched: to.len() as u64, filled: share.min(to.len()) as u64 }
        };
        (0..looked_at).into_par_iter().map(of).reduce(Self::default, Self::and)
    }

    fn of_map(map: &Map) -> Self {
        let warp = WARP * map.arity.max(1);
        let warps = map.table.len().div_ceil(warp);
        let looked_at = warps.min(WARPS);
        // Evenly spread over all.
        let of = |number: usize| {
            let first = (number * warps / looked_at) * warp;
            let mut to: Vec<i32> = map.table[first..map.table.len().min(first + warp)].to_vec();
            to.retain(|&to| to != HOLE);
            to.sort_unstable();
            to.dedup();
            let filled = to.len().div_ceil(SECTOR as usize) as u64;
            to.iter_mut().for_each(|to| *to /= SECTOR);
            to.dedup();
            Self { touched: to.len() as u64, filled }
        };
        (0..looked_at).into_par_iter().map(of).reduce(Self::default, Self::and)
    }

    fn and(self, other: Self) -> Self {
        Self { touched: self.touched + other.touched, filled: self.filled + other.filled }
    }

    /// Sectors that are touched for each that would be full: 1 is the best, 4 the worst. Or columns for each that there is.
    pub fn ratio(self) -> f64 {
        if self.filled == 0 { 1.0 } else { self.touched as f64 / self.filled as f64 }
    }
}

/// What was chosen.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The method's name.
    pub method: &'static str,
    /// Why, in a line.
    pub why: String,
    /// The new numbers.
    pub ordering: Ordering,
}

/// Chooses an order for a mesh that is looked at through some of its maps.
///
/// # Errors
/// A map is too large for its inverse.
pub fn choose(mesh: &Mesh, maps: &[usize], touched: Touched, options: &Options) -> Result<Chosen> {
    let given = Locality::new(mesh, maps, touched);
    let kept = |why: String| Chosen { method: "none", why, ordering: Ordering::kept(mesh) };
    let (touch, local, what) = match touched {
        Touched::Sectors => ("a warp touches".to_owned(), LOCAL, "sectors for each that it could fill"),
        Touched::Columns => (
            format!("{AT_WORK} elements that follow each other lead to"),
            LOCAL_COLUMNS,
            "times the columns that are their share",
        ),
    };
    if given.ratio() <= local {
        return Ok(kept(format!("the numbering is local as it is: {touch} {:.1} {what}", given.ratio())));
    }
    let [hilbert, rcm] = ["hilbert", "rcm"].map(find);
    let (hilbert, rcm): (&dyn Method, &dyn Method) = (hilbert?, rcm?);
    let (method, has, ordering) = match hilbert.ordering(mesh, options) {
        Ok(ordering) => (hilbert.name(), "there are coordinates", ordering),
        Err(_) => (rcm.name(), "there are no coordinates", rcm.ordering(mesh, options)?),
    };
    let bare = Mesh { fields: Vec::new(), ..mesh.clone() };
    let ordered = Locality::new(&ordering.renumbered(&bare), maps, touched);
    let change = format!("{:.1} {what}", given.ratio());
    if ordered.touched as f64 > WORTH * given.touched as f64 {
        return Ok(kept(format!("{touch} {change}, and {method} would not change that")));
    }
    let less = given.touched as f64 / ordered.touched.max(1) as f64;
    Ok(Chosen { method, why: format!("{touch} {change}, {less:.1} times as many as when ordered; {has}"), ordering })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::made::{Division, Perturbed, airfoil, hexahedra, icosahedral, triangles};
    use crate::mesh::sample;

    fn all(mesh: &Mesh) -> Vec<usize> {
        (0..mesh.maps.len()).collect()
    }

    fn chosen(mesh: &Mesh) -> &'static str {
        choose(mesh, &all(mesh), Touched::Sectors, &Options::new(mesh.sets.len() - 1)).unwrap().method
    }

    #[test]
    fn what_is_local_stays_and_what_is_not_is_ordered() {
        let division: Division = "R3B3".parse().unwrap();
        let still = Perturbed { by: 0.0, seed: 0 };
        let made = [
            airfoil(120, 60).unwrap(),
            icosahedral(division, 1.0).unwrap(),
            triangles(100, 70, still).unwrap(),
            hexahedra(20, 18, 16, still).unwrap(),
        ];
        for mesh in &made {
            let locality = Locality::new(mesh, &all(mesh), Touched::Sectors);
            assert_eq!(chosen(mesh), "none", "{}: {}", mesh.origin, locality.ratio());
            let random = find("random").unwrap().ordering(mesh, &Options::new(0)).unwrap().renumbered(mesh);
            let locality = Locality::new(&random, &all(mesh), Touched::Sectors);
            assert!(locality.ratio() > 3.0, "{}: {}", mesh.origin, locality.ratio());
            assert_eq!(chosen(&random), "hilbert", "{}", mesh.origin);
            let bare = Mesh { fields: Vec::new(), ..random };
            assert_eq!(chosen(&bare), "rcm", "{}", mesh.origin);
        }
    }

    #[test]
    fn columns_that_are_used_together_come_together() {
        let mesh = icosahedral("R2B4".parse().unwrap(), 1.0).unwrap();
        let ordered =
            |mesh: &Mesh, by: &str| find(by).unwrap().ordering(mesh, &Options::new(2)).unwrap().renumbered(mesh);
        let ratio = |mesh: &Mesh| Locality::new(mesh, &all(mesh), Touched::Columns).ratio();
        let chosen = |mesh: &Mesh| choose(mesh, &all(mesh), Touched::Columns, &Options::new(2)).unwrap().method;
        // Levels of refinement follow each other, which is local by sectors alone.
        let (hilbert, random) = (ordered(&mesh, "hilbert"), ordered(&mesh, "random"));
        assert!(ratio(&hilbert) < 1.1 && ratio(&mesh) > 1.4 && ratio(&random) > 2.0);
        assert_eq!([&mesh, &hilbert, &random].map(chosen), ["hilbert", "none", "hilbert"]);
    }

    #[test]
    fn any_mesh_has_an_order() {
        for seed in 0..100 {
            let mesh = sample::random(seed);
            for lead in 0..mesh.sets.len() {
                for touched in [Touched::Sectors, Touched::Columns] {
                    let chosen = choose(&mesh, &all(&mesh), touched, &Options::new(lead)).unwrap();
                    assert_eq!(chosen.ordering.orders.len(), mesh.sets.len(), "seed {seed}");
                }
            }
        }
        let nothing = Mesh::default();
        assert_eq!(Locality::new(&nothing, &[], Touched::Columns).ratio(), 1.0);
    }
}
