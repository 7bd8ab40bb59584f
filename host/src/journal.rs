//! The journal: every transition once more, in a file of the host's own, synced
//! before the transition is acknowledged. It proves and repairs the store.
//!
//! - [`format`]: the bytes; [`blocks`]: those of transitions
//! - [`disk`]: the operations on files
//! - [`mark`]: how many transitions there were when the store was last opened or closed
//!
//! The storage engine may lose what it acknowledged when its files are damaged, and
//! says nothing. A record that is lost is a gate that opens by itself, so the journal
//! keeps all transitions, under checksums, each with a number. Numbers have no gaps:
//! one that is missing was lost, and that can be told. Comparing the journal with
//! the store is left to `db::reconcile`, sharing syncs to `db::commit`.
//!
//! Transitions that share a sync are added as one block. When there is more in blocks that
//! are small or not in the order of users than in others, the next opening compacts the
//! journal: it writes a new one in that order and puts it in place of the old one. So each
//! transition is written again a few times at most, however long a store lives, and at
//! least half of what opening reads is in the order of users. No transition is ever left
//! out: the journal is the witness of the history, not of the records alone.
//!
//! The file grows ahead of its blocks, by zeros. A sync of bytes that the file had before
//! writes these bytes alone; where the file grows, it writes the file's length too, which
//! takes twice as long.

pub(crate) mod blocks;
pub(crate) mod disk;
pub(crate) mod format;
pub(crate) mod mark;

use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{Error, Result};
use blocks::Block;
use disk::{Disk, DiskFile};
use format::{Entry, Found, HEADER_LENGTH, Header, is_sequence};
use mark::Mark;

const FILE_NAME: &str = "journal";
const NEW_FILE_NAME: &str = "journal.new";
const DAMAGED_FILE_NAME: &str = "journal.damaged";

/// Fewer bytes than this are not worth a new file, and a block of fewer is small.
const MIN_BYTES_TO_COMPACT: usize = 4096;

/// How many bytes of a new journal are written at once.
const WRITE_LENGTH: usize = 1 << 20;

/// By how many zeros a journal grows ahead of its blocks.
const ROOM: usize = 64 * 1024;

/// Where a store's journal is.
#[derive(Clone, Debug)]
pub(crate) struct Location {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) folder: PathBuf,
}

impl Location {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn failed<E: Into<crate::error::Cause>>(&self, verb: &str) -> impl FnOnce(E) -> Error + use<E> {
        Error::storage(format!("{verb} the journal in `{}`", self.folder.display()))
    }
}

/// The content of a journal as it was found.
pub(crate) struct Content {
    bytes: Vec<u8>,
    header: Header,
    /// Where blocks are that lie in the order of users, each behind the one before.
    ordered_blocks: Vec<Range<usize>>,
    /// Where the others are, whose transitions have to be sorted.
    unordered_blocks: Vec<Range<usize>>,
    /// The end of the last block that can be read.
    good_length: usize,
    /// The number of damaged bytes before that.
    damaged: usize,
}

impl Content {
    /// Reads the journal; `None` if there is none.
    pub(crate) fn read(location: &Location) -> Result<Option<Self>> {
        Self::read_to(location, usize::MAX)
    }

    /// Reads the journal's first `length` bytes.
    fn read_to(location: &Location, length: usize) -> Result<Option<Self>> {
        let path = location.path(FILE_NAME);
        let Some(mut bytes) = location.disk.read(&path).map_err(location.failed("read"))? else {
            return Ok(None);
        };
        bytes.truncate(length);
        match format::read_header(&bytes) {
            Header::Version(found) => Err(Error::StoreFormat {
                path,
                found: found.to_string(),
                expected: format::VERSION,
            }),
            header => Ok(Some(Self::of(bytes, header))),
        }
    }

    /// The content of these bytes; `None` if they are in another format.
    #[cfg(fuzzing)]
    pub(crate) fn parse(bytes: Vec<u8>) -> Option<Self> {
        match format::read_header(&bytes) {
            Header::Version(_) => None,
            header => Some(Self::of(bytes, header)),
        }
    }

