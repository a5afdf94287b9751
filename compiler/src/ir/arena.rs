//! Vectors with typed handles: a handle of one arena cannot index another.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A handle into an [`Arena`].
pub trait Handle: Copy {
    /// The handle of element `index`.
    fn new(index: usize) -> Self;
    /// The element's number.
    fn index(self) -> usize;
}

/// Declares handle types.
macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);
        impl $crate::ir::arena::Handle for $name {
            fn new(index: usize) -> Self { Self(index as u32) }
            fn index(self) -> usize { self.0 as usize }
        }
    )* };
}
pub(crate) use handles;

/// A vector indexed by handles of type `H`.
#[derive(Clone, Debug)]
pub struct Arena<H, T> {
    items: Vec<T>,
    handle: PhantomData<H>,
}

impl<H: Handle, T> Arena<H, T> {
    /// An empty arena.
    pub fn new() -> Self {
        Self { items: Vec::new(), handle: PhantomData }
    }

    /// Appends an element.
    pub fn add(&mut self, item: T) -> H {
        self.items.push(item);
        H::new(self.items.len() - 1)
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Handles and elements in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (H, &T)> + ExactSizeIterator {
        self.items.iter().enumerate().map(|(index, item)| (H::new(index), item))
    }

    /// The elements in order, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.items.iter_mut()
    }

    /// The handles in order.
    pub fn handles(&self) -> impl DoubleEndedIterator<Item = H> + ExactSizeIterator + use<H, T> {
        (0..self.items.len()).map(H::new)
    }
}

impl<H: Handle, T> Default for Arena<H, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<H: Handle, T> Index<H> for Arena<H, T> {
    type Output = T;
    fn index(&self, handle: H) -> &T {
        &self.items[handle.index()]
    }
}

impl<H: Handle, T> IndexMut<H> for Arena<H, T> {
    fn index_mut(&mut self, handle: H) -> &mut T {
        &mut self.items[handle.index()]
    }
}
