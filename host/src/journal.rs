//! The journal: every transition once more, in a file of the host's own, synced
//! before the transition is acknowledged. It proves and repairs the store.
//!
//! - [`format`]: the bytes; [`blocks`]: those of many transitions at once
//! - [`disk`]: the operations on files
//! - [`mark`]: how many transitions there were when the store was last closed
//!
//! The storage engine may lose what it acknowledged when its files are damaged, and
//! says nothing. A record that is lost is a gate that opens by itself, so the journal
//! keeps all transitions, under checksums, each with a number. Numbers have no gaps:
//! one that is missing was lost, and that can be told. Comparing the journal with
//! the store is left to `db::reconcile`, sharing syncs to `db::commit`.
//!
//! A transition is appended as a frame. When there is more in frames than in blocks,
//! the next opening compacts the journal: it writes a new one of blocks alone and puts
//! it in place of the old one. So each transition is written again a few times at most,
//! however long a store lives, and at least half of what opening reads is in the order
//! of users. No transition is ever left out: the journal is the witness of the history,
//! not of the records alone.

pub(crate) mod blocks;
pub(crate) mod disk;
pub(crate) mod format;
pub(crate) mod mark;

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{Error, Result};
use blocks::Block;
use disk::{Disk, DiskFile};
use format::{Entry, Found, HEADER_LENGTH, Header};
use mark::Mark;

const FILE_NAME: &str = "journal";
const NEW_FILE_NAME: &str = "journal.new";
const DAMAGED_FILE_NAME: &str = "journal.damaged";

/// Frames of fewer bytes than this are not worth a new file.
const MIN_BYTES_TO_COMPACT: usize = 4096;

/// How many bytes of a new journal are written at once.
const WRITE_LENGTH: usize = 1 << 20;

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
    /// Where each block is: those in the order of users, up to the first that is not.
    blocks: Vec<Range<usize>>,
    /// Where blocks are that users have to be sorted from.
    unordered_blocks: Vec<Range<usize>>,
    /// Where each frame is.
    frames: Vec<usize>,
    /// The end of the last frame or block that can be read.
    good_length: usize,
    /// The number of damaged bytes before that.
    damaged: usize,
}

impl Content {
    /// Reads the journal; `None` if there is none.
    pub(crate) fn read(location: &Location) -> Result<Option<Self>> {
        let path = location.path(FILE_NAME);
        let Some(bytes) = location.disk.read(&path).map_err(location.failed("read"))? else {
            return Ok(None);
        };
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
            blocks: Vec::new(),
            unordered_blocks: Vec::new(),
            frames: Vec::new(),
            good_length: HEADER_LENGTH.min(bytes.len()),
            damaged: 0,
            bytes: Vec::new(),
        };
        let mut last_of_blocks = None;
        let mut pending_damage = 0;
        for found in format::read(&bytes) {
            let end = match found {
                // At the end of the file it is what a crash leaves.
                Found::Damage { length, .. } => {
                    pending_damage += length;
                    continue;
                }
                Found::Entry { end, .. } => {
                    content.frames.push(content.good_length + pending_damage);
                    end
                }
                Found::Block { block, end } => {
                    let place = content.good_length + pending_damage..end;
                    match follows(last_of_blocks, block) {
                        Some(last) => {
                            last_of_blocks = Some(last);
                            content.blocks.push(place);
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

    /// The transitions in blocks, in the order of users and of sequence numbers.
    pub(crate) fn ordered(&self) -> impl Iterator<Item = Entry<'_>> {
        self.entries_of(&self.blocks)
    }

    /// All other transitions, in no order.
    pub(crate) fn unordered(&self) -> impl Iterator<Item = Entry<'_>> {
        let frames = self.frames.iter().filter_map(|at| {
            let (entry, _) = format::read_frame(&self.bytes[*at..])?;
            Some(entry)
        });
        self.entries_of(&self.unordered_blocks).chain(frames)
    }

    fn entries_of<'a>(&'a self, blocks: &'a [Range<usize>]) -> impl Iterator<Item = Entry<'a>> {
        blocks
            .iter()
            .flat_map(|place| Block::at(&self.bytes[place.clone()]).entries())
    }

    /// Whether so much of it is in frames that it should be written anew.
    pub(crate) fn is_worth_compacting(&self) -> bool {
        let in_blocks: usize = self.blocks.iter().map(Range::len).sum();
        let in_frames = self.good_length - self.damaged - in_blocks;
        in_frames > in_blocks.max(MIN_BYTES_TO_COMPACT)
    }

    /// Bytes that can't be read, other than a torn end.
    pub(crate) fn damaged_bytes(&self) -> usize {
        let header = match self.header {
            // Of an empty file too: frames would be appended to no header.
            Header::Unreadable => HEADER_LENGTH,
            _ => 0,
        };
        self.damaged + header
    }

    /// Bytes behind the last frame or block that can be read.
    pub(crate) fn torn_bytes(&self) -> usize {
        self.bytes.len() - self.good_length
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
    /// Where the next frame goes: the file is good up to here.
    length: u64,
    /// Whether there may be bytes behind `length` that a failed append left.
    dirty: bool,
}

impl Journal {
    /// Opens the journal that was read, and cuts off a torn end.
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
            dirty: content.torn_bytes() > 0,
        };
        journal.clean()?;
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
                    file.append(&bytes)?;
                    length += bytes.len() as u64;
                    bytes.clear();
                }
                Ok(())
            })?;
            file.append(&bytes)?;
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
            dirty: false,
        })
    }

    /// Keeps a copy of a damaged journal beside it, for whoever wants to look.
    pub(crate) fn keep_damaged(location: &Location, content: &Content) -> Result<PathBuf> {
        let disk = &*location.disk;
        let path = location.path(DAMAGED_FILE_NAME);
        let write = || {
            disk.remove(&path)?;
            let mut file = disk.open(&path)?;
            file.append(&content.bytes)?;
            file.sync()
        };
        write().map_err(location.failed::<std::io::Error>("copy"))?;
        Ok(path)
    }

    /// Reads back what it holds.
    pub(crate) fn read(&self) -> Result<Option<Content>> {
        Content::read(&self.location)
    }

    /// Adds entries; when it returns they survive a power cut. After an error none
    /// of them is in the journal, or all that is known is that they may be; the next
    /// call takes them out first.
    pub(crate) fn append(&mut self, entries: &[Entry<'_>]) -> Result<()> {
        self.clean()?;
        let mut bytes = Vec::new();
        for entry in entries {
            format::write(entry, &mut bytes);
        }
        self.dirty = true;
        self.file
            .append(&bytes)
            .and_then(|()| self.file.sync())
            .map_err(self.location.failed("write to"))?;
        self.dirty = false;
        self.length += bytes.len() as u64;
        Ok(())
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
