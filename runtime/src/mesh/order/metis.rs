//! By partition: blocks with few neighbours outside.

use super::graph::Graph;
use super::{Cuts, Method, Options, Ordering, rcm};
use crate::error::{Error, Result};
use crate::mesh::Mesh;
use metis::option::UFactor;
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};

/// How much larger than the others METIS may make a part, in thousandths.
const IMBALANCE: usize = 20;

/// Parts of fewer elements are not worth METIS.
const FEW: usize = 8;

/// METIS draws its random numbers from the C library, which has one sequence for all threads: two partitions at the same time
/// would take each other's.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// G. Karypis and V. Kumar, "A Fast and High Quality Multilevel Scheme for Partitioning Irregular Graphs", SIAM Journal on
/// Scientific Computing 20 (1998), by METIS, for blocks of threads as in A. Sulyok and others, "Locality Optimized
/// Unstructured Mesh Algorithms on GPUs", 2019, section 2.3.2: parts are a little smaller than blocks, so that with METIS's
/// imbalance none is larger. Blocks stand in the reverse Cuthill-McKee order of the graph that they make, and so do the
/// elements of each.
///
/// The same for any number of threads; another C library has other random numbers.
pub struct Metis;

impl Method for Metis {
    fn name(&self) -> &'static str {
        "metis"
    }

    fn summary(&self) -> &'static str {
        "in blocks with few neighbours outside, by METIS; blocks, and elements in them, by rcm"
    }

    fn ordering(&self, mesh: &Mesh, options: &Options) -> Result<Ordering> {
        let (order, starts) = order(&Graph::of(mesh, options.lead)?, options.block)?;
        let cuts = Some(Cuts { set: options.lead, starts });
        Ok(Ordering { cuts, ..Ordering::led(mesh, options.lead, order)? })
    }
}

/// The order of a graph's elements, and where blocks of `block` elements at most begin, and at last where all end.
fn order(graph: &Graph, block: usize) -> Result<(Vec<u32>, Vec<u32>)> {
    if block == 0 {
        return Err(Error::call("a block of no elements"));
    }
    let (tied, alone): (Vec<u32>, Vec<u32>) = (0..graph.len() as u32).partition(|&element| graph.degree(element) > 0);
    let parts: Vec<Vec<u32>> = partition(graph, &tied, block)?
        .into_par_iter()
        .flat_map(|part| {
            let order: Vec<u32> =
                rcm::order(&within(graph, &part)).into_iter().map(|place| part[place as usize]).collect();
            // METIS keeps its promise of balance nearly always.
            let pieces = order.len().div_ceil(block).max(1);
            order.chunks(order.len().div_ceil(pieces)).map(<[u32]>::to_vec).collect::<Vec<_>>()
        })
        .collect();
    let mut part_of = vec![0; graph.len()];
    for (number, part) in (0_u32..).zip(&parts) {
        part.iter().for_each(|&element| part_of[element as usize] = number);
    }
    let of_parts = Graph::build(parts.len(), |part, found| {
        let neighbours = parts[part].iter().flat_map(|&element| graph.of_element(element));
        found.extend(neighbours.map(|&other| part_of[other as usize]));
    });
    let (mut order, mut starts) = (Vec::with_capacity(graph.len()), vec![0]);
    let ordered = rcm::order(&of_parts);
    for part in ordered.iter().map(|&part| &parts[part as usize][..]).chain(alone.chunks(block)) {
        order.extend(part);
        starts.push(order.len() as u32);
    }
    Ok((order, starts))
}

/// The part of each element of a graph, of so many parts with few neighbours outside; none is empty if there are enough elements.
pub(super) fn parts(graph: &Graph, count: usize) -> Result<Vec<u32>> {
    let (tied, alone): (Vec<u32>, Vec<u32>) = (0..graph.len() as u32).partition(|&element| graph.degree(element) > 0);
    if count <= 1 {
        return Ok(vec![0; graph.len()]);
    }
    let mut parts = match tied.len() < FEW * count {
        // So few are cut where they stand in order.
        true => {
            let order = rcm::order(&within(graph, &tied)).into_iter().map(|place| tied[place as usize]);
            let order: Vec<u32> = order.collect();
            (0..count)
                .map(|part| order[part * order.len() / count..(part + 1) * order.len() / count].to_vec())
                .collect()
        }
        false => divided(graph, &tied, count)?,
    };
    for (n, &element) in alone.iter().enumerate() {
        parts[n * count / alone.len()].push(element);
    }
    while let (Some(empty), Some(largest)) =
        (parts.iter().position(Vec::is_empty), (0..count).max_by_key(|&part| (parts[part].len(), count - part)))
        && parts[largest].len() > 1
    {
        let element = parts[largest].pop();
        parts[empty].extend(element);
    }
    let mut part_of = vec![0; graph.len()];
    for (number, part) in (0_u32..).zip(&parts) {
        part.iter().for_each(|&element| part_of[element as usize] = number);
    }
    Ok(part_of)
}

/// Parts of a graph's elements that have neighbours, of about `block` elements at most; none is empty.
fn partition(graph: &Graph, elements: &[u32], block: usize) -> Result<Vec<Vec<u32>>> {
    let target = (block * 1000 / (1000 + IMBALANCE)).max(1);
    let count = elements.len().div_ceil(target);
    if count <= 1 {
        return Ok(if elements.is_empty() { Vec::new() } else { vec![elements.to_vec()] });
    }
    let mut parts = divided(graph, elements, count)?;
    parts.retain(|part| !part.is_empty());
    Ok(parts)
}

