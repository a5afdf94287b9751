//! Ends that hops lead to without a map: the thread's own element, and the other one of two.

use crate::ir::{Handle, Hop, MapId};

/// Where hops lead that no map has: to the thread's own element, and to the other one; and whether the own one stands at the
/// second of two places.
pub const OWN: u32 = 0;
/// See [`OWN`].
pub const OTHER: u32 = 1;
/// See [`OWN`].
pub const SECOND: u32 = 2;

/// The hops to one of these.
pub fn pseudo(who: u32) -> Vec<Hop> {
    vec![Hop { map: MapId::new(u32::MAX as usize), slot: who }]
}

/// Which of these hops begin with, if with any.
pub fn pseudo_of(hops: &[Hop]) -> Option<u32> {
    hops.first().filter(|hop| **hop == pseudo(hop.slot)[0]).map(|hop| hop.slot)
}
