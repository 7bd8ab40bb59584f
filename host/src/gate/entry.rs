//! What the gate holds for one user with a record, and how it is kept where signals read
//! a part of it while another part changes.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use super::Standing;
use crate::membership::{CommunityMembership, FanOut, MembershipStatus};

const LEFT: u8 = 1;
const COHORT_ATTRIBUTION: u8 = 1 << 1;
const COMMUNITY_FORWARDING: u8 = 1 << 2;
const STANDING_SHIFT: u8 = 3;

/// What the gate holds for one user with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) left_at_ns: Option<NonZeroU64>,
    pub(super) status: MembershipStatus,
    pub(super) fan_out: FanOut,
    pub(super) standing: Standing,
}

impl Entry {
    pub(super) fn settled(membership: &CommunityMembership, fan_out: FanOut) -> Self {
        Entry {
            left_at_ns: membership.left_at_ns.and_then(NonZeroU64::new),
            status: membership.status,
            fan_out,
            standing: Standing::Settled,
        }
    }

    /// The same, letting through no more than `fan_out` does.
    pub(super) fn narrowed_to(self, fan_out: FanOut) -> Self {
        Entry {
            fan_out: FanOut {
                cohort_attribution: self.fan_out.cohort_attribution && fan_out.cohort_attribution,
                community_forwarding: self.fan_out.community_forwarding
                    && fan_out.community_forwarding,
            },
            ..self
        }
    }

    /// Whether it lets through all that `other` does.
    pub(super) fn is_as_open_as(&self, other: &Entry) -> bool {
        (self.fan_out.cohort_attribution || !other.fan_out.cohort_attribution)
            && (self.fan_out.community_forwarding || !other.fan_out.community_forwarding)
    }
}

/// An entry in the map, or the one that stands for users without one. It is set by one
/// thread at a time, which holds the shard's turnstile, keeps transitions from happening,
/// or fills the gate with this user, and so does who reads all of it.
#[derive(Debug)]
pub(super) struct SharedEntry {
    left_at_ns: AtomicU64,
    /// The rest: all that signals read is in one byte.
    flags: AtomicU8,
}

impl SharedEntry {
    pub(super) fn new(entry: Entry) -> Self {
        let shared = SharedEntry {
            left_at_ns: AtomicU64::new(0),
            flags: AtomicU8::new(0),
        };
        shared.set(entry);
        shared
    }

    pub(super) fn set(&self, entry: Entry) {
        let mut flags = (entry.standing as u8) << STANDING_SHIFT;
        if entry.status == MembershipStatus::Left {
            flags |= LEFT;
        }
        if entry.fan_out.cohort_attribution {
            flags |= COHORT_ATTRIBUTION;
        }
        if entry.fan_out.community_forwarding {
            flags |= COMMUNITY_FORWARDING;
        }
        // Relaxed: the two are read together under the turnstile. A signal reads the
        // flags alone, and what they take away is ordered by the fence.
        let left_at_ns = entry.left_at_ns.map_or(0, NonZeroU64::get);
        self.left_at_ns.store(left_at_ns, Ordering::Relaxed);
        self.flags.store(flags, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> Entry {
        // Relaxed: as in `set`.
        let flags = self.flags.load(Ordering::Relaxed);
        Entry {
            left_at_ns: NonZeroU64::new(self.left_at_ns.load(Ordering::Relaxed)),
            status: if flags & LEFT == 0 {
                MembershipStatus::Active
            } else {
                MembershipStatus::Left
            },
            fan_out: fan_out(flags),
            standing: match flags >> STANDING_SHIFT {
                0 => Standing::Settled,
                1 => Standing::Unsettled,
                2 => Standing::Malformed,
                _ => Standing::Lost,
            },
        }
    }

    /// What signals may be added to.
    pub(super) fn fan_out(&self) -> FanOut {
        // Relaxed: as in `set`.
        fan_out(self.flags.load(Ordering::Relaxed))
    }
}

fn fan_out(flags: u8) -> FanOut {
    FanOut {
        cohort_attribution: flags & COHORT_ATTRIBUTION != 0,
        community_forwarding: flags & COMMUNITY_FORWARDING != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_read() {
        for left_at_ns in [None, NonZeroU64::new(1), Some(NonZeroU64::MAX)] {
            for status in [MembershipStatus::Active, MembershipStatus::Left] {
                for standing in [
                    Standing::Settled,
                    Standing::Unsettled,
                    Standing::Malformed,
                    Standing::Lost,
                ] {
                    for (cohort_attribution, community_forwarding) in
                        [(false, false), (false, true), (true, false), (true, true)]
                    {
                        let entry = Entry {
                            left_at_ns,
                            status,
                            fan_out: FanOut {
                                cohort_attribution,
                                community_forwarding,
                            },
                            standing,
                        };
                        let shared = SharedEntry::new(entry);
                        assert_eq!(shared.get(), entry);
                        assert_eq!(shared.fan_out(), entry.fan_out);
                    }
                }
            }
        }
    }
}
