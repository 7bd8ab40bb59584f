//! Blocks: transitions that were synced at once, those that shared a sync when they
//! happened or many that compaction wrote anew. One checksum is over all of a block, so
//! that of transitions that shared a sync all are there or none: of a write that was
//! under way when the power failed a disk may keep the end and not the beginning.
//!
//! Compaction writes them in the order of users, so that opening can compare them with
//! the store's records as both are read, and many transitions of one user take less room.
//!
//! | offset | length | content |
//! |---|---|---|
//! | 0 | 4 | mark: `tgB1` |
//! | 4 | 4 | CRC-32 of all that follows in the block |
//! | 8 | 4 | length of what follows, at most 131,072 |
//! | 12 | any | groups, from one |
//!
//! A group is what one user did:
//!
//! | offset | length | content |
//! |---|---|---|
//! | 0 | 8 | user id |
//! | 8 | 4 | number of transitions, from 1 |
//! | 12 | 17 each | sequence number, from 1 to 2^33, 8 bytes; instant in nanoseconds since the Unix epoch 8; standing that it led to 1: 0 active, 1 left |
//! | then | 2 | length of the record, at most 1,024 |
//! | then | any | the record of the last of these transitions, as the component wrote it; none where a later one follows |
//!
//! Within a block users ascend, and sequence numbers within a user; a user with many
//! transitions goes on in the next block. All numbers are little endian.

use std::borrow::Cow;
use std::io;

use super::format::{Entry, MAX_RECORD_BYTES, is_sequence, standing, standing_byte};
use crate::checksum;

const MARK: &[u8; 4] = b"tgB1";
const PREFIX_LENGTH: usize = 12;
const TRANSITION_LENGTH: usize = 17;
/// The length of a group without its transitions and its record.
const GROUP_LENGTH: usize = 14;

/// A block is written when it has grown to this.
const FULL_LENGTH: usize = 64 * 1024;

/// The longest content that is read. What is written is shorter.
const MAX_LENGTH: usize = 128 * 1024;

/// The groups of a block that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block<'a> {
    groups: &'a [u8],
}

impl<'a> Block<'a> {
    /// The block in bytes that were read as one before.
    pub(super) fn at(bytes: &'a [u8]) -> Self {
        Block {
            groups: bytes.get(PREFIX_LENGTH..).unwrap_or_default(),
        }
    }

    /// Its transitions, in the order of users and of sequence numbers.
    pub(crate) fn entries(self) -> impl Iterator<Item = Entry<'a>> {
        let mut reader = Reader::new(self.groups);
        std::iter::from_fn(move || reader.read().ok().flatten())
    }
}

/// The block that the bytes begin with, and its length.
pub(super) fn read_block(bytes: &[u8]) -> Option<(Block<'_>, usize)> {
    let (mark, rest) = bytes.split_first_chunk::<4>()?;
    if mark != MARK {
        return None;
    }
    let (checksum, content) = rest.split_first_chunk::<4>()?;
    let (length, groups) = content.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    if length > MAX_LENGTH {
        return None;
    }
    let groups = groups.get(..length)?;
    if !checksum::matches(&content[..4 + length], *checksum) {
        return None;
    }
    let block = Block { groups };
    is_ordered(groups).then_some((block, PREFIX_LENGTH + length))
}

/// Whether the groups can be read to their end, in order.
fn is_ordered(groups: &[u8]) -> bool {
    let mut reader = Reader::new(groups);
    let mut last = None;
    loop {
        match reader.read() {
            Ok(Some(entry)) if last < Some((entry.user_id, entry.sequence)) => {
                last = Some((entry.user_id, entry.sequence));
            }
            Ok(None) => return last.is_some(),
            Ok(Some(_)) | Err(Unreadable) => return false,
        }
    }
}

/// Groups that are not as the tables say.
struct Unreadable;

struct Reader<'a> {
    rest: &'a [u8],
    user_id: u64,
    /// How many transitions of the group are still to be read.
    left: u32,
}

impl<'a> Reader<'a> {
    fn new(groups: &'a [u8]) -> Self {
        Reader {
            rest: groups,
            user_id: 0,
            left: 0,
        }
    }

