//! At random: the worst there is, to measure with.

use super::{Method, Options, Ordering};
use crate::array::{Data, Element};
use crate::error::Result;
use crate::mesh::Mesh;
use rayon::prelude::*;

/// Every set is shuffled by itself; nothing follows.
pub struct Random;

impl Method for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn summary(&self) -> &'static str {
        "every set at random, the same for a seed: no locality at all"
    }

    fn ordering(&self, mesh: &Mesh, options: &Options) -> Result<Ordering> {
        let shuffled = |set: &crate::mesh::Set| {
            let Data::F64(keys) = crate::random::fill(Element::F64, set.size, 0.0, 1.0, options.seed, &set.name) else {
                unreachable!("doubles were asked for")
            };
            let mut order: Vec<u32> = (0..set.size as u32).collect();
            // Where keys are equal, the old order decides: no two sorts differ.
            let key = |number: u32| keys[number as usize];
            order.par_sort_unstable_by(|&a, &b| key(a).total_cmp(&key(b)).then(a.cmp(&b)));
            order
        };
        Ok(Ordering { orders: mesh.sets.iter().map(shuffled).collect(), cuts: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::sample;

    #[test]
    fn seeds_differ_and_repeat() {
        let mesh = sample::quads(10, 10);
        let of = |seed| Random.ordering(&mesh, &Options { seed, ..Options::new(0) }).unwrap().orders;
        assert_eq!(of(1), of(1));
        assert_ne!(of(1)[0], of(2)[0]);
        let moved = of(1)[2].iter().zip(0..).filter(|&(&old, new)| old != new).count();
        assert!(moved > 90, "{moved}");
    }
}
