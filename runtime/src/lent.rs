//! Arrays that belong to somebody else: a place in memory, and where each element lies. Nothing is copied.

use crate::array::{Array, Data, Element};
use crate::error::{Error, Result};
use crate::memory;
use std::marker::PhantomData;
use std::ops::Range;

/// The types that elements of arrays have.
pub trait Number: sealed::Sealed + Copy {
    /// As which fields are stored.
    const ELEMENT: Element;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! number {
    ($($own:ty => $element:ident),*) => {
        $(impl sealed::Sealed for $own {}
        impl Number for $own {
            const ELEMENT: Element = Element::$element;
        })*
    };
}

number!(f32 => F32, f64 => F64, i32 => I32, bool => Bool);

/// Whose memory an array is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// The host's.
    Host,
    /// A GPU's.
    Device,
}

/// An array that belongs to somebody else, and may be read, or written too.
#[derive(Debug)]
pub struct Lent<'a> {
    pub(crate) address: u64,
    pub(crate) element: Element,
    pub(crate) shape: Vec<usize>,
    /// Elements from one to the next, along each axis.
    pub(crate) strides: Vec<usize>,
    pub(crate) is_writable: bool,
    pub(crate) memory: Memory,
    /// How many elements there are from the first on, if that is known.
    len: Option<usize>,
    owner: PhantomData<&'a mut [u8]>,
}

impl<'a> Lent<'a> {
    /// Numbers of the host to be read, in the order of a C array: the last axis is the fastest.
    ///
    /// # Errors
    /// There are fewer than the shape says.
    pub fn read<T: Number>(numbers: &'a [T], shape: &[usize]) -> Result<Self> {
        Self::of(numbers.as_ptr().expose_provenance(), T::ELEMENT, shape, numbers.len(), false)
    }

    /// Numbers of the host to be written, in the order of a C array: the last axis is the fastest.
    ///
    /// # Errors
    /// There are fewer than the shape says.
    pub fn write<T: Number>(numbers: &'a mut [T], shape: &[usize]) -> Result<Self> {
        Self::of(numbers.as_mut_ptr().expose_provenance(), T::ELEMENT, shape, numbers.len(), true)
    }

    fn of(address: usize, element: Element, shape: &[usize], len: usize, is_writable: bool) -> Result<Self> {
        let (shape, strides) = (shape.to_vec(), in_order(shape));
        let (address, memory, len) = (address as u64, Memory::Host, Some(len));
        let lent = Self { address, element, shape, strides, is_writable, memory, len, owner: PhantomData };
        lent.checked()
    }

    /// The same with so many elements from one to the next, along each axis: rows with room between them, or a part of a larger
    /// array.
    ///
    /// # Errors
    /// There are not as many as axes, or some element would lie beyond the last.
    pub fn strided(self, strides: &[usize]) -> Result<Self> {
        Self { strides: strides.to_vec(), ..self }.checked()
    }

    /// An array at an address of the host or of a GPU.
    ///
    /// # Safety
    /// As long as the lifetime lasts, and until all work that was started with it has ended, there are elements of this type at
    /// all places that shape and strides say, truth values being 0 or 1; and nobody else writes them, or reads them where they are
    /// writable.
    ///
    /// # Errors
    /// Shape and strides have different numbers of axes.
    pub unsafe fn at(
        memory: Memory,
        address: u64,
        element: Element,
        shape: &[usize],
        strides: &[usize],
        is_writable: bool,
    ) -> Result<Self> {
        let (shape, strides) = (shape.to_vec(), strides.to_vec());
        let lent = Self { address, element, shape, strides, is_writable, memory, len: None, owner: PhantomData };
        lent.checked()
    }

