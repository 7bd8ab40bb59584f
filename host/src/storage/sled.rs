//! The engine that the host ships with: one sled tree for each partition. sled is
//! named nowhere else.
//!
//! - `files`: sled's files, and what to do where they are damaged
//! - `panics`: sled's panics as errors

mod files;
mod panics;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sled::transaction::{ConflictableTransactionError, TransactionError, TransactionalTree};
use sled::{Db, Transactional as _, Tree};

use super::{Batch, KeyRange, Partition, StorageEngine, Visitor};
use crate::error::{Error, Result};

/// How long an opening waits for sled's lock on its data file. sled gives it back on
/// a thread of its own, some time after the last handle was dropped, so a database
/// that was closed may still be locked by this very process.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// How much of its pages sled keeps in memory. The operating system keeps more; sled's
/// default of a gigabyte would be most of what a store with many users takes.
const CACHE_BYTES: u64 = 64 << 20;

/// A sled database in a folder.
#[derive(Debug)]
pub struct SledEngine {
    folder: PathBuf,
    db: Db,
    trees: BTreeMap<Partition, Tree>,
    /// sled's data file, opened once more: on Linux sled's own flush ends in
    /// `sync_file_range`, which leaves out the file's length and the disk's
    /// cache, so every flush here ends in an fdatasync of this descriptor.
    data_file: File,
    /// Set by a sync that failed: the next one may succeed without the pages that the
    /// failed one dropped, so there is none until the database is opened again.
    sync_failed: AtomicBool,
}

impl SledEngine {
    /// Opens the database in `folder`, or makes one if there is none.
    pub fn open(folder: &Path) -> Result<Self> {
        let opening = || action("open", folder);
        if wait_for_lock(&folder.join("db")) {
            files::remove_unfinished(folder).map_err(Error::storage(opening()))?;
        }
        if let Some(damage) = files::find_damage(folder) {
            return Err(Error::storage(opening())(damage));
        }
        let (db, trees) = guarded("open", folder, || open(folder))?;
        let data_file = File::open(folder.join("db")).map_err(Error::storage(opening()))?;
        // The names of files that sled made must last too, not only their content.
        for path in [Some(folder), folder.parent()].into_iter().flatten() {
            File::open(path)
                .and_then(|folder| folder.sync_all())
                .map_err(Error::storage(opening()))?;
        }
        Ok(SledEngine {
            folder: folder.to_owned(),
            db,
            trees,
            data_file,
            sync_failed: AtomicBool::new(false),
        })
    }

    fn tree(&self, partition: Partition) -> Result<&Tree> {
        self.trees.get(&partition).ok_or_else(|| {
            Error::storage("find a partition of the sled database")(partition.name())
        })
    }

    fn guarded<R>(&self, operation: &str, call: impl FnOnce() -> sled::Result<R>) -> Result<R> {
        guarded(operation, &self.folder, call)
    }
}

impl StorageEngine for SledEngine {
    fn get(&self, partition: Partition, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let tree = self.tree(partition)?;
        let value = self.guarded("read from", || tree.get(key))?;
        Ok(value.map(|value| value.to_vec()))
    }

