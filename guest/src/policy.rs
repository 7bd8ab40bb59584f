//! The rules: what leaving and rejoining make of a membership, and what a
//! membership lets through.

use crate::record::{self, Malformed};

/// Where a user stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Active,
    Left,
}

/// A user's standing, and the boundary of their latest leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    pub user_id: u64,
    pub status: Status,
    /// Nanoseconds since the Unix epoch; `Some(0)` means `None`.
    pub left_at_ns: Option<u64>,
}

/// The shared aggregates that a signal may be added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FanOut {
    pub cohort_attribution: bool,
    pub community_forwarding: bool,
}

/// The membership of a user who leaves at `now_ns`. The boundary never moves back.
pub fn leave(current: Membership, now_ns: u64) -> Membership {
    let boundary = now_ns.max(current.left_at_ns.unwrap_or(0));
    Membership {
        user_id: current.user_id,
        status: Status::Left,
        left_at_ns: (boundary != 0).then_some(boundary),
    }
}

/// The membership of a user who comes back. The boundary of their last leave stays.
pub fn rejoin(current: Membership) -> Membership {
    Membership {
        user_id: current.user_id,
        status: Status::Active,
        left_at_ns: current.left_at_ns.filter(|instant| *instant != 0),
    }
}

/// The membership that a stored record stands for; without one, an active user
/// who never left.
///
/// # Errors
///
/// [`Malformed`] if the bytes are no record.
pub fn status(user_id: u64, stored: Option<&[u8]>) -> Result<Membership, Malformed> {
    match stored {
        Some(bytes) => record::deserialize(user_id, bytes),
        None => Ok(Membership {
            user_id,
            status: Status::Active,
            left_at_ns: None,
        }),
    }
}

/// What a signal of this user may be added to: everything while they are active,
/// nothing once they have left.
pub fn signal(current: Membership) -> FanOut {
    let open = current.status == Status::Active;
    FanOut {
        cohort_attribution: open,
        community_forwarding: open,
    }
}

/// [`status`] and [`signal`] for many records, one entry for each user. Record
/// `i` is the next `lengths[i]` bytes; a record that is not there in full is
/// malformed, which is `None`.
pub fn restore<'a>(
    users: &'a [u64],
    lengths: &'a [u32],
    bytes: &'a [u8],
) -> impl Iterator<Item = Option<(Membership, FanOut)>> + 'a {
    let mut lengths = lengths.iter();
    let mut rest = Some(bytes);
    users.iter().map(move |user_id| {
        // Once one record is cut short, where the next begins is not known.
        let length = lengths.next().map(|length| *length as usize);
        let (record, behind) = rest.take().zip(length).and_then(split)?;
        rest = Some(behind);
        let membership = status(*user_id, Some(record)).ok()?;
        Some((membership, signal(membership)))
    })
}

fn split((bytes, length): (&[u8], usize)) -> Option<(&[u8], &[u8])> {
    bytes.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER_LEFT: Membership = Membership {
        user_id: 7,
        status: Status::Active,
        left_at_ns: None,
    };

    #[test]
    fn leaving_again_never_moves_the_boundary_back() {
        let left = leave(NEVER_LEFT, 100);
        assert_eq!(left.left_at_ns, Some(100));
        assert_eq!(leave(left, 50).left_at_ns, Some(100));
        assert_eq!(leave(left, 150).left_at_ns, Some(150));
    }

    #[test]
    fn rejoining_keeps_the_boundary() {
        let back = rejoin(leave(NEVER_LEFT, 100));
        assert_eq!(back.status, Status::Active);
        assert_eq!(back.left_at_ns, Some(100));
    }

    #[test]
    fn zero_is_no_instant() {
        assert_eq!(leave(NEVER_LEFT, 0).left_at_ns, None);
        let zero = Membership {
            left_at_ns: Some(0),
            ..NEVER_LEFT
        };
        assert_eq!(rejoin(zero).left_at_ns, None);
    }

    #[test]
    fn restoring_stops_reading_at_the_first_record_that_is_cut_short() {
        let record = record::serialize(&leave(NEVER_LEFT, 5));
        let mut bytes = record.to_vec();
        bytes.extend_from_slice(&record[..8]);
        let restored: Vec<_> = restore(&[1, 2, 3], &[9, 9, 0], &bytes).collect();
        assert!(restored[0].is_some());
        assert_eq!(restored[1..], [None, None]);
    }

    #[test]
    fn restoring_goes_on_behind_a_malformed_record() {
        let record = record::serialize(&leave(NEVER_LEFT, 5));
        let bytes = [&[7_u8; 3][..], &record].concat();
        let restored: Vec<_> = restore(&[1, 2], &[3, 9], &bytes).collect();
        assert_eq!(restored[0], None);
        assert_eq!(
            restored[1].map(|(membership, _)| membership.user_id),
            Some(2)
        );
    }
}
