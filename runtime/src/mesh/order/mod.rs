//! Orderings of a mesh: new numbers for its elements, so that what is used together lies together.
//!
//! One set leads: a method puts its elements in order, by its graph or by coordinates. The other sets follow: their
//! elements stand in the order of the elements that they are tied to. Every ordering is the same on every machine and for
//! any number of threads.

pub mod auto;
mod follow;
mod gps;
mod graph;
mod hilbert;
mod levels;
mod measure;
mod metis;
mod none;
mod position;
mod random;
mod rcm;
mod record;
mod renumber;

use super::Mesh;
use crate::error::{Error, Result};
pub use graph::{Bandwidth, Graph};
pub use measure::{Measures, Reuse};
pub use position::positions;
pub use record::{BLOCK, NUMBER, recorded_cuts};
pub use renumber::inverse;

/// The part of each element of a set, of so many parts with few neighbours outside; none is empty if there are enough elements.
///
/// # Errors
/// The set, or a map to it, is too large.
pub(super) fn parts(mesh: &Mesh, set: usize, count: usize) -> Result<Vec<u32>> {
    metis::parts(&Graph::of(mesh, set)?, count)
}

/// Every method, in the order that lists show.
pub const METHODS: &[&dyn Method] = &[
    &none::Kept,
    &rcm::ReverseCuthillMckee,
    &gps::GibbsPooleStockmeyer,
    &hilbert::Hilbert,
    &metis::Metis,
    &random::Random,
];

/// A way to put a mesh in order.
pub trait Method: Sync {
    /// What the command line calls it.
    fn name(&self) -> &'static str;

    /// One line about it.
    fn summary(&self) -> &'static str;

    /// An ordering of all sets of a mesh.
    ///
    /// # Errors
    /// The mesh lacks what the method needs.
    fn ordering(&self, mesh: &Mesh, options: &Options) -> Result<Ordering>;
}

/// What methods go by.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The number of the set that leads.
    pub lead: usize,
    /// The field of coordinates; if not given, the one of a usual name.
    pub coordinates: Option<&'a str>,
    /// What orders at random begin with.
    pub seed: u64,
    /// Elements of a block, where there are blocks: at most so many.
    pub block: usize,
}

impl Options<'_> {
    /// What is usual, for a set that leads.
    pub fn new(lead: usize) -> Self {
        Self { lead, coordinates: None, seed: 0, block: 256 }
    }
}

/// An order for each set of a mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ordering {
    /// For each set, the old number of each new one: `orders[set][new]`.
    pub orders: Vec<Vec<u32>>,
    /// The blocks that it makes, if it does.
    pub cuts: Option<Cuts>,
}

/// How an ordering cuts the set that leads into blocks. They have not all the same size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cuts {
    /// The number of the set.
    pub set: usize,
    /// Where blocks begin, in the new order, and at last where all end: for [`super::lists::Cut::At`].
    pub starts: Vec<u32>,
}

impl Ordering {
    /// Whether it is one of a mesh: each set has an order, in which each of its elements stands once, and blocks follow each other.
    ///
    /// # Errors
    /// It is not.
    pub fn check(&self, mesh: &Mesh) -> Result<()> {
        if self.orders.len() != mesh.sets.len() {
            let (own, sets) = (self.orders.len(), mesh.sets.len());
            return Err(Error::call(format!("the ordering has {own} orders, and the mesh {sets} sets")));
        }
        for (order, set) in self.orders.iter().zip(&mesh.sets) {
            let mut seen = vec![false; set.size];
            let is_new = |&old: &u32| seen.get_mut(old as usize).is_some_and(|seen| !std::mem::replace(seen, true));
            if order.len() != set.size || !order.iter().all(is_new) {
                return Err(Error::call(format!(
                    "the order of `{}` does not hold each of its elements once",
                    set.name
                )));
            }
        }
        let Some(Cuts { set, starts }) = &self.cuts else { return Ok(()) };
        let size = mesh.sets.get(*set).map(|set| set.size);
        let ends = (starts.first().map(|&start| start as usize), starts.last().map(|&end| Some(end as usize)));
        match ends == (Some(0), Some(size)) && starts.is_sorted() {
            true => Ok(()),
            false => Err(Error::call("the blocks of the ordering do not follow each other from 0 to the end of a set")),
        }
    }

    /// Every element keeps its number.
    pub fn kept(mesh: &Mesh) -> Self {
        Self { orders: mesh.sets.iter().map(|set| (0..set.size as u32).collect()).collect(), cuts: None }
    }

