//! The nine bytes that stand for a membership in storage.
//!
//! | offset | length | content |
//! |---|---|---|
//! | 0 | 1 | status: 0 active, 1 left |
//! | 1 | 8 | `left_at_ns`, little endian; 0 means none |
//!
//! Every other length and every other status byte is malformed. The user is not
//! in the record: the storage key names them.

use crate::policy::{Membership, Status};

/// The length of a record. There is no other.
pub const RECORD_LENGTH: usize = 9;

const ACTIVE: u8 = 0;
const LEFT: u8 = 1;

/// Why bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The number of bytes is not [`RECORD_LENGTH`]; holds the number found.
    Length(usize),
    /// The first byte is no status; holds the byte found.
    Status(u8),
}

/// The record of a membership. `left_at_ns` of `Some(0)` is written as none.
pub fn serialize(membership: &Membership) -> [u8; RECORD_LENGTH] {
    let status = match membership.status {
        Status::Active => ACTIVE,
        Status::Left => LEFT,
    };
    let [b0, b1, b2, b3, b4, b5, b6, b7] = membership.left_at_ns.unwrap_or(0).to_le_bytes();
    [status, b0, b1, b2, b3, b4, b5, b6, b7]
}

/// The membership of `user_id` that a record stands for: the inverse of
/// [`serialize`].
///
/// # Errors
///
/// [`Malformed`] for any bytes that [`serialize`] cannot have written.
pub fn deserialize(user_id: u64, bytes: &[u8]) -> Result<Membership, Malformed> {
    let record: &[u8; RECORD_LENGTH] = bytes
        .try_into()
        .map_err(|_| Malformed::Length(bytes.len()))?;
    let [status, left_at_ns @ ..] = record;
    let status = match *status {
        ACTIVE => Status::Active,
        LEFT => Status::Left,
        unknown => return Err(Malformed::Status(unknown)),
    };
    let left_at_ns = match u64::from_le_bytes(*left_at_ns) {
        0 => None,
        instant => Some(instant),
    };
    Ok(Membership {
        user_id,
        status,
        left_at_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn membership(status: Status, left_at_ns: Option<u64>) -> Membership {
        Membership {
            user_id: 42,
            status,
            left_at_ns,
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_specification() {
        assert_eq!(serialize(&membership(Status::Active, None)), [0; 9]);
        assert_eq!(
            serialize(&membership(Status::Left, Some(0x0102_0304_0506_0708))),
            [1, 8, 7, 6, 5, 4, 3, 2, 1]
        );
    }

    #[test]
    fn an_instant_of_zero_is_none() {
        let bytes = serialize(&membership(Status::Left, Some(0)));
        assert_eq!(deserialize(42, &bytes), Ok(membership(Status::Left, None)));
    }

    #[test]
    fn other_lengths_and_status_bytes_are_malformed() {
        for length in (0..64).filter(|length| *length != RECORD_LENGTH) {
            assert_eq!(
                deserialize(42, &vec![0; length]),
                Err(Malformed::Length(length))
            );
        }
        for status in 2..=u8::MAX {
            assert_eq!(
                deserialize(42, &[status, 0, 0, 0, 0, 0, 0, 0, 0]),
                Err(Malformed::Status(status))
            );
        }
    }
}