    fn of(bytes: Vec<u8>, header: Header) -> Self {
        let mut content = Content {
            header,
            ordered_blocks: Vec::new(),
            unordered_blocks: Vec::new(),
            good_length: HEADER_LENGTH.min(bytes.len()),
            damaged: 0,
            bytes: Vec::new(),
        };
        let mut last_of_blocks = None;
        let mut pending_damage = 0;
        for found in format::read(&bytes) {
            let end = match found {
                // At the end of the file it is what a crash leaves, or room.
                Found::Damage { length } => {
                    pending_damage += length;
                    continue;
                }
                Found::Block { block, end } => {
                    let place = content.good_length + pending_damage..end;
                    match follows(last_of_blocks, block) {
                        Some(last) => {
                            last_of_blocks = Some(last);
                            content.ordered_blocks.push(place);
                        }
                        None => content.unordered_blocks.push(place),
                    }
                    end
                }
            };
            content.damaged += std::mem::take(&mut pending_damage);
            content.good_length = end;
        }
        content.bytes = bytes;
        content
    }

    /// The store that the journal belongs to; `None` if its header is damaged.
    pub(crate) fn store_id(&self) -> Option<u64> {
        match self.header {
            Header::Store(store_id) => Some(store_id),
            Header::Version(_) | Header::Unreadable => None,
        }
    }

    /// The transitions that lie in the order of users and of sequence numbers.
    pub(crate) fn ordered(&self) -> impl Iterator<Item = Entry<'_>> {
        self.entries_of(&self.ordered_blocks)
    }

    /// Those of them that are of these users.
    pub(crate) fn ordered_of(&self, users: RangeInclusive<u64>) -> impl Iterator<Item = Entry<'_>> {
        let (first, last) = users.into_inner();
        let blocks = &self.ordered_blocks;
        let from = blocks.partition_point(|block| self.first_user(block) < Some(first));
        // The block before may end with transitions of the first user.
        self.entries_of(&blocks[from.saturating_sub(1)..])
            .skip_while(move |entry| entry.user_id < first)
            .take_while(move |entry| entry.user_id <= last)
    }

    /// Users at which to cut the transitions that lie in order, for at most `parts` parts of
    /// about as many bytes; some may be the same.
    pub(crate) fn cuts(&self, parts: usize) -> Vec<u64> {
        let blocks = &self.ordered_blocks;
        let length: usize = blocks.iter().map(Range::len).sum();
        let starts: Vec<usize> = blocks
            .iter()
            .scan(0, |end, block| {
                let start = *end;
                *end += block.len();
                Some(start)
            })
            .collect();
        (1..parts)
            .map(|part| starts.partition_point(|start| *start < length / parts * part))
            .filter_map(|block| self.first_user(blocks.get(block)?))
            .collect()
    }

    fn first_user(&self, block: &Range<usize>) -> Option<u64> {
        let mut entries = Block::at(&self.bytes[block.clone()]).entries();
        entries.next().map(|entry| entry.user_id)
    }

    /// All other transitions, in no order.
    pub(crate) fn unordered(&self) -> impl Iterator<Item = Entry<'_>> {
        self.entries_of(&self.unordered_blocks)
    }

    fn entries_of<'a>(&'a self, blocks: &'a [Range<usize>]) -> impl Iterator<Item = Entry<'a>> {
        blocks
            .iter()
            .flat_map(|place| Block::at(&self.bytes[place.clone()]).entries())
    }

    /// Whether so much of it is in no order, or in small blocks, that it should be written
    /// anew.
    pub(crate) fn is_worth_compacting(&self) -> bool {
        let unordered: usize = self.unordered_blocks.iter().map(Range::len).sum();
        let (large, small): (Vec<_>, Vec<_>) = (self.ordered_blocks.iter().map(Range::len))
            .partition(|length| *length >= MIN_BYTES_TO_COMPACT);
        // Compaction leaves one small block at most.
        let loose = unordered + small.iter().sum::<usize>();
        loose > large.iter().sum::<usize>().max(MIN_BYTES_TO_COMPACT)
    }

    /// Bytes that can't be read, other than a torn end.
    pub(crate) fn damaged_bytes(&self) -> usize {
        let header = match self.header {
            // Of an empty file too: blocks would be added to no header.
            Header::Unreadable => HEADER_LENGTH,
            _ => 0,
        };
        self.damaged + header
    }

    /// Bytes behind the last block that can be read, up to the last that is not zero.
    pub(crate) fn torn_bytes(&self) -> usize {
        let behind = &self.bytes[self.good_length..];
        behind
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |at| at + 1)
    }
}

