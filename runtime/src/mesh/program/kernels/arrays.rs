//! Arrays on a machine. Elements may have other numbers there than the user's: arrays are put in order on their way. Those
//! that nobody looks at any more are used again.

use super::{Kernels, narrow};
use crate::array::Data;
use crate::build::Build;
use crate::machine::{Guards, Machine};
use crate::{Element, Error, Result};
use rayon::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use stencilc_compiler::ir::{Handle, Place, Stored};

/// Buffers that nobody uses, by the bytes of their numbers.
pub(super) struct Pool<M: Machine> {
    pub(super) free: RefCell<BTreeMap<usize, Vec<M::Buffer>>>,
}

/// An array on a machine.
pub struct Array<M: Machine> {
    buffer: Option<M::Buffer>,
    /// Bytes of its numbers. Up to a multiple of 16 there are zeros.
    used: usize,
    pub(super) bytes: usize,
    pub(super) element: Element,
    pool: Rc<Pool<M>>,
}

impl<M: Machine> Drop for Array<M> {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.pool.free.borrow_mut().entry(self.used).or_default().push(buffer);
        }
    }
}

impl<M: Machine> Array<M> {
    pub(super) fn buffer(&self) -> Result<&M::Buffer> {
        self.buffer.as_ref().ok_or_else(|| Error::check("an array was used after its end"))
    }

    /// Bytes of its numbers.
    pub(super) fn used(&self) -> usize {
        self.used
    }
}

impl<M: Build> Kernels<M> {
    pub(super) fn array(&self, element: Element, len: usize) -> Result<Array<M>> {
        // Kernels count in 32 bits.
        narrow(len)?;
        let used = len * element.bytes();
        // Through a hole kernels look at the first element, all of its levels, and use nothing of it: a set without elements has
        // room for it.
        let column = 16 * (self.problem.levels + 1);
        let bytes = if used == 0 { column } else { used.next_multiple_of(16) };
        let free = self.pool.free.borrow_mut().get_mut(&used).and_then(Vec::pop);
        let buffer = match free {
            Some(buffer) => buffer,
            None => self.machine.upload(&vec![0; bytes])?,
        };
        Ok(Array { buffer: Some(buffer), used, bytes, element, pool: Rc::clone(&self.pool) })
    }

    /// How many numbers the array of a field has.
    pub(super) fn len(&self, place: Place) -> usize {
        crate::interpreter::mesh::len(place, &self.renumbered.bound, self.problem.levels)
    }

    /// The bytes of a field's array on the machine, of its numbers in the user's order.
    pub(super) fn packed(&self, place: Place, stored: Stored, data: &Data) -> Vec<u8> {
        match data {
            Data::F32(all) => bytemuck::cast_slice(&self.moved(place, stored, all, true)).to_vec(),
            Data::F64(all) => bytemuck::cast_slice(&self.moved(place, stored, all, true)).to_vec(),
            Data::I32(all) => bytemuck::cast_slice(&self.moved(place, stored, all, true)).to_vec(),
            Data::Bool(all) => self.moved(place, stored, all, true),
        }
    }

    /// The numbers of a field in the user's order, of the bytes of its array on the machine.
    pub(super) fn unpacked(&self, place: Place, stored: Stored, element: Element, bytes: &[u8]) -> Data {
        match element {
            Element::F32 => {
                Data::F32(self.moved(place, stored, &bytemuck::pod_collect_to_vec::<u8, f32>(bytes), false))
            }
            Element::F64 => {
                Data::F64(self.moved(place, stored, &bytemuck::pod_collect_to_vec::<u8, f64>(bytes), false))
            }
            Element::I32 => {
                Data::I32(self.moved(place, stored, &bytemuck::pod_collect_to_vec::<u8, i32>(bytes), false))
            }
            Element::Bool => Data::Bool(self.moved(place, stored, bytes, false)),
        }
    }

    /// Numbers from the user's order to the machine's, or back.
    fn moved<T: Copy + Default + Send + Sync>(&self, place: Place, stored: Stored, from: &[T], there: bool) -> Vec<T> {
        let Some(home) = place.home else { return from.to_vec() };
        let (width, n) = (home.width as usize, self.renumbered.bound.size(home.set));
        let layout = self.choices.layout;
        let together = layout.together(home, stored, self.problem.precision);
        let chunks = layout.chunks(place, together, [n, self.problem.levels]);
        let (users, news) = (&self.renumbered.users[home.set.index()], &self.renumbered.news[home.set.index()]);
        let mut to = vec![T::default(); self.len(place)];
        if n > 0 && there {
            to.par_chunks_mut(together).with_min_len(4096).enumerate().for_each(|(chunk, to)| {
                let [level, group, new] = chunks.of_number(chunk);
                let first = (level * n + users[new] as usize) * width + group * together;
                to.copy_from_slice(&from[first..first + together]);
            });
        } else if n > 0 {
            // Here: level after level, element after element.
            to.par_chunks_mut(width).with_min_len(4096).enumerate().for_each(|(chunk, to)| {
                let (level, new) = (chunk / n, news[chunk % n] as usize);
                for (group, to) in to.chunks_mut(together).enumerate() {
                    let first = chunks.number([level, group, new]) * together;
                    to.copy_from_slice(&from[first..first + together]);
                }
            });
        }
        to
    }

    /// The bytes of an array, around which nothing was overwritten.
    pub(super) fn intact(&self, array: &Array<M>, name: &str) -> Result<Vec<u8>> {
        let downloaded = self.machine.download(array.buffer()?)?;
        match beside(&downloaded, array.used) {
            None => Ok(downloaded.0),
            Some(what) => Err(Error::check(format!("`{name}`: {what}"))),
        }
    }
}

/// What a kernel wrote beside the numbers of an array, which have so many bytes.
pub(super) fn beside((bytes, guards): &(Vec<u8>, Guards), used: usize) -> Option<String> {
    match bytes[used..].iter().position(|&byte| byte != 0) {
        _ if !guards.intact() => Some(format!("a kernel wrote beside its array: {guards}")),
        Some(after) => Some(format!("a kernel wrote beside its array: byte {} after its last number", after + 1)),
        None => None,
    }
}

/// The bytes of an array, filled up as arrays on machines are.
pub(super) fn padded(data: &Data) -> Vec<u8> {
    let mut bytes = match data {
        Data::F32(all) => bytemuck::cast_slice(all).to_vec(),
        Data::F64(all) => bytemuck::cast_slice(all).to_vec(),
        Data::I32(all) => bytemuck::cast_slice(all).to_vec(),
        Data::Bool(all) => all.clone(),
    };
    bytes.resize(bytes.len().next_multiple_of(16).max(16), 0);
    bytes
}
