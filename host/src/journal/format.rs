//! The bytes of the journal.
//!
//! The file begins with 32 bytes:
//!
//! | offset | length | content |
//! |---|---|---|
//! | 0 | 16 | `tidegate journal` |
//! | 16 | 4 | version of this format, 1 |
//! | 20 | 8 | store id, chosen at random when the store was made |
//! | 28 | 4 | CRC-32 of the 28 bytes before |
//!
//! Frames and blocks follow. A frame is one transition, as it was appended, in any order
//! of their sequence numbers:
//!
//! | offset | length | content |
//! |---|---|---|
//! | 0 | 4 | mark: `tgF1` |
//! | 4 | 4 | CRC-32 of all that follows in the frame |
//! | 8 | 8 | sequence number, from 1 |
//! | 16 | 8 | user id |
//! | 24 | 8 | instant of the transition in nanoseconds since the Unix epoch |
//! | 32 | 1 | standing that it led to: 0 active, 1 left |
//! | 33 | 2 | length of the record, at most 1,024 |
//! | 35 | any | the record, as the component wrote it |
//!
//! A block is what compaction makes of many frames; see [`blocks`](super::blocks).
//!
//! All numbers are little endian. What can't be read is passed over: reading goes on at
//! the next mark behind which the checksum is right.

use std::borrow::Cow;

use super::blocks::{self, Block};
use crate::checksum;
use crate::membership::MembershipStatus;

const MAGIC: &[u8; 16] = b"tidegate journal";
pub(super) const VERSION: u32 = 1;
pub(super) const HEADER_LENGTH: usize = 32;

const MARK: &[u8; 4] = b"tgF1";
/// The length of a frame without its record.
const FRAME_LENGTH: usize = 35;

/// The longest record that is read; the contract allows no longer one.
pub(super) const MAX_RECORD_BYTES: usize = 1024;

/// More transitions than any journal that could be read into memory has.
const MAX_SEQUENCE: u64 = 1 << 33;

/// Whether a number can be that of a transition.
pub(crate) fn is_sequence(number: u64) -> bool {
    (1..=MAX_SEQUENCE).contains(&number)
}

/// One transition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) sequence: u64,
    pub(crate) user_id: u64,
    pub(crate) at_ns: u64,
    pub(crate) to: MembershipStatus,
    /// Empty where a later transition of the user made it worthless, or it is lost.
    pub(crate) record: Cow<'a, [u8]>,
}

impl Entry<'_> {
    /// Its place in the order of users and of sequence numbers.
    pub(crate) fn order(&self) -> (u64, u64) {
        (self.user_id, self.sequence)
    }
}

/// What the beginning of a file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// A journal of this store.
    Store(u64),
    /// A journal in a later format.
    Version(u32),
    /// No journal, or one whose header is damaged.
    Unreadable,
}

/// What was found between two offsets of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    /// A frame, and the offset behind it.
    Entry { entry: Entry<'a>, end: usize },
    /// A block, and the offset behind it.
    Block { block: Block<'a>, end: usize },
    /// Bytes that are no frame.
    Damage { offset: usize, length: usize },
}

pub(crate) fn header(store_id: u64) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&store_id.to_le_bytes());
    bytes.extend_from_slice(&checksum::of(&bytes));
    bytes
}

pub(super) fn read_header(bytes: &[u8]) -> Header {
    let parts = bytes.split_first_chunk::<16>().and_then(|(magic, rest)| {
        let (version, rest) = rest.split_first_chunk::<4>()?;
        let (store_id, rest) = rest.split_first_chunk::<8>()?;
        let checksum = rest.first_chunk::<4>()?;
        Some((magic, *version, *store_id, *checksum))
    });
    match parts {
        Some((MAGIC, version, store_id, checksum))
            if bytes
                .get(..HEADER_LENGTH - 4)
                .is_some_and(|content| checksum::matches(content, checksum)) =>
        {
            match u32::from_le_bytes(version) {
                VERSION => Header::Store(u64::from_le_bytes(store_id)),
                other => Header::Version(other),
            }
        }
        _ => Header::Unreadable,
    }
}

/// Adds the frame of an entry.
pub(super) fn write(entry: &Entry<'_>, bytes: &mut Vec<u8>) {
    let start = bytes.len();
    bytes.extend_from_slice(MARK);
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&entry.sequence.to_le_bytes());
    bytes.extend_from_slice(&entry.user_id.to_le_bytes());
    bytes.extend_from_slice(&entry.at_ns.to_le_bytes());
    bytes.push(standing_byte(entry.to));
    // A record is at most 1,024 bytes long: `rules` sees to that.
    let length = u16::try_from(entry.record.len()).unwrap_or(u16::MAX);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&entry.record);
    let checksum = checksum::of(&bytes[start + 8..]);
    bytes[start + 4..start + 8].copy_from_slice(&checksum);
}

pub(super) fn standing_byte(to: MembershipStatus) -> u8 {
    match to {
        MembershipStatus::Active => 0,
        MembershipStatus::Left => 1,
    }
}

pub(super) fn standing(byte: u8) -> Option<MembershipStatus> {
    match byte {
        0 => Some(MembershipStatus::Active),
        1 => Some(MembershipStatus::Left),
        _ => None,
    }
}