/// The place in the order of users of a block's last transition, if the block comes
/// behind `last` with all of them.
fn follows(last: Option<(u64, u64)>, block: Block<'_>) -> Option<(u64, u64)> {
    let mut entries = block.entries();
    let first = entries.next()?.order();
    (last < Some(first)).then(|| entries.last().map_or(first, |entry| entry.order()))
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Content")
            .field("bytes", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

/// A journal that takes transitions.
#[derive(Debug)]
pub(crate) struct Journal {
    location: Location,
    store_id: u64,
    file: Box<dyn DiskFile>,
    /// Where the next block goes: the file is good up to here.
    length: u64,
    /// Where the file ends; there are zeros up to here unless it is dirty.
    end: u64,
    /// Whether there may be bytes behind `length` that a write that failed left.
    dirty: bool,
}

impl Journal {
    /// Opens the journal that was read, and cuts off a torn end. When it returns all of it
    /// survives a power cut.
    pub(crate) fn open(location: &Location, store_id: u64, content: &Content) -> Result<Self> {
        let file = location
            .disk
            .open(&location.path(FILE_NAME))
            .map_err(location.failed("open"))?;
        let mut journal = Journal {
            location: location.clone(),
            store_id,
            file,
            length: content.good_length as u64,
            end: content.bytes.len() as u64,
            dirty: content.torn_bytes() > 0,
        };
        journal.clean()?;
        // The process that wrote the last block, or put the file in place of another, may
        // have ended before that was synced.
        journal
            .file
            .sync()
            .and_then(|()| location.disk.sync_folder(&location.folder))
            .map_err(location.failed("sync"))?;
        Ok(journal)
    }

    /// Puts a journal with these entries, which are in the order of users and of
    /// sequence numbers, in place of the one there is, if any. At no moment does a crash
    /// leave neither the old nor the new one.
    pub(crate) fn replace<'a>(
        location: &Location,
        store_id: u64,
        entries: impl Iterator<Item = Entry<'a>>,
    ) -> Result<Self> {
        let disk = &*location.disk;
        let new = location.path(NEW_FILE_NAME);
        let mut bytes = format::header(store_id);
        let mut length = 0;
        let write = || {
            // What a crash left of an earlier attempt.
            disk.remove(&new)?;
            let mut file = disk.open(&new)?;
            blocks::write_blocks(entries, |block| {
                bytes.extend_from_slice(block);
                if bytes.len() >= WRITE_LENGTH {
                    file.write_at(length, &bytes)?;
                    length += bytes.len() as u64;
                    bytes.clear();
                }
                Ok(())
            })?;
            file.write_at(length, &bytes)?;
            length += bytes.len() as u64;
            file.sync()?;
            disk.rename(&new, &location.path(FILE_NAME))?;
            disk.sync_folder(&location.folder)?;
            Ok(file)
        };
        let file = write().map_err(location.failed::<std::io::Error>("write"))?;
        Ok(Journal {
            location: location.clone(),
            store_id,
            file,
            length,
            end: length,
            dirty: false,
        })
    }

    /// Whether a copy of a damaged journal was kept.
    pub(crate) fn has_kept_damaged(location: &Location) -> Result<bool> {
        let path = location.path(DAMAGED_FILE_NAME);
        let kept = location.disk.read(&path).map_err(location.failed("read"))?;
        Ok(kept.is_some())
    }

    /// Keeps a copy of a damaged journal beside it, for whoever wants to look.
    pub(crate) fn keep_damaged(location: &Location, content: &Content) -> Result<PathBuf> {
        let disk = &*location.disk;
        let path = location.path(DAMAGED_FILE_NAME);
        let write = || {
            disk.remove(&path)?;
            let mut file = disk.open(&path)?;
            file.write_at(0, &content.bytes)?;
            file.sync()
        };
        write().map_err(location.failed::<std::io::Error>("copy"))?;
        Ok(path)
    }

    /// Reads back what it holds. What a write that failed left behind that is no part of it.
    pub(crate) fn read(&self) -> Result<Option<Content>> {
        let length = usize::try_from(self.length).unwrap_or(usize::MAX);
        Content::read_to(&self.location, length)
    }

    /// Adds entries, whose groups [fit](blocks::fitting) into one block; when it returns they
    /// survive a power cut. After an error none of them is in the journal, or all that is
    /// known is that they may be; the next call takes them out first.
    pub(crate) fn append(&mut self, entries: &[Entry<'_>]) -> Result<()> {
        self.clean()?;
        if entries.iter().any(|entry| !is_sequence(entry.sequence)) {
            // A block that could not be read back must not be acknowledged.
            return Err(self.location.failed("write to")(
                "it holds as many as it can",
            ));
        }
        let mut ordered: Vec<Entry<'_>> = entries.iter().map(Entry::borrowed).collect();
        ordered.sort_unstable_by_key(Entry::order);
        let mut bytes = Vec::new();
        blocks::write_blocks(ordered.into_iter(), |block| {
            bytes.extend_from_slice(block);
            Ok(())
        })
        .map_err(self.location.failed::<std::io::Error>("write to"))?;
        self.dirty = true;
        let end = self
            .write_ahead(&bytes)
            .map_err(self.location.failed("write to"))?;
        self.dirty = false;
        self.end = end;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Writes a block and syncs it; returns where the file then ends.
    fn write_ahead(&mut self, block: &[u8]) -> std::io::Result<u64> {
        self.file.write_at(self.length, block)?;
        let length = self.length + block.len() as u64;
        let mut end = self.end;
        if length > end {
            // On a disk that is almost full there may be no room for more, and the block
            // is there all the same.
            end = match self.file.write_at(length, &vec![0; ROOM]) {
                Ok(()) => length + ROOM as u64,
                // What there was of it is left to others.
                Err(_) => self.file.truncate(length).map(|()| length)?,
            };
        }
        self.file.sync()?;
        Ok(end)
    }

    /// Cuts off the room for more, before the store is closed. Nothing rests on it, so a
    /// failure is only logged.
    pub(crate) fn close(&mut self) {
        let cut = if self.dirty || self.end == self.length {
            Ok(())
        } else {
            self.file.truncate(self.length)
        };
        if let Err(error) = cut {
            tracing::warn!(%error, "the end of the journal was not cut off");
        }
    }

    /// Writes down how many transitions there are. Nothing rests on it but that a loss
    /// is told, so a failure is only logged.
    pub(crate) fn mark(&self, last_sequence: u64) {
        let mark = Mark {
            store_id: self.store_id,
            last_sequence,
        };
        let written = match Mark::read(&self.location) {
            Ok(Some(found)) if found == mark => Ok(()),
            _ => mark.write(&self.location),
        };
        if let Err(error) = written {
            tracing::warn!(%error, "the number of transitions was not written down");
        }
    }

    /// Cuts off what does not belong to the journal.
    fn clean(&mut self) -> Result<()> {
        if self.dirty {
            self.file
                .truncate(self.length)
                .and_then(|()| self.file.sync())
                .map_err(self.location.failed("cut a torn end off"))?;
            self.end = self.length;
            self.dirty = false;
        }
        Ok(())
    }

    /// Tries to take a failed append out at once, so that a restart does not find it.
    pub(crate) fn give_up(&mut self) {
        if let Err(error) = self.clean() {
            tracing::error!(%error, "a transition that failed may be found after a restart");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::fs;

    use super::*;
    use crate::membership::MembershipStatus;

    /// A block of one transition with a record of nine bytes.
    const ONE: usize = 52;

    fn entry(sequence: u64) -> Entry<'static> {
        Entry {
            sequence,
            // Not in the order in which they are acknowledged.
            user_id: 10_000 - sequence,
            at_ns: sequence,
            to: MembershipStatus::Left,
            record: Cow::Borrowed(&[7; 9]),
        }
    }

    fn journal(folder: &std::path::Path) -> (Location, Journal) {
        let location = Location {
            disk: Arc::new(disk::SystemDisk),
            folder: folder.to_owned(),
        };
        let journal = Journal::replace(&location, 5, std::iter::empty()).unwrap();
        (location, journal)
    }

    fn sequences(content: &Content) -> Vec<u64> {
        let entries = content.ordered().chain(content.unordered());
        let mut sequences: Vec<u64> = entries.map(|entry| entry.sequence).collect();
        sequences.sort_unstable();
        sequences
    }

    /// Whatever the number of parts, each transition is in the part of its user, also
    /// where a user's are in more than one block.
    #[test]
    fn the_parts_between_cuts_are_the_whole_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let (location, _) = journal(folder.path());
        let of_user = |user_id, sequences: Range<u64>| {
            sequences.map(move |sequence| Entry {
                sequence,
                user_id,
                ..entry(1)
            })
        };
        let ordered = (of_user(0, 1..2).chain((2..4_000).flat_map(|at| of_user(at, at..at + 1))))
            .chain(of_user(5_000, 4_000..12_000))
            .chain((12_000..16_000).flat_map(|at| of_user(at, at..at + 1)))
            .chain(of_user(u64::MAX, 16_000..16_001));
        Journal::replace(&location, 5, ordered).unwrap();
        let content = Content::read(&location).unwrap().unwrap();
        let whole: Vec<_> = content.ordered().map(|entry| entry.order()).collect();
        assert_eq!(whole.len(), 16_000);

        for count in [1, 2, 3, 4, 7, 100, 1_000] {
            let mut cuts = content.cuts(count);
            assert!(cuts.is_sorted() && cuts.len() < count);
            cuts.dedup();
            assert!(count == 1 || !cuts.is_empty());
            let starts = std::iter::once(0).chain(cuts.iter().copied());
            let ends = cuts.iter().map(|cut| cut - 1).chain([u64::MAX]);
            let mut parts = Vec::new();
            for (start, end) in starts.zip(ends) {
                assert!(start <= end, "{cuts:?}");
                let users = start..=end;
                let part = content.ordered_of(users.clone());
                let part: Vec<_> = part.map(|entry| entry.order()).collect();
                assert!(part.iter().all(|(user_id, _)| users.contains(user_id)));
                parts.extend(part);
            }
            assert!(parts == whole, "{count} parts");
        }
        Journal::replace(&location, 5, std::iter::empty()).unwrap();
        let empty = Content::read(&location).unwrap().unwrap();
        assert!(empty.cuts(4).is_empty());
    }

    #[test]
    fn the_file_grows_ahead_and_is_cut_when_it_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let (location, mut journal) = journal(folder.path());
        let length = || fs::metadata(folder.path().join(FILE_NAME)).unwrap().len();
        let mut lengths = Vec::new();
        for sequence in 1..=2_000 {
            journal.append(&[entry(sequence)]).unwrap();
            lengths.push(length());
        }
        lengths.dedup();
        assert_eq!(lengths.len(), 2, "{lengths:?}");

        let content = Content::read(&location).unwrap().unwrap();
        assert_eq!((content.damaged_bytes(), content.torn_bytes()), (0, 0));
        assert_eq!(sequences(&content), (1..=2_000).collect::<Vec<_>>());
        // What was killed is opened with its room, and goes on in it.
        let mut journal = Journal::open(&location, 5, &content).unwrap();
        journal.append(&[entry(2_001)]).unwrap();
        assert_eq!(length(), lengths[1]);
        journal.close();
        assert_eq!(length(), (HEADER_LENGTH + 2_001 * ONE) as u64);
        let content = Content::read(&location).unwrap().unwrap();
        assert_eq!(sequences(&content), (1..=2_001).collect::<Vec<_>>());
    }

    /// A disk may keep the end of what was written and not its beginning. With a checksum
    /// for each transition the later ones of a sync were found behind a hole, and
    /// everybody was shut for those in it, though none was acknowledged.
    #[test]
    fn of_transitions_that_shared_a_sync_all_are_there_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let (location, mut journal) = journal(folder.path());
        journal.append(&[entry(1)]).unwrap();
        let shared: Vec<Entry<'_>> = (2..=20).map(entry).collect();
        journal.append(&shared).unwrap();

        let path = folder.path().join(FILE_NAME);
        let whole = fs::read(&path).unwrap();
        let start = HEADER_LENGTH + ONE;
        let end = start + 12 + 19 * (ONE - 12);
        assert!(whole[end..].iter().all(|byte| *byte == 0));
        for lost in start..end {
            let mut bytes = whole.clone();
            bytes[lost..end.min(lost + 16)].fill(0);
            if bytes == whole {
                continue;
            }
            fs::write(&path, bytes).unwrap();
            let content = Content::read(&location).unwrap().unwrap();
            assert_eq!(content.damaged_bytes(), 0);
            assert_eq!(sequences(&content), [1], "byte {lost}");
            // What is left of them does not stay behind what comes next.
            let mut journal = Journal::open(&location, 5, &content).unwrap();
            journal.append(&[entry(2)]).unwrap();
            let content = Content::read(&location).unwrap().unwrap();
            assert_eq!((content.damaged_bytes(), content.torn_bytes()), (0, 0));
            assert_eq!(sequences(&content), [1, 2]);
        }
    }
}