    fn checked(self) -> Result<Self> {
        let Self { shape, strides, .. } = &self;
        if shape.len() != strides.len() {
            let (axes, own) = (shape.len(), strides.len());
            return Err(Error::call(format!("an array of {axes} axes has a stride for each, and {own} are given")));
        }
        match (self.len, self.extent()) {
            (Some(len), Some(extent)) if extent <= len => Ok(self),
            (None, Some(_)) => Ok(self),
            (len, extent) => {
                let extent = extent.map_or("more elements than fit".to_owned(), |extent| format!("{extent} elements"));
                let there = len.map_or(String::new(), |len| format!(", and there are {len}"));
                Err(Error::call(format!("an array of shape {shape:?} with strides {strides:?} has {extent}{there}")))
            }
        }
    }

    /// Elements from the first to the last, both included; 0 of an array that has none, and nothing if there are more than can be.
    pub(crate) fn extent(&self) -> Option<usize> {
        if self.shape.contains(&0) {
            return Some(0);
        }
        let mut axes = self.shape.iter().zip(&self.strides);
        axes.try_fold(1usize, |sum, (&length, &stride)| sum.checked_add((length - 1).checked_mul(stride)?))
            .filter(|extent| extent.checked_mul(self.element.bytes()).is_some_and(|bytes| bytes <= isize::MAX as usize))
    }

    /// The same numbers in an array of their own, in C's order. Of memory of the host alone.
    ///
    /// # Errors
    /// It is a GPU's memory, elements lie where none can, or there is not enough memory.
    pub fn to_array(&self) -> Result<Array> {
        self.check_place()?;
        // Where strides are 0 there are more numbers than memory that is looked at.
        let numbers = self.shape.iter().fold(1u128, |all, length| all.saturating_mul(*length as u128));
        let bytes = numbers.saturating_mul(self.element.bytes() as u128);
        memory::check(bytes, &format!("a copy of an array of shape {:?} takes", self.shape), "is its shape right?")?;
        match self.memory {
            Memory::Host => Ok(Array { shape: self.shape.clone(), data: self.copied() }),
            Memory::Device => Err(Error::call("an array in a GPU's memory is not read from here")),
        }
    }

    /// Writes the numbers of an array. Of memory of the host alone; `name` is what messages call it.
    ///
    /// ```
    /// use stencilc_runtime::{Array, Data, Lent};
    ///
    /// let mut wide = [0.0; 6];
    /// let rows = Array { shape: vec![2, 2], data: Data::F64(vec![1.0, 2.0, 3.0, 4.0]) };
    /// Lent::write(&mut wide[..5], &[2, 2])?.strided(&[3, 1])?.take("`rows`", &rows)?;
    /// assert_eq!(wide, [1.0, 2.0, 0.0, 3.0, 4.0, 0.0]);
    /// # Ok::<(), stencilc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// It is a GPU's memory, or not to be written; elements lie where none can, or in the place of others; or the array has another shape or
    /// type.
    pub fn take(&mut self, name: &str, array: &Array) -> Result<()> {
        self.check_place()?;
        if self.memory == Memory::Device {
            return Err(Error::call(format!(
                "the array for {name} is in a GPU's memory, which is not written from here"
            ))
            .help("give one in the host's memory"));
        }
        if !self.is_writable {
            return Err(Error::call(format!("the array for {name} is not to be written")));
        }
        if self.shape != array.shape {
            return Err(Error::call(format!(
                "{name} has the shape {:?}, and the array for it {:?}",
                array.shape, self.shape
            )));
        }
        if self.element != array.data.element() {
            let (own, given) = (array.data.element().name(), self.element.name());
            return Err(Error::call(format!("{name} holds {own}, and the array for it {given}")));
        }
        if self.overlaps_itself() {
            return Err(Error::call(format!("elements of the array for {name} lie in the place of others"))
                .help("rows are at least as far apart as they are long, and levels as far as a level is"));
        }
        array.check(name)?;
        self.put(&array.data, 0..array.data.len());
        Ok(())
    }