    /// One set has this order, and the others follow it.
    ///
    /// # Errors
    /// A map is too large for its inverse.
    pub fn led(mesh: &Mesh, lead: usize, order: Vec<u32>) -> Result<Self> {
        Ok(Self { orders: follow::following(mesh, lead, order)?, cuts: None })
    }

    /// The new number of each old one, for each set.
    pub fn inverses(&self) -> Vec<Vec<u32>> {
        self.orders.iter().map(|order| inverse(order)).collect()
    }
}

/// The method called `name`.
///
/// # Errors
/// There is none: a message with a guess.
pub fn find(name: &str) -> Result<&'static dyn Method> {
    stencilc_compiler::registry::find(METHODS, |method| method.name(), name, "method").map_err(Error::call)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::sample;

    /// Random meshes with coordinates for the set that leads, wherever that is possible.
    fn each_sample(check: impl Fn(&Mesh, &Options)) {
        for seed in 0..150 {
            let mesh = sample::random(seed);
            for lead in 0..mesh.sets.len() {
                let mut mesh = mesh.clone();
                let mut random = fastrand::Rng::with_seed(seed);
                let x = (0..2 * mesh.sets[lead].size).map(|_| random.f64()).collect();
                let (name, data) = ("x".to_owned(), crate::array::Data::F64(x));
                mesh.fields.push(super::super::Field { name, set: lead, map: None, parts: 2, data });
                check(&mesh, &Options { seed, block: 16, ..Options::new(lead) });
            }
        }
    }

    #[test]
    fn every_method_gives_permutations() {
        each_sample(|mesh, options| {
            for method in METHODS {
                let ordering = method.ordering(mesh, options).unwrap();
                assert_eq!(ordering.orders.len(), mesh.sets.len());
                for (order, set) in ordering.orders.iter().zip(&mesh.sets) {
                    let mut sorted = order.clone();
                    sorted.sort_unstable();
                    assert!(
                        sorted.into_iter().eq(0..set.size as u32),
                        "{} of {}, {}",
                        method.name(),
                        mesh.origin,
                        set.name
                    );
                }
            }
        });
    }

    #[test]
    fn the_number_of_threads_does_not_matter() {
        let pools = [1, 3].map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap());
        let mut mesh = sample::quads(150, 70);
        mesh = METHODS[METHODS.len() - 1].ordering(&mesh, &Options::new(2)).unwrap().renumbered(&mesh);
        for method in METHODS {
            let [one, other] =
                pools.each_ref().map(|pool| pool.install(|| method.ordering(&mesh, &Options::new(2)).unwrap()));
            assert!(one == other, "{}", method.name());
        }
    }

    #[test]
    fn locality_comes_back_after_a_random_order() {
        let mesh = sample::quads(60, 40);
        let options = Options::new(2);
        let shuffled = find("random").unwrap().ordering(&mesh, &options).unwrap().renumbered(&mesh);
        let bandwidth = |mesh: &Mesh| Graph::of(mesh, 2).unwrap().bandwidth();
        let before = bandwidth(&shuffled);
        assert!(before.max > 2000 && before.mean > 600.0, "{before:?}");
        for (name, max, mean) in [("rcm", 41, 32.0), ("gps", 41, 32.0), ("hilbert", 2400, 60.0), ("metis", 2400, 60.0)]
        {
            let mesh = find(name).unwrap().ordering(&shuffled, &options).unwrap().renumbered(&shuffled);
            let after = bandwidth(&mesh);
            assert!(after.max <= max && after.mean <= mean, "{name}: {after:?}");
            // Edges and nodes lie near their cells.
            for map in [1, 2] {
                let map = &mesh.maps[map];
                let place = |number: i32, set: usize| number as usize * 1000 / mesh.sets[set].size;
                let far = (0..mesh.sets[map.from].size).flat_map(|element| {
                    map.row(element).iter().map(move |&to| place(to, map.to).abs_diff(place(element as i32, map.from)))
                });
                let (sum, count) = far.fold((0, 0), |(sum, count), far| (sum + far, count + 1));
                assert!(sum / count < 40, "{name}: {} of 1000", sum / count);
            }
        }
        let none = find("none").unwrap().ordering(&shuffled, &options).unwrap().renumbered(&shuffled);
        assert_eq!(none, shuffled);
    }

    #[test]
    fn an_unknown_method_is_guessed() {
        let Err(error) = find("hilbrt") else { panic!("there is none") };
        assert_eq!(error.message, "there is no method `hilbrt`; did you mean `hilbert`?");
    }
}
