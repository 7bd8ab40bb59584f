//! A machine whose disk is in memory: a store and files of which any operation can be
//! made to fail, and whose power can be cut.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::RangeBounds;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use tidegate::storage::{Batch, KeyRange, Partition, StorageEngine, Visitor};
use tidegate::{Disk, DiskFile, Error, Result};

/// What a machine can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Get,
    Scan,
    Apply,
    Flush,
    Read,
    Open,
    Rename,
    Remove,
    SyncFolder,
    Write,
    Sync,
    Truncate,
}

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// An error, and nothing was done.
    Before,
    /// An error, and half of it was done.
    Short,
    /// An error, and all of it was done.
    After,
    /// The disk is full: this and every later write fails.
    Full,
    /// The disk is gone: half of this was done, and every later operation fails.
    Gone,
}

impl Operation {
    /// The faults that are not the same as another one for this operation.
    pub(crate) fn faults(self) -> &'static [Fault] {
        match self {
            Operation::Get | Operation::Scan | Operation::Read => &[Fault::Before],
            Operation::Write => &[
                Fault::Before,
                Fault::Short,
                Fault::After,
                Fault::Full,
                Fault::Gone,
            ],
            _ if self.takes_space() => &[Fault::Before, Fault::After, Fault::Full, Fault::Gone],
            _ => &[Fault::Before, Fault::After, Fault::Gone],
        }
    }

    fn takes_space(self) -> bool {
        matches!(
            self,
            Operation::Apply | Operation::Flush | Operation::Open | Operation::Write
        )
    }
}

type Keys = BTreeMap<(Partition, Vec<u8>), Vec<u8>>;

#[derive(Clone, Debug, Default, PartialEq)]
struct File {
    content: Vec<u8>,
    synced: Vec<u8>,
}

/// What is on the disk, and what of it would survive a power cut.
#[derive(Clone, Debug, Default, PartialEq)]
struct Stored {
    keys: Keys,
    synced_keys: Keys,
    /// The batches since the last flush.
    unsynced: Vec<Batch>,
    files: Vec<File>,
    /// Without their folders, so that what one folder held can be opened in another.
    names: BTreeMap<OsString, usize>,
    synced_names: BTreeMap<OsString, usize>,
}

#[derive(Debug, Default)]
struct State {
    stored: Stored,
    /// The operations since a fault was last planned.
    operations: Vec<Operation>,
    /// Which of them fails, and how.
    planned: Option<(usize, Fault)>,
    full: bool,
    gone: bool,
    /// The next operation of this kind sends two words and waits for each to be
    /// received.
    delay: Option<(Operation, SyncSender<()>)>,
}

impl State {
    fn fault(&mut self, operation: Operation) -> Option<Fault> {
        let number = self.operations.len();
        self.operations.push(operation);
        if self.gone {
            return Some(Fault::Before);
        }
        let planned = self.planned.filter(|(at, _)| *at == number);
        match planned {
            Some((_, Fault::Full)) => self.full = true,
            Some((_, Fault::Gone)) => {
                self.gone = true;
                return Some(Fault::Short);
            }
            _ => {}
        }
        if self.full && operation.takes_space() {
            return Some(Fault::Short);
        }
        planned.map(|(_, fault)| fault)
    }
}

/// The machine. Clones are handles of the same one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Machine {
    state: Arc<Mutex<State>>,
}

impl Machine {
    /// From here on operations are counted from 0, and number `at` fails.
    pub(crate) fn plan(&self, at: usize, fault: Fault) {
        let mut state = self.state.lock().unwrap();
        state.operations.clear();
        state.planned = Some((at, fault));
    }

    /// Nothing fails any more. Returns the operations since the last plan.
    pub(crate) fn heal(&self) -> Vec<Operation> {
        let mut state = self.state.lock().unwrap();
        state.planned = None;
        state.full = false;
        state.gone = false;
        std::mem::take(&mut state.operations)
    }

    /// The next operation of this kind sends a word when it begins, and goes on once a
    /// second one is received.
    pub(crate) fn delay(&self, operation: Operation) -> Receiver<()> {
        let (sender, receiver) = sync_channel(0);
        self.state.lock().unwrap().delay = Some((operation, sender));
        receiver
    }

