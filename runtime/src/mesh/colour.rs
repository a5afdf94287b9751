//! Colours: elements of one colour share no target, so that they can be worked on at the same time.

use super::Mesh;
use super::slots::{Slot, common_source};
use crate::error::{Error, Result};
use serde::Serialize;

/// Colours that a pass can give: as many as a mask has bits.
const PASS: usize = 64;

/// A colouring of the elements of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Colouring {
    /// The colour of each element.
    pub colours: Vec<u32>,
    /// The elements, colour by colour, and of each colour in the order of their numbers.
    pub elements: Vec<u32>,
    /// Where the elements of each colour begin, and at last where all end.
    pub starts: Vec<u32>,
}

/// What a colouring comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Statistics {
    /// How many colours there are.
    pub colours: usize,
    /// Elements of the colour that has the fewest.
    pub fewest: usize,
    /// Elements of the colour that has the most.
    pub most: usize,
}

/// Colours the elements of a set so that no two of one colour share a target through these slots, which may lead to several
/// sets. Few colours, and about as many elements of each.
///
/// # Errors
/// The slots are of elements of several sets.
pub fn colour(mesh: &Mesh, slots: &[Slot]) -> Result<Colouring> {
    let targets = Targets::new(mesh, slots)?;
    Ok(Colouring::of(greedy(targets.elements, targets.count, |element, found| targets.of(element, found))))
}

/// Colours likewise, and so that of any two elements that share a target the one that the user has first has the lower
/// colour: colour after colour, increments are added in the user's order. `users[element]` is the user's number of an
/// element, if not its own. There may be as many colours as elements, where each shares a target with the next.
///
/// # Errors
/// The slots are of elements of several sets.
pub fn colour_in_order(mesh: &Mesh, slots: &[Slot], users: Option<&[u32]>) -> Result<Colouring> {
    let targets = Targets::new(mesh, slots)?;
    let by_user: Vec<u32> = users.map_or_else(|| (0..targets.elements as u32).collect(), super::order::inverse);
    // The first colour that is free for good, of each target.
    let mut free = vec![0; targets.count];
    let mut colours = vec![0; targets.elements];
    let mut found = Vec::new();
    for element in by_user {
        found.clear();
        targets.of(element as usize, &mut found);
        let colour = found.iter().map(|&target| free[target as usize]).max().unwrap_or(0);
        colours[element as usize] = colour;
        found.iter().for_each(|&target| free[target as usize] = colour + 1);
    }
    Ok(Colouring::of(colours))
}

/// The first two elements of one colour that share a target through these slots, if there are any.
///
/// # Errors
/// The slots are of elements of several sets.
pub fn conflict(mesh: &Mesh, slots: &[Slot], colours: &[u32]) -> Result<Option<[u32; 2]>> {
    let targets = Targets::new(mesh, slots)?;
    let mut seen = std::collections::HashMap::new();
    let mut found = Vec::new();
    for (element, &colour) in (0..).zip(colours) {
        found.clear();
        targets.of(element as usize, &mut found);
        for &target in &found {
            let before = *seen.entry((target, colour)).or_insert(element);
            if before != element {
                return Ok(Some([before, element]));
            }
        }
    }
    Ok(None)
}

impl Colouring {
    /// Sorts elements by their colours.
    pub fn of(colours: Vec<u32>) -> Self {
        let count = colours.iter().max().map_or(0, |&most| most as usize + 1);
        let mut starts = vec![0; count + 1];
        colours.iter().for_each(|&colour| starts[colour as usize + 1] += 1);
        (0..count).for_each(|colour| starts[colour + 1] += starts[colour]);
        let mut next = starts.clone();
        let mut elements = vec![0; colours.len()];
        for (element, &colour) in (0..).zip(&colours) {
            elements[next[colour as usize] as usize] = element;
            next[colour as usize] += 1;
        }
        Self { colours, elements, starts }
    }

    /// How many colours there are.
    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// The elements of a colour.
    pub fn of_colour(&self, colour: usize) -> &[u32] {
        &self.elements[self.starts[colour] as usize..self.starts[colour + 1] as usize]
    }

    /// What it comes to; zeros where there are no elements.
    pub fn statistics(&self) -> Statistics {
        let sizes = || self.starts.windows(2).map(|ends| (ends[1] - ends[0]) as usize);
        Statistics { colours: self.count(), fewest: sizes().min().unwrap_or(0), most: sizes().max().unwrap_or(0) }
    }
}

