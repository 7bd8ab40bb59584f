//! The host clock: the system's time, made strictly increasing.
//!
//! A leave is exact only if the instant it records is above the stamp of every
//! contribution before it, whatever the system clock does. So each reading is
//! above all readings before it, on all threads; a system clock that steps back,
//! stands still or stands in the far future makes readings go on one nanosecond
//! at a time. Across restarts the order is kept by a high-water mark in every batch
//! that holds readings.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::{Error, Result};
use crate::storage::keys::{EntityId, Tag, encode_key};
use crate::storage::{Batch, Partition, Storage};

/// The latest instant taken from the system: 11 April 2262. Half of the range stays in
/// reserve for readings beyond it, so that no system clock can make them run out.
pub(crate) const LATEST_SYSTEM_NS: u64 = u64::MAX / 2;

/// Where readings go on if what is found in a store is beyond [`LATEST_BELIEVED_NS`]. To
/// come so far by one reading a nanosecond, a clock at the latest instant of the system would
/// take 146 years.
const UNBELIEVABLE_NS: u64 = LATEST_SYSTEM_NS + (1 << 62);

/// What claims to be later is damage, and would make readings run out.
const LATEST_BELIEVED_NS: u64 = UNBELIEVABLE_NS + (1 << 61);

/// How far readings of signals may lag behind the system's time.
const MAX_LAG_NS: u64 = 10_000;

/// A clock whose readings are strictly increasing.
#[derive(Debug)]
pub(crate) struct HostClock {
    last: AtomicU64,
}

impl HostClock {
    /// A clock whose readings are all above every reading in the store, and above
    /// `high_water_ns`.
    pub(crate) fn load(storage: &Storage, mut high_water_ns: u64) -> Result<Self> {
        let prefix = encode_key(EntityId(0), Tag::ClockHighWater, b"");
        storage
            .partition(Partition::System)
            .scan(&prefix, |_, value| {
                let mark = value
                    .try_into()
                    .map_err(Error::storage("read a high-water mark of the clock"))?;
                high_water_ns = high_water_ns.max(u64::from_be_bytes(mark));
                Ok(())
            })?;
        Ok(Self::starting_above(high_water_ns))
    }

    fn starting_above(high_water_ns: u64) -> Self {
        HostClock {
            last: AtomicU64::new(believed(high_water_ns)),
        }
    }

    /// The present instant, or one up to [`MAX_LAG_NS`] before it, in nanoseconds since the
    /// Unix epoch, above every reading before. For signals: threads that read the clock at
    /// once pass its value on to each other once a reading, and not twice or more often.
    pub(crate) fn tick_ns(&self) -> u64 {
        let system_ns = system_ns();
        // Relaxed: as in `advance_above`. It can't overflow: see `LATEST_BELIEVED_NS`.
        let tick = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        if tick + MAX_LAG_NS >= system_ns {
            tick
        } else {
            self.advance_above(system_ns)
        }
    }

    /// The present instant in nanoseconds since the Unix epoch, above every
    /// reading before.
    pub(crate) fn now_ns(&self) -> u64 {
        self.advance_above(system_ns())
    }

    fn advance_above(&self, system_ns: u64) -> u64 {
        let next = |last: u64| system_ns.max(last.saturating_add(1));
        // Relaxed: readings are ordered among each other by the one atomic, and who
        // compares them with other data, a leave, has waited at the gate's fence before.
        let before = self
            .last
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
                Some(next(last))
            });
        // The closure never declines; both arms hold the value before.
        next(before.unwrap_or_else(|last| last))
    }

    /// Makes all readings to come higher than `at_ns`.
    pub(crate) fn advance_to(&self, at_ns: u64) {
        // Relaxed: as in `now_ns`.
        self.last.fetch_max(believed(at_ns), Ordering::Relaxed);
    }

    /// Adds the mark that no reading of this thread so far exceeds, nor one of a
    /// thread that it synchronized with. Each `owner` writes a mark of its own: two
    /// that wrote one could put the lower over the higher.
    pub(crate) fn put_high_water(&self, owner: &[u8], batch: &mut Batch) {
        batch.put(
            Partition::System,
            encode_key(EntityId(0), Tag::ClockHighWater, owner),
            // Relaxed: one atomic is coherent, so this thread sees its own
            // readings and all that happened before in other threads.
            self.last.load(Ordering::Relaxed).to_be_bytes().to_vec(),
        );
    }
}

/// An instant that was found in a store, or another where it can be none.
fn believed(at_ns: u64) -> u64 {
    if at_ns > LATEST_BELIEVED_NS {
        UNBELIEVABLE_NS
    } else {
        at_ns
    }
}

fn system_ns() -> u64 {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since_epoch.as_nanos())
        .unwrap_or(u64::MAX)
        .min(LATEST_SYSTEM_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_follow_the_system_clock() {
        let before = system_ns();
        let reading = HostClock::starting_above(0).now_ns();
        assert!(before <= reading && reading <= system_ns());
    }

    #[test]
    fn readings_of_signals_follow_the_system_clock_closely() {
        let clock = HostClock::starting_above(0);
        for _ in 0..10_000 {
            let before = system_ns();
            let reading = clock.tick_ns();
            assert!(before <= reading + MAX_LAG_NS && reading <= system_ns());
        }
    }

    #[test]
    fn readings_go_on_above_a_high_water_mark_in_the_future() {
        let future = system_ns() + 3_600_000_000_000;
        let clock = HostClock::starting_above(future);
        assert_eq!(clock.now_ns(), future + 1);
        assert_eq!(clock.tick_ns(), future + 2);
        assert_eq!(clock.now_ns(), future + 3);
    }

    #[test]
    fn readings_go_on_above_each_other_whatever_is_found_in_a_store() {
        let clock = HostClock::starting_above(u64::MAX);
        clock.advance_to(u64::MAX);
        let readings = [clock.now_ns(), clock.tick_ns(), clock.now_ns()];
        // As after a restart, with a mark of its own.
        let clock = HostClock::starting_above(readings[2]);
        clock.advance_to(u64::MAX);
        let readings = [&readings[..], &[clock.now_ns(), clock.tick_ns()]].concat();
        assert!(readings.is_sorted_by(|earlier, later| earlier < later));
        assert!(readings[0] > UNBELIEVABLE_NS);
    }

    #[test]
    fn readings_of_many_threads_are_all_different() {
        let clock = HostClock::starting_above(0);
        let mut readings: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let readings: Vec<u64> = (0..5_000)
                            .flat_map(|_| [clock.now_ns(), clock.tick_ns()])
                            .collect();
                        assert!(readings.is_sorted());
                        readings
                    })
                })
                .collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap())
                .collect()
        });
        readings.sort_unstable();
        readings.dedup();
        assert_eq!(readings.len(), 40_000);
    }
}
