//! A disk in memory that records what is done to it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tidegate::{Disk, DiskFile, MembershipStatus};

/// A file, whatever its name.
pub(super) type FileId = usize;

/// What happened, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A new file got this name.
    Create(PathBuf, FileId),
    /// Bytes were written at an offset.
    Write(FileId, usize, Vec<u8>),
    Truncate(FileId, u64),
    Sync(FileId),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
    SyncFolder,
    /// A leave or a rejoin returned without an error.
    Acknowledged(u64, MembershipStatus),
}

/// Names, and the files that they lead to.
pub(super) type Names = BTreeMap<PathBuf, FileId>;

/// What a disk holds.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) names: Names,
    pub(super) files: BTreeMap<FileId, Vec<u8>>,
}

#[derive(Debug, Default)]
struct Inner {
    state: State,
    events: Vec<Event>,
}

/// The disk. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub(super) struct Recorder(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct OpenFile {
    disk: Recorder,
    id: FileId,
}

impl Recorder {
    /// A disk with something on it.
    pub(super) fn holding(state: State) -> Self {
        Recorder(Arc::new(Mutex::new(Inner {
            state,
            events: Vec::new(),
        })))
    }

    pub(super) fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap().events.clone()
    }

    pub(super) fn state(&self) -> State {
        self.0.lock().unwrap().state.clone()
    }

    /// Does something, and records it.
    pub(super) fn happen(&self, event: Event) {
        let mut inner = self.0.lock().unwrap();
        inner.state.happen(&event);
        inner.events.push(event);
    }
}

impl State {
    pub(super) fn happen(&mut self, event: &Event) {
        match event {
            Event::Create(path, id) => {
                self.names.insert(path.clone(), *id);
                self.files.insert(*id, Vec::new());
            }
            Event::Write(id, offset, bytes) => put(self.file(*id), *offset, bytes),
            Event::Truncate(id, length) => {
                self.file(*id).resize(usize::try_from(*length).unwrap(), 0);
            }
            Event::Rename(from, to) => {
                let id = self.names.remove(from).unwrap();
                self.names.insert(to.clone(), id);
            }
            Event::Remove(path) => {
                self.names.remove(path);
            }
            Event::Sync(_) | Event::SyncFolder | Event::Acknowledged(..) => {}
        }
    }

    fn file(&mut self, id: FileId) -> &mut Vec<u8> {
        self.files.get_mut(&id).unwrap()
    }
}

/// Puts bytes where they go; a hole that this leaves would be a mistake of the writer.
pub(super) fn put(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    assert!(offset <= content.len(), "a write leaves a hole");
    let end = content.len().max(offset + bytes.len());
    content.resize(end, 0);
    content[offset..offset + bytes.len()].copy_from_slice(bytes);
}

impl Disk for Recorder {
    fn read(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        let State { names, files } = self.state();
        Ok(names.get(path).map(|id| files[id].clone()))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let State { names, files } = self.state();
        let id = names.get(path).copied().unwrap_or_else(|| {
            let new = files.keys().max().map_or(0, |last| last + 1);
            self.happen(Event::Create(path.to_owned(), new));
            new
        });
        let disk = self.clone();
        Ok(Box::new(OpenFile { disk, id }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.happen(Event::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.happen(Event::Remove(path.to_owned()));
        Ok(())
    }

    fn sync_folder(&self, _folder: &Path) -> io::Result<()> {
        self.happen(Event::SyncFolder);
        Ok(())
    }
}

impl DiskFile for OpenFile {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let offset = usize::try_from(offset).unwrap();
        self.disk
            .happen(Event::Write(self.id, offset, bytes.to_vec()));
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk.happen(Event::Sync(self.id));
        Ok(())
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.disk.happen(Event::Truncate(self.id, length));
        Ok(())
    }
}
