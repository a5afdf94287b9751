//! `--blocks`: which shapes of blocks are tried.

use super::Block;
use std::str::FromStr;
use stencilc_compiler::access::{Access, LevelsPerThread};
use stencilc_compiler::gpu::WARP;
use stencilc_compiler::plan::Choices;

/// Shapes that are often among the fastest.
const FEW: [[u32; 3]; 4] = [[64, 2, 1], [128, 1, 1], [64, 4, 1], [32, 2, 2]];

/// The same of blocks whose threads go through whole columns: small ones find room in shared memory for what sweeps keep.
const COLUMNS: [[u32; 3]; 5] = [[64, 2, 1], [128, 1, 1], [64, 4, 1], [64, 1, 1], [32, 1, 1]];

/// The same of blocks that walk along k.
const WALKING: [[u32; 3]; 4] = [[128, 4, 1], [64, 4, 1], [64, 6, 1], [128, 2, 1]];

/// Lanes of a warp: blocks of fewer threads leave some of them idle.
const LANES: u32 = WARP as u32;

/// A shape of blocks, or a word for several.
#[derive(Clone, Copy)]
pub enum Shapes {
    /// The strategy's own.
    Usual,
    /// [`FEW`], and the strategy's own.
    Few,
    /// Powers of two, 32 to 512 threads, at least a warp along x, or what the strategy usually has there if that is less: as
    /// in A. Roesti, "Efficient GPU Implementation of Stencils on Unstructured Grids" (ETH Zurich, 2020).
    Thesis,
    /// Powers of two, 32 to 1024 threads.
    All,
    /// One.
    One([u32; 3]),
}

impl FromStr for Shapes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "usual" => Ok(Self::Usual),
            "few" => Ok(Self::Few),
            "thesis" => Ok(Self::Thesis),
            "all" => Ok(Self::All),
            shape if shape.starts_with(|c: char| c.is_ascii_digit()) => {
                shape.parse::<Block>().map(|block| Self::One(block.0))
            }
            _ => Err("shapes are usual, few, thesis, all, or blocks such as 64x2x1,128x1x1".to_owned()),
        }
    }
}

impl Shapes {
    /// The blocks that are meant, for one strategy.
    fn of(self, access: &dyn Access) -> Vec<[u32; 3]> {
        let usual = access.block();
        let all = match self {
            Self::Usual => vec![usual],
            Self::Few if access.queue().is_some() => WALKING.to_vec(),
            Self::Few if access.levels(&Choices::default().knobs) == LevelsPerThread::All => {
                [COLUMNS.as_slice(), &[usual]].concat()
            }
            Self::Few => [FEW.as_slice(), &[usual]].concat(),
            Self::Thesis => powers(usual[0].min(LANES), 512),
            Self::All => powers(1, 1024),
            Self::One(block) => return vec![block],
        };
        // Blocks that walk along k are flat, and have whole warps along i.
        let is_possible = |[x, _, z]: &[u32; 3]| access.queue().is_none() || *z == 1 && x.is_multiple_of(LANES);
        all.into_iter().filter(is_possible).collect()
    }
}

/// Blocks whose extents are powers of two: at least `narrowest` along x, and at most so many threads, but a whole warp.
fn powers(narrowest: u32, most: u32) -> Vec<[u32; 3]> {
    let upto = |most: u32| (0..=most.ilog2()).map(|power| 1u32 << power);
    let wide = upto(most).filter(|&x| x >= narrowest);
    let flat = wide.flat_map(|x| upto(most / x).map(move |y| [x, y]));
    // A block has at most 64 threads along z.
    let all = flat.flat_map(|[x, y]| upto((most / (x * y)).min(64)).map(move |z| [x, y, z]));
    all.filter(|block| block.iter().product::<u32>() >= LANES).collect()
}

/// The blocks that several shapes mean, each once.
pub fn blocks(shapes: &[Shapes], access: &dyn Access) -> Vec<[u32; 3]> {
    let mut blocks = Vec::new();
    for block in shapes.iter().flat_map(|shapes| shapes.of(access)) {
        if !blocks.contains(&block) {
            blocks.push(block);
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use stencilc_compiler::access::find;
    use stencilc_compiler::plan::check_block;

    #[test]
    fn shapes_are_those_that_are_meant() {
        let count = |shapes: Shapes, access: &str| {
            let blocks = blocks(&[shapes], find(access).unwrap());
            assert!(blocks.iter().all(|&block| check_block(block).is_ok() && block.iter().product::<u32>() >= 32));
            blocks.len()
        };
        // Of 32 <= 2^(x+y+z) <= 512 with x >= 5: 15 shapes with y+z <= 4, 10 with <= 3, 6, 3 and 1.
        assert_eq!(count(Shapes::Thesis, "idxvar"), 35);
        // And with x of 8 (25 shapes, z at most 64) and 16 (20).
        assert_eq!(count(Shapes::Thesis, "warp"), 80);
        assert_eq!(count(Shapes::Few, "idxvar"), 4);
        assert_eq!(count(Shapes::Few, "warp"), 5);
        assert_eq!(count(Shapes::Few, "zloop"), 5);
        let idxvar = find("idxvar").unwrap();
        let given: Vec<Shapes> = "usual,64x2x1,128x1x1,thesis".split(',').map(|word| word.parse().unwrap()).collect();
        assert_eq!(blocks(&given, idxvar).len(), 35);
        assert_eq!(blocks(&given[..3], idxvar), [[64, 2, 1], [128, 1, 1]]);
        for wrong in ["", "many", "64", "64x2", "2048x1x1", "1x1x128"] {
            assert!(wrong.parse::<Shapes>().is_err(), "{wrong}");
        }
    }
}
