//! How far inputs were read, so that reading can go on after a crash with every event
//! counted once. A position is stored in the batch that stores what was counted up to
//! it.

use serde::{Deserialize, Serialize};

use super::to_json;
use crate::error::{Error, Result};
use crate::storage::keys::{EntityId, Tag, encode_key};
use crate::storage::{Batch, Partition, Storage};

/// Where a reader stands in an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position<'a> {
    /// The name under which the input is known, at most 4,096 bytes.
    pub input: &'a str,
    /// How many of its records were read, from the first on.
    pub records: u64,
}

/// A position as it was stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPosition {
    /// How many records were read.
    pub records: u64,
    /// A reading of the host clock, in nanoseconds since the Unix epoch, above the
    /// instants of all transitions among these records and below those of all behind
    /// them.
    pub at_ns: u64,
}

/// The positions that are pending, the latest of each input.
#[derive(Debug, Default)]
pub(super) struct Positions {
    // There is seldom more than one input at a time.
    latest: Vec<(Box<str>, StoredPosition)>,
}

impl Positions {
    pub(super) fn is_empty(&self) -> bool {
        self.latest.is_empty()
    }

    pub(super) fn set(&mut self, input: &str, position: StoredPosition) {
        match self.latest.iter_mut().find(|(name, _)| **name == *input) {
            Some((_, latest)) => {
                if position.at_ns > latest.at_ns {
                    *latest = position;
                }
            }
            None => self.latest.push((input.into(), position)),
        }
    }

    pub(super) fn absorb(&mut self, other: &Positions) {
        for (input, position) in &other.latest {
            self.set(input, *position);
        }
    }

    pub(super) fn put(&self, batch: &mut Batch) -> Result<()> {
        for (input, position) in &self.latest {
            batch.put(
                Partition::System,
                key(input),
                to_json("a position", position)?,
            );
        }
        Ok(())
    }
}

pub(super) fn read(storage: &Storage, input: &str) -> Result<Option<StoredPosition>> {
    match storage.partition(Partition::System).get(&key(input))? {
        Some(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(Error::storage(format!("read the position in `{input}`"))),
        None => Ok(None),
    }
}

fn key(input: &str) -> Vec<u8> {
    encode_key(EntityId(0), Tag::IngestPosition, input.as_bytes())
}