    fn apply(&self, batch: &Batch) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let mut by_tree: BTreeMap<Partition, sled::Batch> = BTreeMap::new();
        for write in batch.writes() {
            let tree_batch = by_tree.entry(write.partition).or_default();
            match &write.value {
                Some(value) => tree_batch.insert(write.key.as_slice(), value.as_slice()),
                None => tree_batch.remove(write.key.as_slice()),
            }
        }
        let trees = by_tree
            .keys()
            .map(|partition| self.tree(*partition))
            .collect::<Result<Vec<&Tree>>>()?;
        let batches: Vec<sled::Batch> = by_tree.into_values().collect();
        self.guarded("write to", || {
            trees
                .as_slice()
                .transaction(|trees| apply_to_each(trees, &batches))
                .map_err(|error| match error {
                    TransactionError::Storage(error) => error,
                    TransactionError::Abort(never) => match never {},
                })
        })
    }

    fn scan_range(
        &self,
        partition: Partition,
        range: KeyRange<'_>,
        visit: Visitor<'_>,
    ) -> Result<()> {
        let mut entries = self.tree(partition)?.range::<&[u8], _>(range);
        while let Some((key, value)) = self.guarded("read from", || entries.next().transpose())? {
            visit(&key, &value)?;
        }
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        let action = || action("sync", &self.folder);
        // Relaxed: a flag that only ever rises and guards no other data.
        if self.sync_failed.load(Ordering::Relaxed) {
            return Err(Error::storage(action())(
                "a sync failed before; open the store again",
            ));
        }
        self.guarded("flush", || self.db.flush())?;
        self.data_file.sync_data().map_err(|error| {
            self.sync_failed.store(true, Ordering::Relaxed);
            Error::storage(action())(error)
        })
    }
}

fn open(folder: &Path) -> sled::Result<(Db, BTreeMap<Partition, Tree>)> {
    let db = sled::Config::new()
        .path(folder)
        .cache_capacity(CACHE_BYTES)
        // The ledger decides when to flush.
        .flush_every_ms(None)
        .open()?;
    let trees = Partition::ALL
        .into_iter()
        .map(|partition| Ok((partition, db.open_tree(partition.name())?)))
        .collect::<sled::Result<_>>()?;
    Ok((db, trees))
}

fn action(operation: &str, folder: &Path) -> String {
    format!("{operation} the sled database in `{}`", folder.display())
}

/// Calls sled, and says what to do where it finds its files damaged or panics.
fn guarded<R>(operation: &str, folder: &Path, call: impl FnOnce() -> sled::Result<R>) -> Result<R> {
    let failed = Error::storage(action(operation, folder));
    match panics::catch(call) {
        Ok(Ok(outcome)) => Ok(outcome),
        // Its own text is an offset and an empty backtrace.
        Ok(Err(sled::Error::Corruption { .. })) => Err(failed(files::data_is_damaged())),
        Ok(Err(other)) => Err(failed(other.to_string())),
        Err(panic) => {
            tracing::error!("sled panicked: {panic}");
            Err(failed(files::data_is_damaged()))
        }
    }
}

/// Waits until nobody holds the lock, or for [`LOCK_WAIT`]: then sled says what is
/// wrong. Returns whether nobody holds it.
fn wait_for_lock(data_file: &Path) -> bool {
    // There is none yet in a new database.
    let Ok(file) = File::open(data_file) else {
        return true;
    };
    let deadline = Instant::now() + LOCK_WAIT;
    while matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    // Closing would not do: a process that another thread is starting has its own copy
    // of the descriptor for a moment, and the lock would last as long.
    let _ = file.unlock();
    true
}

fn apply_to_each(
    trees: &[TransactionalTree],
    batches: &[sled::Batch],
) -> Result<(), ConflictableTransactionError<Infallible>> {
    for (tree, batch) in trees.iter().zip(batches) {
        tree.apply_batch(batch)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// A host that starts processes could not open a store now and then.
    #[test]
    fn a_lock_that_was_tried_is_given_back_while_processes_are_started() {
        let folder = tempfile::tempdir().unwrap();
        let data_file = folder.path().join("db");
        File::create(&data_file).unwrap();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    Command::new("true").status().unwrap();
                }
            });
            let mut refused = 0;
            for _ in 0..20_000 {
                assert!(wait_for_lock(&data_file));
                let file = File::open(&data_file).unwrap();
                refused += usize::from(file.try_lock().is_err());
                let _ = file.unlock();
            }
            // Not before: a panic would leave the other thread running.
            done.store(true, Ordering::Relaxed);
            assert_eq!(refused, 0);
        });
    }
}