    fn read(&mut self) -> Result<Option<Entry<'a>>, Unreadable> {
        if self.left == 0 {
            if self.rest.is_empty() {
                return Ok(None);
            }
            self.user_id = u64::from_le_bytes(self.take()?);
            self.left = u32::from_le_bytes(self.take()?);
        }
        self.left = self.left.checked_sub(1).ok_or(Unreadable)?;
        let sequence = u64::from_le_bytes(self.take()?);
        let at_ns = u64::from_le_bytes(self.take()?);
        let [to] = self.take()?;
        let record = if self.left == 0 { self.record()? } else { &[] };
        Ok(Some(Entry {
            sequence: is_sequence(sequence)
                .then_some(sequence)
                .ok_or(Unreadable)?,
            user_id: self.user_id,
            at_ns,
            to: standing(to).ok_or(Unreadable)?,
            record: Cow::Borrowed(record),
        }))
    }

    fn record(&mut self) -> Result<&'a [u8], Unreadable> {
        let length = usize::from(u16::from_le_bytes(self.take()?));
        if length > MAX_RECORD_BYTES {
            return Err(Unreadable);
        }
        let (record, rest) = self.rest.split_at_checked(length).ok_or(Unreadable)?;
        self.rest = rest;
        Ok(record)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Unreadable> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>().ok_or(Unreadable)?;
        self.rest = rest;
        Ok(*bytes)
    }
}

/// How many transitions of one user fit into a block, whatever the record.
pub(crate) const MAX_TRANSITIONS: usize =
    (FULL_LENGTH - PREFIX_LENGTH - GROUP_LENGTH - MAX_RECORD_BYTES) / TRANSITION_LENGTH;

/// How many groups are at most written as one block, of those with so many transitions and
/// a record of this length each: all, unless there are a great many; one at least.
pub(crate) fn fitting(groups: impl Iterator<Item = (usize, usize)>) -> usize {
    groups
        .scan(PREFIX_LENGTH, |length, (transitions, record_length)| {
            *length += GROUP_LENGTH + transitions * TRANSITION_LENGTH + record_length;
            Some(*length)
        })
        .take_while(|length| *length <= FULL_LENGTH)
        .count()
        .max(1)
}

/// Gives `emit` the blocks of these entries, which must be in the order of users and
/// of sequence numbers.
pub(crate) fn write_blocks<'a>(
    entries: impl Iterator<Item = Entry<'a>>,
    mut emit: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut block = Writer::default();
    for entry in entries {
        let continues = block.goes_on_with(&entry);
        if !continues {
            block.end_group();
        }
        if block.bytes.len() >= FULL_LENGTH {
            if continues {
                block.last_record.clear();
            }
            block.end_group();
            emit(block.finish())?;
            block = Writer::default();
        }
        block.add(&entry);
    }
    block.end_group();
    if block.bytes.is_empty() {
        return Ok(());
    }
    emit(block.finish())
}

#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
    /// Where the count of the group that is being written is, and the group's user.
    group: Option<(usize, u64)>,
    count: u32,
    last_record: Vec<u8>,
}

impl Writer {
    fn goes_on_with(&self, entry: &Entry<'_>) -> bool {
        self.group
            .is_some_and(|(_, user_id)| user_id == entry.user_id)
    }

    fn add(&mut self, entry: &Entry<'_>) {
        if self.bytes.is_empty() {
            self.bytes.extend_from_slice(&[0; PREFIX_LENGTH]);
        }
        if self.group.is_none() {
            self.bytes.extend_from_slice(&entry.user_id.to_le_bytes());
            self.group = Some((self.bytes.len(), entry.user_id));
            self.bytes.extend_from_slice(&[0; 4]);
        }
        self.count += 1;
        self.bytes.reserve(TRANSITION_LENGTH);
        self.bytes.extend_from_slice(&entry.sequence.to_le_bytes());
        self.bytes.extend_from_slice(&entry.at_ns.to_le_bytes());
        self.bytes.push(standing_byte(entry.to));
        self.last_record.clear();
        self.last_record.extend_from_slice(&entry.record);
    }

    fn end_group(&mut self) {
        let Some((count_at, _)) = self.group.take() else {
            return;
        };
        self.bytes[count_at..count_at + 4].copy_from_slice(&self.count.to_le_bytes());
        self.count = 0;
        // A record is at most 1,024 bytes long: `rules` and `db::reconcile` see to that.
        let length = u16::try_from(self.last_record.len()).unwrap_or(u16::MAX);
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.append(&mut self.last_record);
    }

