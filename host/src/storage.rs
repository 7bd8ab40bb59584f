//! Where everything lasts: partitions of ordered keys behind one small trait.
//!
//! - [`keys`]: the bytes of a key
//! - [`sled`](mod@sled): the engine that the host ships with
//!
//! This module moves bytes and knows none of them. What they mean is left to the
//! component (records), the ledger (aggregates) and the handle `TidalDb`
//! (history, clock).

pub mod keys;
pub mod sled;

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use crate::error::Result;

/// A part of the store with an order of keys of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Partition {
    /// What is kept for each user: profile, cohorts, joined communities.
    Users,
    /// The records of users who left or rejoined, and nothing else, so that
    /// start-up reads these alone however large `Users` is.
    Memberships,
    /// Every acknowledged transition.
    History,
    /// Aggregates.
    Ledger,
    /// What the store knows of itself: format, clock, totals, scopes, cohorts.
    System,
}

impl Partition {
    /// Every partition.
    pub const ALL: [Partition; 5] = [
        Partition::Users,
        Partition::Memberships,
        Partition::History,
        Partition::Ledger,
        Partition::System,
    ];

    /// The name under which an engine keeps it.
    pub const fn name(self) -> &'static str {
        match self {
            Partition::Users => "users",
            Partition::Memberships => "memberships",
            Partition::History => "history",
            Partition::Ledger => "ledger",
            Partition::System => "system",
        }
    }
}

/// One change in a [`Batch`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Where the key is.
    pub partition: Partition,
    /// The key.
    pub key: Vec<u8>,
    /// The new value; `None` deletes the key.
    pub value: Option<Vec<u8>>,
}

/// Changes that take effect together or not at all. Later changes of one key win.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    writes: Vec<Write>,
}

impl Batch {
    /// Adds a new value for a key.
    pub fn put(&mut self, partition: Partition, key: Vec<u8>, value: Vec<u8>) {
        self.writes.push(Write {
            partition,
            key,
            value: Some(value),
        });
    }

    /// Adds the deletion of a key, which need not exist.
    pub fn delete(&mut self, partition: Partition, key: Vec<u8>) {
        self.writes.push(Write {
            partition,
            key,
            value: None,
        });
    }

    /// The changes in the order in which they were added.
    pub fn writes(&self) -> &[Write] {
        &self.writes
    }

    /// Whether there is nothing to change.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }
}

/// From which key to which; the end is not before the beginning.
pub type KeyRange<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// Called with each key and value of a scan; an error ends the scan.
pub type Visitor<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> Result<()>;

/// A store of ordered keys. The host calls it from many threads at once and never
/// while it holds a lock of the gate.
///
/// An implementation returns [`Error::Storage`](crate::Error::Storage) for what
/// goes wrong and does not panic.
pub trait StorageEngine: fmt::Debug + Send + Sync {
    /// The value of a key, as the latest `apply` that returned left it.
    fn get(&self, partition: Partition, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Makes all changes of the batch, in all its partitions, or none. When it
    /// returns, every reader sees them; after a crash they are there in full or
    /// not at all, and after a [`flush`](Self::flush) they are there. An error
    /// leaves open which.
    fn apply(&self, batch: &Batch) -> Result<()>;

    /// Calls `visit` for each key in `range`, in the order of the keys. Changes made
    /// meanwhile may be seen or not.
    fn scan_range(
        &self,
        partition: Partition,
        range: KeyRange<'_>,
        visit: Visitor<'_>,
    ) -> Result<()>;

    /// Returns once every change whose `apply` has returned survives a power cut.
    fn flush(&self) -> Result<()>;

    /// Calls `visit` for each key that begins with `prefix`: a range of keys.
    fn scan(&self, partition: Partition, prefix: &[u8], visit: Visitor<'_>) -> Result<()> {
        let end = keys::behind_prefix(prefix);
        let end = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        self.scan_range(partition, (Bound::Included(prefix), end), visit)
    }

    /// Sets one key: a batch of one.
    fn put(&self, partition: Partition, key: &[u8], value: &[u8]) -> Result<()> {
        let mut batch = Batch::default();
        batch.put(partition, key.to_vec(), value.to_vec());
        self.apply(&batch)
    }
}

/// The store as its users in this crate see it: the engine, and a view of each
/// partition.
#[derive(Clone, Debug)]
pub struct Storage {
    engine: Arc<dyn StorageEngine>,
}

impl Storage {
    /// A store over any engine.
    pub fn new(engine: Arc<dyn StorageEngine>) -> Self {
        Storage { engine }
    }

    /// The engine itself.
    pub fn engine(&self) -> &dyn StorageEngine {
        &*self.engine
    }

    /// The users partition.
    pub fn users_engine(&self) -> PartitionEngine<'_> {
        self.partition(Partition::Users)
    }

    /// The view of one partition.
    pub fn partition(&self, partition: Partition) -> PartitionEngine<'_> {
        PartitionEngine {
            engine: self.engine(),
            partition,
        }
    }

    /// See [`StorageEngine::apply`].
    pub fn apply(&self, batch: &Batch) -> Result<()> {
        self.engine.apply(batch)
    }

    /// See [`StorageEngine::flush`].
    pub fn flush(&self) -> Result<()> {
        self.engine.flush()
    }
}

/// One partition of a store.
#[derive(Clone, Copy, Debug)]
pub struct PartitionEngine<'a> {
    engine: &'a dyn StorageEngine,
    partition: Partition,
}

impl PartitionEngine<'_> {
    /// See [`StorageEngine::get`].
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.engine.get(self.partition, key)
    }

    /// See [`StorageEngine::put`].
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.engine.put(self.partition, key, value)
    }

    /// See [`StorageEngine::scan`].
    pub fn scan(
        &self,
        prefix: &[u8],
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        self.engine.scan(self.partition, prefix, &mut visit)
    }

    /// See [`StorageEngine::scan_range`].
    pub fn scan_range(
        &self,
        range: KeyRange<'_>,
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        self.engine.scan_range(self.partition, range, &mut visit)
    }
}