    /// Lets every operation fail, as for a process that is about to be killed.
    pub(crate) fn switch_off(&self) {
        self.state.lock().unwrap().gone = true;
    }

    /// Another machine with the same content.
    pub(crate) fn copy(&self) -> Machine {
        Machine::with(self.state.lock().unwrap().stored.clone())
    }

    fn with(stored: Stored) -> Machine {
        let state = State {
            stored,
            ..State::default()
        };
        Machine {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// The machines that there may be after a power cut now, each once: of what was
    /// not synced, the store keeps no batch, half of them, or all, and each file
    /// nothing, half of its new bytes, or all, under its old or its new name.
    pub(crate) fn after_power_cut(&self) -> Vec<Machine> {
        let stored = self.state.lock().unwrap().stored.clone();
        let mut found: Vec<Stored> = Vec::new();
        let batches = stored.unsynced.len();
        for kept in [0, batches / 2, batches] {
            let mut keys = stored.synced_keys.clone();
            for batch in &stored.unsynced[..kept] {
                change(&mut keys, batch);
            }
            for content in [File::none, File::half, File::all] {
                for names in [&stored.synced_names, &stored.names] {
                    let files: Vec<File> = stored.files.iter().map(content).collect();
                    let after = Stored {
                        synced_keys: keys.clone(),
                        keys: keys.clone(),
                        unsynced: Vec::new(),
                        files,
                        synced_names: names.clone(),
                        names: names.clone(),
                    };
                    if !found.contains(&after) {
                        found.push(after);
                    }
                }
            }
        }
        found.into_iter().map(Machine::with).collect()
    }

    /// Puts other bytes into a file, or a new one; `None` deletes it.
    pub(crate) fn set_file(&self, path: &Path, content: Option<Vec<u8>>) {
        let stored = &mut self.state.lock().unwrap().stored;
        stored.names.remove(name(path));
        if let Some(content) = content {
            stored
                .names
                .insert(name(path).to_owned(), stored.files.len());
            let synced = content.clone();
            stored.files.push(File { content, synced });
        }
        stored.synced_names = stored.names.clone();
    }

    /// Performs an operation, unless it is to fail. `effect` does all of it, or half.
    fn perform<R>(
        &self,
        operation: Operation,
        effect: impl FnOnce(&mut Stored, bool) -> R,
    ) -> io::Result<R> {
        let mut state = self.state.lock().unwrap();
        if let Some((_, delay)) = state.delay.take_if(|(delayed, _)| *delayed == operation) {
            drop(state);
            // An error where the test has failed and nobody listens any more.
            let _ = delay.send(()).and_then(|()| delay.send(()));
            state = self.state.lock().unwrap();
        }
        let fault = state.fault(operation);
        let stored = &mut state.stored;
        match fault {
            None => return Ok(effect(stored, true)),
            Some(Fault::After) => drop(effect(stored, true)),
            Some(Fault::Short) if operation == Operation::Write => drop(effect(stored, false)),
            Some(_) => {}
        }
        Err(io::Error::other("the disk failed"))
    }

    fn perform_on_keys<R>(
        &self,
        operation: Operation,
        effect: impl FnOnce(&mut Stored) -> R,
    ) -> Result<R> {
        self.perform(operation, |stored, _| effect(stored))
            .map_err(|error| Error::Storage {
                action: format!("{operation:?}").to_lowercase(),
                cause: error.into(),
            })
    }
}

impl File {
    fn none(&self) -> File {
        File::of(self.synced.clone())
    }

    /// The first half of the bytes that changed, and if the file grew, zeros behind them.
    fn half(&self) -> File {
        let synced = |at: usize| self.synced.get(at).copied().unwrap_or(0);
        let mut content = self.content.clone();
        let changed: Vec<usize> = (0..content.len())
            .filter(|at| content[*at] != synced(*at))
            .collect();
        for at in &changed[changed.len() / 2..] {
            content[*at] = synced(*at);
        }
        File::of(content)
    }

    fn all(&self) -> File {
        File::of(self.content.clone())
    }

    fn of(content: Vec<u8>) -> File {
        File {
            synced: content.clone(),
            content,
        }
    }
}

/// Puts bytes where they go; a hole that this leaves would be a mistake of the writer.
fn put(content: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let offset = usize::try_from(offset).unwrap();
    assert!(offset <= content.len(), "a write leaves a hole");
    let end = content.len().max(offset + bytes.len());
    content.resize(end, 0);
    content[offset..offset + bytes.len()].copy_from_slice(bytes);
}

fn name(path: &Path) -> &OsStr {
    path.file_name().unwrap()
}

fn change(keys: &mut Keys, batch: &Batch) {
    for write in batch.writes() {
        let key = (write.partition, write.key.clone());
        match &write.value {
            Some(value) => drop(keys.insert(key, value.clone())),
            None => drop(keys.remove(&key)),
        }
    }
}

impl StorageEngine for Machine {
    fn get(&self, partition: Partition, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.perform_on_keys(Operation::Get, |stored| {
            stored.keys.get(&(partition, key.to_vec())).cloned()
        })
    }

    fn apply(&self, batch: &Batch) -> Result<()> {
        self.perform_on_keys(Operation::Apply, |stored| {
            change(&mut stored.keys, batch);
            stored.unsynced.push(batch.clone());
        })
    }

    fn scan_range(
        &self,
        partition: Partition,
        range: KeyRange<'_>,
        visit: Visitor<'_>,
    ) -> Result<()> {
        let found: Vec<_> = self.perform_on_keys(Operation::Scan, |stored| {
            stored
                .keys
                .range((partition, Vec::new())..)
                .take_while(|((of, _), _)| *of == partition)
                .filter(|((_, key), _)| RangeBounds::<[u8]>::contains(&range, &key[..]))
                .map(|((_, key), value)| (key.clone(), value.clone()))
                .collect()
        })?;
        found.iter().try_for_each(|(key, value)| visit(key, value))
    }

    fn flush(&self) -> Result<()> {
        self.perform_on_keys(Operation::Flush, |stored| {
            stored.synced_keys = stored.keys.clone();
            stored.unsynced.clear();
        })
    }
}

impl Disk for Machine {
    fn read(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        self.perform(Operation::Read, |stored, _| {
            let file = *stored.names.get(name(path))?;
            Some(stored.files[file].content.clone())
        })
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = self.perform(Operation::Open, |stored, _| {
            *stored
                .names
                .entry(name(path).to_owned())
                .or_insert_with(|| {
                    stored.files.push(File::default());
                    stored.files.len() - 1
                })
        })?;
        let machine = self.clone();
        Ok(Box::new(OpenFile { machine, file }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.perform(Operation::Rename, |stored, _| {
            let file = stored.names.remove(name(from)).unwrap();
            stored.names.insert(name(to).to_owned(), file);
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.perform(Operation::Remove, |stored, _| {
            stored.names.remove(name(path));
        })
    }

    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        self.perform(Operation::SyncFolder, |stored, _| {
            stored.synced_names = stored.names.clone();
        })
    }
}

#[derive(Debug)]
struct OpenFile {
    machine: Machine,
    file: usize,
}

impl DiskFile for OpenFile {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.machine.perform(Operation::Write, |stored, whole| {
            // Half of what is not zero, which may be much less than half.
            let used = bytes
                .iter()
                .rposition(|byte| *byte != 0)
                .map_or(0, |at| at + 1);
            let length = if whole { bytes.len() } else { used / 2 };
            let content = &mut stored.files[self.file].content;
            put(content, offset, &bytes[..length]);
        })
    }

    fn sync(&mut self) -> io::Result<()> {
        self.machine.perform(Operation::Sync, |stored, _| {
            let file = &mut stored.files[self.file];
            file.synced.clone_from(&file.content);
        })
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.machine.perform(Operation::Truncate, |stored, _| {
            let length = usize::try_from(length).unwrap();
            stored.files[self.file].content.truncate(length);
        })
    }
}