    /// Fills in what stands before the groups.
    fn finish(&mut self) -> &[u8] {
        let length = u32::try_from(self.bytes.len() - PREFIX_LENGTH).unwrap_or(u32::MAX);
        self.bytes[8..PREFIX_LENGTH].copy_from_slice(&length.to_le_bytes());
        let checksum = checksum::of(&self.bytes[8..]);
        self.bytes[4..8].copy_from_slice(&checksum);
        self.bytes[..4].copy_from_slice(MARK);
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::MembershipStatus;

    fn entry(user_id: u64, sequence: u64, record: &'static [u8]) -> Entry<'static> {
        Entry {
            sequence,
            user_id,
            at_ns: 1_700_000_000_000_000_000 + sequence,
            to: if sequence.is_multiple_of(2) {
                MembershipStatus::Active
            } else {
                MembershipStatus::Left
            },
            record: Cow::Borrowed(record),
        }
    }

    fn blocks(entries: &[Entry<'static>]) -> Vec<Vec<u8>> {
        let mut blocks = Vec::new();
        write_blocks(entries.iter().cloned(), |block| {
            blocks.push(block.to_vec());
            Ok(())
        })
        .unwrap();
        blocks
    }

    #[test]
    fn the_bytes_are_those_of_the_tables() {
        let blocks = blocks(&[
            entry(0x0203, 1, b"old"),
            entry(0x0203, 4, b"new"),
            entry(0x0204, 3, b""),
        ]);
        let [block] = &blocks[..] else {
            panic!("{} blocks", blocks.len())
        };
        let at = |sequence: u64| (1_700_000_000_000_000_000 + sequence).to_le_bytes();
        let mut groups = vec![3, 2, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0];
        groups.extend([1, 0, 0, 0, 0, 0, 0, 0]);
        groups.extend(at(1));
        groups.push(1);
        groups.extend([4, 0, 0, 0, 0, 0, 0, 0]);
        groups.extend(at(4));
        groups.push(0);
        groups.extend([3, 0]);
        groups.extend(b"new");
        groups.extend([4, 2, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
        groups.extend([3, 0, 0, 0, 0, 0, 0, 0]);
        groups.extend(at(3));
        groups.extend([1, 0, 0]);
        assert_eq!(&block[..4], b"tgB1");
        assert_eq!(
            block[8..12],
            u32::try_from(groups.len()).unwrap().to_le_bytes()
        );
        assert_eq!(block[12..], groups);
        assert_eq!(block[4..8], checksum::of(&block[8..]));
    }

    #[test]
    fn what_is_written_is_read_with_the_last_record_of_each_user() {
        // More transitions of one user than a block holds, between others.
        let mut entries = vec![entry(1, 1, b"one")];
        entries.extend((2..10_000).map(|sequence| entry(5, sequence, b"superseded")));
        entries.push(entry(5, 10_000, b"five"));
        entries.extend((1..3_000).map(|user| entry(5 + user, 10_000 + user, b"one each")));
        let blocks = blocks(&entries);
        assert!(blocks.len() > 3, "{} blocks", blocks.len());
        let mut read = Vec::new();
        for block in &blocks {
            let (found, length) = read_block(block).unwrap();
            assert_eq!(length, block.len());
            assert_eq!(Block::at(block), found);
            read.extend(found.entries());
        }
        for entry in &mut entries {
            if *entry.record == *b"superseded" {
                entry.record = Cow::Borrowed(b"");
            }
        }
        assert_eq!(read.len(), entries.len());
        assert!(read == entries);
    }

    #[test]
    fn transitions_that_fit_are_one_block() {
        for record_length in [0, 9, MAX_RECORD_BYTES] {
            let record: &[u8] = vec![7; record_length].leak();
            let fitting = fitting(std::iter::repeat_n((1, record_length), 100_000));
            let entries: Vec<_> = (1..=fitting as u64)
                .map(|number| entry(number, number, record))
                .collect();
            let blocks = blocks(&entries);
            assert_eq!(blocks.len(), 1, "{fitting} of {record_length} bytes");
            let (block, _) = read_block(&blocks[0]).unwrap();
            assert_eq!(block.entries().count(), fitting);
        }
        assert_eq!(fitting([(1, 0); 3].into_iter()), 3);
        assert_eq!(fitting([(1, 100_000); 3].into_iter()), 1);

        // And of one user.
        let record: &[u8] = &[7; MAX_RECORD_BYTES];
        let entries: Vec<_> = (1..=MAX_TRANSITIONS as u64)
            .map(|number| entry(1, number, record))
            .collect();
        assert_eq!(blocks(&entries).len(), 1);
        let group = (MAX_TRANSITIONS, MAX_RECORD_BYTES);
        assert_eq!(fitting([group, (1, 9)].into_iter()), 1);
    }

    #[test]
    fn any_damaged_byte_is_noticed() {
        let whole = blocks(&[entry(1, 1, b"123456789"), entry(2, 2, b"123456789")]).concat();
        assert!(read_block(&whole).is_some());
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            assert_eq!(read_block(&bytes), None, "byte {at}");
            assert_eq!(read_block(&whole[..at]), None, "cut to {at}");
        }
    }

    #[test]
    fn groups_out_of_order_are_no_block() {
        for entries in [
            [entry(2, 1, b""), entry(1, 2, b"")],
            [entry(1, 2, b""), entry(1, 1, b"")],
            [entry(1, 1, b""), entry(1, 1, b"")],
        ] {
            assert_eq!(read_block(&blocks(&entries).concat()), None);
        }
    }
}
