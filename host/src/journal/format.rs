//! The bytes of the journal.
//!
//! The file begins with 32 bytes:
//!
//! | offset | length | content |
//! |---|---|---|
//! | 0 | 16 | `tidegate journal` |
//! | 16 | 4 | version of this format, 2 |
//! | 20 | 8 | store id, chosen at random when the store was made |
//! | 28 | 4 | CRC-32 of the 28 bytes before |
//!
//! [Blocks](super::blocks) follow, and unless the store was closed zeros, which the next
//! blocks are written over. All numbers are little endian. What can't be read is passed
//! over: reading goes on at the next block whose checksum is right and whose groups are as
//! they must be.

use std::borrow::Cow;

use super::blocks::{self, Block};
use crate::checksum;
use crate::membership::MembershipStatus;

const MAGIC: &[u8; 16] = b"tidegate journal";
pub(super) const VERSION: u32 = 2;
pub(super) const HEADER_LENGTH: usize = 32;

/// The longest record that is read; the contract allows no longer one.
pub(crate) const MAX_RECORD_BYTES: usize = 1024;

/// More transitions than any journal that could be read into memory has.
pub(crate) const MAX_SEQUENCE: u64 = 1 << 33;

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

    /// The same, with the record left where it is.
    pub(super) fn borrowed(&self) -> Entry<'_> {
        Entry {
            record: Cow::Borrowed(&self.record),
            ..*self
        }
    }
}

/// What the beginning of a file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// A journal of this store.
    Store(u64),
    /// A journal in another format.
    Version(u32),
    /// No journal, or one whose header is damaged.
    Unreadable,
}

/// What was found between two offsets of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    /// A block, and the offset behind it.
    Block { block: Block<'a>, end: usize },
    /// So many bytes that are no block.
    Damage { length: usize },
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

/// Reads all blocks of a file's content behind the header, and what lies between them.
pub(super) fn read(bytes: &[u8]) -> impl Iterator<Item = Found<'_>> {
    let mut offset = HEADER_LENGTH;
    std::iter::from_fn(move || {
        let rest = bytes.get(offset..).filter(|rest| !rest.is_empty())?;
        if let Some((block, length)) = blocks::read_block(rest) {
            offset += length;
            return Some(Found::Block { block, end: offset });
        }
        let length = next_block(rest).unwrap_or(rest.len());
        offset += length;
        Some(Found::Damage { length })
    })
}

/// How far it is to the next block that can be read.
fn next_block(bytes: &[u8]) -> Option<usize> {
    (1..bytes.len()).find(|start| blocks::read_block(&bytes[*start..]).is_some())
}

#[cfg(test)]
mod tests {
    use super::super::blocks::write_blocks;
    use super::*;

    /// The length of a block with one entry and a record of nine bytes.
    const BLOCK: usize = 12 + 12 + 17 + 2 + 9;

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

    /// A journal with a block for each entry.
    fn journal(entries: u64) -> Vec<u8> {
        let mut bytes = header(5);
        for sequence in 1..=entries {
            write_blocks(std::iter::once(entry(sequence)), |block| {
                bytes.extend_from_slice(block);
                Ok(())
            })
            .unwrap();
        }
        bytes
    }

    fn sequences(bytes: &[u8]) -> Vec<u64> {
        read(bytes)
            .filter_map(|found| match found {
                Found::Block { block, .. } => Some(block.entries()),
                Found::Damage { .. } => None,
            })
            .flatten()
            .map(|entry| entry.sequence)
            .collect()
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = journal(3);
        let ends: Vec<usize> = read(&bytes)
            .map(|found| match found {
                Found::Block { end, .. } => end,
                Found::Damage { .. } => 0,
            })
            .collect();
        assert_eq!(ends, [1, 2, 3].map(|blocks| HEADER_LENGTH + BLOCK * blocks));
        assert_eq!(sequences(&bytes), [1, 2, 3]);
        assert_eq!(read_header(&header(u64::MAX)), Header::Store(u64::MAX));
    }

    #[test]
    fn any_damaged_byte_costs_one_block_at_most() {
        let whole = journal(5);
        for at in HEADER_LENGTH..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0xFF;
            let damaged = ((at - HEADER_LENGTH) / BLOCK) as u64 + 1;
            let expected: Vec<u64> = (1..=5).filter(|sequence| *sequence != damaged).collect();
            assert_eq!(sequences(&bytes), expected, "byte {at}");
        }
    }

    #[test]
    fn a_block_whose_number_no_transition_can_have_is_damage() {
        for sequence in [0, MAX_SEQUENCE + 1, u64::MAX] {
            let mut bytes = header(5);
            let mut impossible = entry(2);
            impossible.sequence = sequence;
            write_blocks(std::iter::once(impossible), |block| {
                bytes.extend_from_slice(block);
                Ok(())
            })
            .unwrap();
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
        for length in HEADER_LENGTH + BLOCK + 1..whole.len() {
            let found: Vec<Found<'_>> = read(&whole[..length]).collect();
            assert_eq!(found.len(), 2, "{length}");
            assert!(matches!(found[1], Found::Damage { .. }));
        }
    }
}