    /// Whether elements lie where those of their type can.
    fn check_place(&self) -> Result<()> {
        match self.address.is_multiple_of(self.element.bytes() as u64) || self.shape.contains(&0) {
            true => Ok(()),
            false => Err(Error::call(format!(
                "an array of {} does not begin at a multiple of its elements' size",
                self.element.name()
            ))),
        }
    }

    /// Whether several elements may lie in one place: along some axis they are nearer to each other than what lies between them is long.
    fn overlaps_itself(&self) -> bool {
        let axes = self.shape.iter().zip(&self.strides).map(|(length, stride)| (*stride, *length));
        let mut axes: Vec<(usize, usize)> = axes.filter(|(_, length)| *length > 1).collect();
        axes.sort_unstable();
        let mut extent = 1;
        axes.into_iter().any(|(stride, length)| {
            let is_near = stride < extent;
            extent = stride.saturating_mul(length - 1).saturating_add(extent);
            is_near
        })
    }

    /// Whether truth values are 0 or 1: kernels compute with no other. Those of a GPU's memory are not looked at.
    ///
    /// # Errors
    /// One is not; `name` is what the message calls the array. Or there is not enough memory to look at them.
    pub fn check_truths(&self, name: &str) -> Result<()> {
        match (self.element, self.memory) {
            (Element::Bool, Memory::Host) => self.to_array()?.data.check_truths(name),
            _ => Ok(()),
        }
    }

    /// Copies the numbers, in the order of a C array. Of memory of the host alone.
    pub(crate) fn copied(&self) -> Data {
        fn gathered<T: Copy>(own: &Lent) -> Vec<T> {
            let first = std::ptr::with_exposed_provenance::<T>(own.address as usize);
            let (runs, length) = own.runs();
            let mut numbers = Vec::with_capacity(own.shape.iter().product());
            for place in runs {
                // SAFETY: whoever made it sees to it that there are elements of this type at all places of shape and strides; those of
                // a run follow each other.
                numbers.extend_from_slice(unsafe { std::slice::from_raw_parts(first.add(place), length) });
            }
            numbers
        }
        match self.element {
            Element::F32 => Data::F32(gathered(self)),
            Element::F64 => Data::F64(gathered(self)),
            Element::I32 => Data::I32(gathered(self)),
            Element::Bool => Data::Bool(gathered(self)),
        }
    }

    /// Writes those numbers of an array in C order whose places in it `chosen` tells. Of memory of the host that is writable.
    pub(crate) fn put(&self, data: &Data, chosen: impl Iterator<Item = usize>) {
        fn scattered<T: Copy>(own: &Lent, numbers: &[T], chosen: impl Iterator<Item = usize>) {
            let first = std::ptr::with_exposed_provenance_mut::<T>(own.address as usize);
            if own.strides != in_order(&own.shape) {
                for number in chosen {
                    // SAFETY: as above; it is writable, and nobody else looks at it meanwhile.
                    unsafe { first.add(own.place(number)).write(numbers[number]) };
                }
                return;
            }
            // Where places are numbers, those that follow each other are written together.
            let write = |run: Range<usize>| {
                let from = &numbers[run.clone()];
                // SAFETY: as above.
                unsafe { first.add(run.start).copy_from_nonoverlapping(from.as_ptr(), from.len()) };
            };
            let mut run = 0..0;
            for number in chosen {
                if number != run.end {
                    write(run);
                    run = number..number;
                }
                run.end += 1;
            }
            write(run);
        }
        match data {
            Data::F32(numbers) => scattered(self, numbers, chosen),
            Data::F64(numbers) => scattered(self, numbers, chosen),
            Data::I32(numbers) => scattered(self, numbers, chosen),
            Data::Bool(numbers) => scattered(self, numbers, chosen),
        }
    }