/// Targets through several slots, with numbers that differ from set to set.
struct Targets<'a> {
    mesh: &'a Mesh,
    slots: Vec<(Slot, u32)>,
    elements: usize,
    count: usize,
}

impl<'a> Targets<'a> {
    fn new(mesh: &'a Mesh, slots: &[Slot]) -> Result<Self> {
        let elements = mesh.sets[common_source(mesh, slots)?].size;
        let mut firsts = vec![None; mesh.sets.len()];
        let mut count = 0;
        let mut first = |set: usize| {
            *firsts[set].get_or_insert_with(|| {
                count += mesh.sets[set].size;
                (count - mesh.sets[set].size) as u32
            })
        };
        let slots = slots.iter().map(|&slot| (slot, first(mesh.maps[slot.map].to))).collect();
        if count > u32::MAX as usize {
            return Err(Error::input(format!("the maps lead to {count} elements: at most 2^32 can be coloured by")));
        }
        Ok(Self { mesh, slots, elements, count })
    }

    fn of(&self, element: usize, found: &mut Vec<u32>) {
        found.extend(self.slots.iter().filter_map(|(slot, first)| Some(slot.target(self.mesh, element)? + first)));
    }
}

/// Gives each of `elements` the first colour that no element with a common target has; `find` puts the targets of one into
/// the list, each below `targets`. Then moves elements from colours of many to colours of few.
///
/// Colours are bits of a mask at each target. Elements that find no free bit wait for the next pass, which has new ones: so
/// do S. Sulyok and others in OP2 ("Locality Optimized Unstructured Mesh Algorithms on GPUs", 2019).
pub(super) fn greedy(elements: usize, targets: usize, find: impl Fn(usize, &mut Vec<u32>)) -> Vec<u32> {
    let mut colours = vec![0; elements];
    let mut waiting: Vec<u32> = (0..elements as u32).collect();
    let mut masks = vec![0_u64; targets];
    let mut found = Vec::new();
    let mut base = 0;
    while !waiting.is_empty() {
        masks.fill(0);
        let mut next = Vec::new();
        let mut sizes = [0_usize; PASS];
        for &element in &waiting {
            found.clear();
            find(element as usize, &mut found);
            let used = found.iter().fold(0, |used, &target| used | masks[target as usize]);
            let colour = used.trailing_ones();
            if colour as usize == PASS {
                next.push(element);
                continue;
            }
            found.iter().for_each(|&target| masks[target as usize] |= 1 << colour);
            sizes[colour as usize] += 1;
            colours[element as usize] = base + colour;
        }
        let given = sizes.iter().take_while(|&&size| size > 0).count();
        let mean = (waiting.len() - next.len()).div_ceil(given.max(1));
        // E. Lu and others, "Balanced Coloring for Parallel Computing Applications", IPDPS 2015: the shuffling of elements
        // of overfull colours. No other element of its colour has a target of an element, so that its bits are its own.
        for &element in &waiting {
            let Some(colour) = colours[element as usize].checked_sub(base).map(|colour| colour as usize) else {
                continue;
            };
            if next.binary_search(&element).is_ok() || sizes[colour] <= mean {
                continue;
            }
            found.clear();
            find(element as usize, &mut found);
            let used = found.iter().fold(0, |used, &target| used | masks[target as usize]);
            let free = (0..given).filter(|&other| used >> other & 1 == 0 && sizes[other] < mean);
            if let Some(other) = free.min_by_key(|&other| sizes[other]) {
                found.iter().for_each(|&target| masks[target as usize] &= !(1 << colour));
                found.iter().for_each(|&target| masks[target as usize] |= 1 << other);
                sizes[colour] -= 1;
                sizes[other] += 1;
                colours[element as usize] = base + other as u32;
            }
        }
        base += given as u32;
        waiting = next;
    }
    colours
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::{Map, Set, sample};

    /// Every mesh at random, with some slots of one of its sets.
    fn each_sample(check: impl Fn(u64, &Mesh, &[Slot])) {
        for seed in 0..300 {
            let mesh = sample::random(seed);
            let mut random = fastrand::Rng::with_seed(seed);
            let from = mesh.maps[0].from;
            let of_set = (0..mesh.maps.len()).filter(|&map| mesh.maps[map].from == from);
            let mut slots: Vec<Slot> = of_set.flat_map(|map| Slot::all(&mesh, map)).collect();
            random.shuffle(&mut slots);
            slots.truncate(random.usize(1..=slots.len()));
            check(seed, &mesh, &slots);
        }
    }

    /// Elements that all lead to one target.
    fn star(size: usize) -> Mesh {
        let set = |name: &str, size| Set { name: name.to_owned(), size };
        let map = Map { name: "m".to_owned(), from: 0, to: 1, arity: 1, table: vec![0; size] };
        Mesh { sets: vec![set("a", size), set("b", 1)], maps: vec![map], ..Mesh::default() }
    }

    fn is_sorted_by_colour(colouring: &Colouring) -> bool {
        let of_each = (0..colouring.count()).flat_map(|colour| {
            let elements = colouring.of_colour(colour);
            assert!(elements.is_sorted());
            elements.iter().map(move |&element| (element, colour as u32))
        });
        let mut found: Vec<(u32, u32)> = of_each.collect();
        found.sort_unstable();
        found.into_iter().eq((0..).zip(colouring.colours.iter().copied()))
    }

    #[test]
    fn elements_of_one_colour_share_no_target() {
        each_sample(|seed, mesh, slots| {
            let colouring = colour(mesh, slots).unwrap();
            assert_eq!(conflict(mesh, slots, &colouring.colours).unwrap(), None, "seed {seed}");
            assert!(is_sorted_by_colour(&colouring), "seed {seed}");
            let Statistics { colours, fewest, most } = colouring.statistics();
            assert!(colours == 0 || fewest > 0 && most * colours >= colouring.colours.len(), "seed {seed}");
        });
    }

    #[test]
    fn a_conflict_is_found() {
        let mesh = sample::quads(4, 4);
        let slots = Slot::all(&mesh, 1);
        let mut colours = colour(&mesh, &slots).unwrap().colours;
        // The upright edges 0 and 1 share cell 1; 12 is the first flat one, over cells 0 and 4.
        for (element, other) in [(1, 0), (12, 0)] {
            let was = colours[element];
            colours[element] = colours[other];
            assert_eq!(conflict(&mesh, &slots, &colours).unwrap(), Some([other as u32, element as u32]));
            colours[element] = was;
        }
        assert_eq!(conflict(&mesh, &slots, &vec![0; mesh.sets[1].size]).unwrap(), Some([0, 1]));
    }

    #[test]
    fn edges_of_squares_take_few_colours_of_one_size() {
        let mesh = sample::quads(40, 30);
        let statistics = colour(&mesh, &Slot::all(&mesh, 1)).unwrap().statistics();
        assert_eq!(statistics.colours, 4);
        assert!(statistics.most - statistics.fewest <= 40, "{statistics:?}");
    }

    #[test]
    fn there_may_be_more_colours_than_a_mask_has_bits() {
        for size in [0, 1, 63, 64, 65, 200] {
            let mesh = star(size);
            let colouring = colour(&mesh, &Slot::all(&mesh, 0)).unwrap();
            assert_eq!(colouring.count(), size);
            assert_eq!(conflict(&mesh, &Slot::all(&mesh, 0), &colouring.colours).unwrap(), None);
        }
    }

    #[test]
    fn colours_in_order_keep_the_users_order() {
        each_sample(|seed, mesh, slots| {
            let size = mesh.sets[mesh.maps[slots[0].map].from].size;
            let mut users: Vec<u32> = (0..size as u32).collect();
            fastrand::Rng::with_seed(seed).shuffle(&mut users);
            let colouring = colour_in_order(mesh, slots, Some(&users)).unwrap();
            assert!(is_sorted_by_colour(&colouring), "seed {seed}");
            assert_eq!(conflict(mesh, slots, &colouring.colours).unwrap(), None, "seed {seed}");
            let targets = Targets::new(mesh, slots).unwrap();
            let of = |element: usize| {
                let mut found = Vec::new();
                targets.of(element, &mut found);
                found
            };
            for a in 0..size {
                for b in 0..size {
                    if users[a] < users[b] && of(a).iter().any(|target| of(b).contains(target)) {
                        assert!(colouring.colours[a] < colouring.colours[b], "seed {seed}");
                    }
                }
            }
        });
        // A chain: every element waits for the one before.
        let mesh = sample::quads(10, 1);
        assert_eq!(colour_in_order(&mesh, &Slot::all(&mesh, 1), None).unwrap().count(), 9);
        assert_eq!(colour(&mesh, &Slot::all(&mesh, 1)).unwrap().count(), 2);
    }
}
