//! The journal: every transition once more, in a file of the host's own, synced
//! before the transition is acknowledged. It proves and repairs the store.
//!
//! - [`format`]: the bytes
//! - [`disk`]: the operations on files
//! - [`mark`]: how many transitions there were when the store was last closed
//!
//! The storage engine may lose what it acknowledged when its files are damaged, and
//! says nothing. A record that is lost is a gate that opens by itself, so the journal
//! keeps all transitions, each with a checksum and a number. Numbers have no gaps:
//! one that is missing was lost, and that can be told. Comparing the journal with
//! the store is left to `db::reconcile`, sharing syncs to `db::commit`.

pub(crate) mod disk;
pub(crate) mod format;
pub(crate) mod mark;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{Error, Result};
use disk::{Disk, DiskFile};
use format::{Entry, Found, HEADER_LENGTH, Header};
use mark::Mark;

const FILE_NAME: &str = "journal";
const NEW_FILE_NAME: &str = "journal.new";
const DAMAGED_FILE_NAME: &str = "journal.damaged";

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
    /// The end of the last frame that can be read.
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
        let header = format::read_header(&bytes);
        if let Header::Version(found) = header {
            return Err(Error::StoreFormat {
                path,
                found: found.to_string(),
                expected: format::VERSION,
            });
        }
        let mut content = Content {
            good_length: HEADER_LENGTH.min(bytes.len()),
            bytes,
            header,
            damaged: 0,
        };
        let (mut good_length, mut damaged) = (content.good_length, 0);
        let mut pending_damage = 0;
        for found in format::read(&content.bytes) {
            match found {
                Found::Entry { end, .. } => {
                    damaged += std::mem::take(&mut pending_damage);
                    good_length = end;
                }
                // At the end of the file it is what a crash leaves.
                Found::Damage { length, .. } => pending_damage += length,
            }
        }
        content.good_length = good_length;
        content.damaged = damaged;
        Ok(Some(content))
    }

    /// The store that the journal belongs to; `None` if its header is damaged.
    pub(crate) fn store_id(&self) -> Option<u64> {
        match self.header {
            Header::Store(store_id) => Some(store_id),
            Header::Version(_) | Header::Unreadable => None,
        }
    }

    /// Every transition that can be read, in the order of the file.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        format::read(&self.bytes).filter_map(|found| match found {
            Found::Entry { entry, .. } => Some(entry),
            Found::Damage { .. } => None,
        })
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

    /// Bytes behind the last frame that can be read.
    pub(crate) fn torn_bytes(&self) -> usize {
        self.bytes.len() - self.good_length
    }
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

    /// Puts a journal with these entries in place of the one there is, if any. At no
    /// moment does a crash leave neither the old nor the new one.
    pub(crate) fn replace<'a>(
        location: &Location,
        store_id: u64,
        entries: impl Iterator<Item = Entry<'a>>,
    ) -> Result<Self> {
        let disk = &*location.disk;
        let new = location.path(NEW_FILE_NAME);
        let mut bytes = format::header(store_id);
        for entry in entries {
            format::write(&entry, &mut bytes);
        }
        let write = || {
            // What a crash left of an earlier attempt.
            disk.remove(&new)?;
            let mut file = disk.open(&new)?;
            file.append(&bytes)?;
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
            length: bytes.len() as u64,
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