    /// Where runs of elements begin that follow each other, in C's order, and how long each is.
    fn runs(&self) -> (impl Iterator<Item = usize> + '_, usize) {
        let (mut length, mut axes) = (1, self.shape.len());
        while let Some(axis) = axes.checked_sub(1)
            && (self.strides[axis] == length || self.shape[axis] == 1)
        {
            length *= self.shape[axis];
            axes = axis;
        }
        let outer: usize = self.shape[..axes].iter().product();
        // An array without elements has no run.
        let count = if length == 0 { 0 } else { outer };
        ((0..count).map(move |number| self.place(number * length)), length)
    }

    /// Copies all elements to memory of the host where they lie in the same way, and leaves what is between them.
    ///
    /// # Safety
    /// There are elements from `to` on as many as from the first on, which nobody else looks at.
    pub(crate) unsafe fn copy_to(&self, to: *mut u8) {
        let from = std::ptr::with_exposed_provenance::<u8>(self.address as usize);
        let bytes = self.element.bytes();
        let (runs, length) = self.runs();
        for place in runs {
            // SAFETY: whoever made it sees to it that the elements are there, and the caller that there is room for them.
            unsafe { to.add(place * bytes).copy_from_nonoverlapping(from.add(place * bytes), length * bytes) };
        }
    }

    /// Where an element lies, by its number in C order.
    fn place(&self, mut number: usize) -> usize {
        let mut place = 0;
        for (&length, &stride) in self.shape.iter().zip(&self.strides).rev() {
            place += number % length * stride;
            number /= length;
        }
        place
    }
}

/// The strides of a C array.
fn in_order(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1usize; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(shape[axis]);
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_where_strides_say() {
        let numbers: Vec<i32> = (0..24).collect();
        let own = Lent::read(&numbers, &[2, 3]).unwrap().strided(&[12, 4]).unwrap();
        assert_eq!(own.copied(), Data::I32(vec![0, 4, 8, 12, 16, 20]));
        assert_eq!(own.extent(), Some(21));
        let mut numbers = vec![0.0f32; 6];
        let own = Lent::write(&mut numbers, &[2, 2]).unwrap().strided(&[3, 1]).unwrap();
        own.put(&Data::F32(vec![1.0, 2.0, 3.0, 4.0]), [1, 2].into_iter());
        assert_eq!(numbers, [0.0, 2.0, 0.0, 3.0, 0.0, 0.0]);
        let own = Lent::write(&mut numbers, &[2, 3]).unwrap();
        own.put(&Data::F32((1..7).map(|n| n as f32 / 2.0).collect()), [0, 3, 4].into_iter());
        assert_eq!(numbers, [0.5, 2.0, 0.0, 2.0, 2.5, 0.0]);
        let own = Lent::read(&numbers, &[3, 1, 2]).unwrap().strided(&[2, 9, 1]).unwrap();
        assert_eq!(own.to_array().unwrap().data, Data::F32(numbers.clone()));
        assert_eq!(Lent::read(&numbers, &[0, 2]).unwrap().copied(), Data::F32(Vec::new()));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let numbers = [1.0f64; 6];
        let said = |own: Result<Lent>| own.unwrap_err().message;
        assert_eq!(
            said(Lent::read(&numbers, &[2, 4])),
            "an array of shape [2, 4] with strides [4, 1] has 8 elements, and there are 6"
        );
        assert_eq!(
            said(Lent::read(&numbers, &[2, 3]).unwrap().strided(&[4, 1])),
            "an array of shape [2, 3] with strides [4, 1] has 7 elements, and there are 6"
        );
        assert_eq!(
            said(Lent::read(&numbers, &[2, 3]).unwrap().strided(&[3])),
            "an array of 2 axes has a stride for each, and 1 are given"
        );
        let huge = said(Lent::read(&numbers, &[usize::MAX, 3]));
        assert!(huge.ends_with("has more elements than fit, and there are 6"), "{huge}");
        assert!(Lent::read(&numbers, &[0, 9]).is_ok());
    }
}