/// So many parts of elements that have neighbours, by METIS.
fn divided(graph: &Graph, elements: &[u32], count: usize) -> Result<Vec<Vec<u32>>> {
    // All have neighbours, so that the graph of them has all edges.
    let mut numbers = vec![0; graph.len()];
    (0_i32..).zip(elements).for_each(|(number, &element)| numbers[element as usize] = number);
    let too_large = || {
        Error::input(format!("METIS cannot divide {} pairs of neighbours: it counts to 2^31", graph.neighbours.len()))
            .help("take another method: rcm, gps or hilbert")
    };
    let mut offsets = Vec::with_capacity(elements.len() + 1);
    offsets.push(0_i32);
    for &element in elements {
        let end = offsets[offsets.len() - 1].checked_add(graph.degree(element) as i32).ok_or_else(too_large)?;
        offsets.push(end);
    }
    let neighbours: Vec<i32> = graph.neighbours.par_iter().map(|&other| numbers[other as usize]).collect();
    let mut part_of = vec![0; elements.len()];
    {
        let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        metis::Graph::new(1, count as i32, &offsets, &neighbours)
            .map_err(metis::Error::from)
            .and_then(|graph| graph.set_option(UFactor(IMBALANCE as i32)).part_kway(&mut part_of))
            .map_err(|error| Error::input(format!("METIS cannot divide the graph: {error}")))?;
    }
    let mut parts = vec![Vec::new(); count];
    elements.iter().zip(part_of).for_each(|(&element, part)| parts[part as usize].push(element));
    Ok(parts)
}

/// The graph of some elements, which are sorted, without the others: by their places.
fn within(graph: &Graph, elements: &[u32]) -> Graph {
    Graph::build(elements.len(), |place, found| {
        let neighbours = graph.of_element(elements[place]).iter();
        found.extend(neighbours.filter_map(|other| elements.binary_search(other).ok()).map(|place| place as u32));
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::sample;

    #[test]
    fn no_block_is_too_large() {
        for seed in 0..150 {
            let mesh = sample::random(seed);
            let mut random = fastrand::Rng::with_seed(seed);
            for set in 0..mesh.sets.len() {
                let block = random.usize(1..20);
                let (order, starts) = order(&Graph::of(&mesh, set).unwrap(), block).unwrap();
                let size = mesh.sets[set].size;
                assert_eq!((starts[0], starts[starts.len() - 1] as usize, order.len()), (0, size, size));
                assert!(starts.windows(2).all(|ends| (1..=block as u32).contains(&(ends[1] - ends[0]))), "seed {seed}");
            }
        }
        assert_eq!(order(&Graph::build(3, |_, _| {}), 0).unwrap_err().message, "a block of no elements");
    }

    #[test]
    fn no_part_is_empty_and_all_are_about_equal() {
        for seed in 0..150 {
            let mesh = sample::random(seed);
            for set in 0..mesh.sets.len() {
                let (graph, size) = (Graph::of(&mesh, set).unwrap(), mesh.sets[set].size);
                for count in 1..=size.min(7) {
                    let part_of = parts(&graph, count).unwrap();
                    assert_eq!(part_of.len(), size);
                    assert!((0..count as u32).all(|part| part_of.contains(&part)), "seed {seed}, {count} parts");
                }
            }
        }
        let graph = Graph::of(&sample::quads(60, 40), 2).unwrap();
        let part_of = parts(&graph, 4).unwrap();
        for part in 0..4 {
            let count = part_of.iter().filter(|own| **own == part).count();
            assert!((580..=620).contains(&count), "{count}");
        }
        // Twice 60 and 40 pairs would be cut by lines.
        let pairs = (0..graph.len() as u32).flat_map(|a| graph.of_element(a).iter().map(move |&b| [a, b]));
        let cut = pairs.filter(|pair| part_of[pair[0] as usize] != part_of[pair[1] as usize]).count() / 2;
        assert!(cut < 400, "{cut}");
    }

    #[test]
    fn blocks_are_compact_and_full_and_near_their_neighbours() {
        let mesh = sample::quads(128, 128);
        let graph = Graph::of(&mesh, 2).unwrap();
        let (order, starts) = order(&graph, 64).unwrap();
        let mut block_of = vec![0_usize; order.len()];
        for (block, ends) in starts.windows(2).enumerate() {
            order[ends[0] as usize..ends[1] as usize].iter().for_each(|&element| block_of[element as usize] = block);
        }
        // Of 256 squares of 8 x 8, 7.5 pairs each have an end in another; of rows of 64 it would be 32 and more.
        let pairs = (0..order.len() as u32).flat_map(|a| graph.of_element(a).iter().map(move |&b| [a, b]));
        let far: Vec<usize> = pairs
            .map(|pair| pair.map(|end| block_of[end as usize]))
            .map(|[a, b]| a.abs_diff(b))
            .filter(|&far| far > 0)
            .collect();
        let (blocks, cut) = (starts.len() - 1, far.len() / 2);
        assert!(blocks <= 270, "{blocks}");
        assert!(cut < 5000, "{cut}");
        // There are 16 blocks across.
        assert!(far.iter().all(|&far| far <= 32), "{:?}", far.iter().max());
    }
}
