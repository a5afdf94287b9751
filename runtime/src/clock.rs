//! Time, as something that is given to whoever has only so much of it: tests give a time of their own.

use std::time::{Duration, Instant};

/// Tells the time.
pub trait Clock: Sync {
    /// The time since some moment that stays the same.
    fn now(&self) -> Duration;
}

/// The time since it was made.
pub struct Watch(Instant);

impl Watch {
    /// One that begins at 0.
    pub fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for Watch {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// So much time, from when it was made.
#[derive(Clone, Copy)]
pub struct Budget<'a> {
    clock: &'a dyn Clock,
    time: Duration,
    end: Duration,
}

impl<'a> Budget<'a> {
    /// From now on.
    pub fn new(clock: &'a dyn Clock, time: Duration) -> Self {
        Self { clock, time, end: clock.now().saturating_add(time) }
    }

    /// As much time again, from now on.
    #[must_use]
    pub fn anew(self) -> Self {
        Self::new(self.clock, self.time)
    }

    /// Whether it is used up.
    pub fn is_over(&self) -> bool {
        self.left().is_zero()
    }

    /// What is left of it.
    pub fn left(&self) -> Duration {
        self.end.saturating_sub(self.clock.now())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A time that goes on by a second whenever somebody looks at it.
    #[derive(Default)]
    pub struct Ticking(AtomicU64);

    impl Clock for Ticking {
        fn now(&self) -> Duration {
            Duration::from_secs(self.0.fetch_add(1, Ordering::Relaxed))
        }
    }

    /// A time that goes on by as many seconds as it is told.
    #[derive(Default)]
    pub struct Counted(AtomicU64);

    impl Counted {
        pub fn advance(&self, seconds: usize) {
            self.0.fetch_add(seconds as u64, Ordering::Relaxed);
        }

        pub fn seconds(&self) -> usize {
            self.0.load(Ordering::Relaxed) as usize
        }
    }

    impl Clock for Counted {
        fn now(&self) -> Duration {
            Duration::from_secs(self.seconds() as u64)
        }
    }

    #[test]
    fn a_budget_is_over_when_its_time_is() {
        let clock = Ticking::default();
        assert!(Budget::new(&clock, Duration::ZERO).is_over());
        let budget = Budget::new(&clock, Duration::from_secs(3));
        assert_eq!([(); 4].map(|()| budget.is_over()), [false, false, true, true]);
        assert!(!Budget::new(&clock, Duration::MAX).is_over());
        let watch = Watch::start();
        assert!(Budget::new(&watch, Duration::ZERO).is_over() && !Budget::new(&watch, Duration::MAX).is_over());
    }
}