/// Reads all frames and blocks of a file's content behind the header, and what lies
/// between them.
pub(super) fn read(bytes: &[u8]) -> impl Iterator<Item = Found<'_>> {
    let mut offset = HEADER_LENGTH;
    std::iter::from_fn(move || {
        let rest = bytes.get(offset..).filter(|rest| !rest.is_empty())?;
        if let Some((entry, length)) = read_frame(rest) {
            offset += length;
            return Some(Found::Entry { entry, end: offset });
        }
        if let Some((block, length)) = blocks::read_block(rest) {
            offset += length;
            return Some(Found::Block { block, end: offset });
        }
        let length = next_readable(rest).unwrap_or(rest.len());
        let damage = Found::Damage { offset, length };
        offset += length;
        Some(damage)
    })
}

/// How far it is to the next frame or block that can be read.
fn next_readable(bytes: &[u8]) -> Option<usize> {
    (1..bytes.len()).find(|start| {
        let rest = &bytes[*start..];
        read_frame(rest).is_some() || blocks::read_block(rest).is_some()
    })
}

/// The frame that the bytes begin with, and its length.
pub(super) fn read_frame(bytes: &[u8]) -> Option<(Entry<'_>, usize)> {
    let (mark, rest) = bytes.split_first_chunk::<4>()?;
    if mark != MARK {
        return None;
    }
    let (checksum, content) = rest.split_first_chunk::<4>()?;
    let (sequence, rest) = content.split_first_chunk::<8>()?;
    let (user_id, rest) = rest.split_first_chunk::<8>()?;
    let (at_ns, rest) = rest.split_first_chunk::<8>()?;
    let (to, rest) = rest.split_first()?;
    let (length, rest) = rest.split_first_chunk::<2>()?;
    let length = usize::from(u16::from_le_bytes(*length));
    if length > MAX_RECORD_BYTES {
        return None;
    }
    let record = rest.get(..length)?;
    let content = &content[..FRAME_LENGTH - 8 + length];
    if !checksum::matches(content, *checksum) {
        return None;
    }
    let sequence = u64::from_le_bytes(*sequence);
    let entry = Entry {
        sequence: is_sequence(sequence).then_some(sequence)?,
        user_id: u64::from_le_bytes(*user_id),
        at_ns: u64::from_le_bytes(*at_ns),
        to: standing(*to)?,
        record: Cow::Borrowed(record),
    };
    Some((entry, FRAME_LENGTH + length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(sequence: u64) -> Entry<'static> {
        Entry {
            sequence,
            user_id: u64::MAX - sequence,
            at_ns: 1_700_000_000_000_000_000 + sequence,
            to: if sequence.is_multiple_of(2) {
                MembershipStatus::Active
            } else {
                MembershipStatus::Left
            },
            record: Cow::Owned(vec![7; 9]),
        }
    }

    fn journal(entries: u64) -> Vec<u8> {
        let mut bytes = header(5);
        for sequence in 1..=entries {
            write(&entry(sequence), &mut bytes);
        }
        bytes
    }

    #[test]
    fn the_bytes_are_those_of_the_table() {
        let mut bytes = Vec::new();
        let entry = Entry {
            sequence: 1,
            user_id: 0x0203,
            at_ns: 4,
            to: MembershipStatus::Left,
            record: Cow::Borrowed(&[9, 8]),
        };
        write(&entry, &mut bytes);
        assert_eq!(&bytes[..4], b"tgF1");
        assert_eq!(bytes[8..16], [1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[16..24], [3, 2, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[24..32], [4, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[32..], [1, 2, 0, 9, 8]);
        assert_eq!(header(5).len(), HEADER_LENGTH);
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = journal(3);
        let found: Vec<Found<'_>> = read(&bytes).collect();
        assert_eq!(
            found,
            [1, 2, 3].map(|sequence| Found::Entry {
                entry: entry(sequence),
                end: HEADER_LENGTH + 44 * usize::try_from(sequence).unwrap(),
            })
        );
        assert_eq!(read_header(&header(u64::MAX)), Header::Store(u64::MAX));
    }

    #[test]
    fn any_damaged_byte_costs_one_frame_at_most() {
        let whole = journal(5);
        for at in HEADER_LENGTH..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0xFF;
            let entries: Vec<u64> = read(&bytes)
                .filter_map(|found| match found {
                    Found::Entry { entry, .. } => Some(entry.sequence),
                    Found::Block { .. } | Found::Damage { .. } => None,
                })
                .collect();
            let damaged = (at - HEADER_LENGTH) as u64 / 44 + 1;
            let expected: Vec<u64> = (1..=5).filter(|sequence| *sequence != damaged).collect();
            assert_eq!(entries, expected, "byte {at}");
        }
    }

    #[test]
    fn a_frame_whose_number_no_transition_can_have_is_damage() {
        for sequence in [0, MAX_SEQUENCE + 1, u64::MAX] {
            let mut bytes = header(5);
            let mut impossible = entry(2);
            impossible.sequence = sequence;
            write(&impossible, &mut bytes);
            assert!(matches!(
                read(&bytes).collect::<Vec<_>>()[..],
                [Found::Damage { .. }]
            ));
        }
    }

    #[test]
    fn any_damaged_byte_of_the_header_is_noticed() {
        let whole = header(5);
        for at in 0..HEADER_LENGTH {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            assert_eq!(read_header(&bytes), Header::Unreadable, "byte {at}");
            assert_eq!(read_header(&whole[..at]), Header::Unreadable);
        }
    }

    #[test]
    fn a_file_that_ends_early_ends_in_damage() {
        let whole = journal(2);
        for length in HEADER_LENGTH + 45..whole.len() {
            let found: Vec<Found<'_>> = read(&whole[..length]).collect();
            assert_eq!(found.len(), 2, "{length}");
            assert!(matches!(found[1], Found::Damage { .. }));
        }
    }
}
