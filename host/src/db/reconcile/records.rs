//! The store's records, read ahead by a thread of its own: reading them is most of what
//! opening a large store costs.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use crate::error::{Error, Result};
use crate::rules::RESTORE_BATCH;
use crate::storage::{Partition, Storage};

/// How many chunks of records may wait.
const CHUNKS_AHEAD: usize = 16;

/// Some records with their keys, in the order of keys.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    bytes: Vec<u8>,
    /// The lengths of each key and record.
    lengths: Vec<(usize, usize)>,
}

impl Chunk {
    fn push(&mut self, key: &[u8], record: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(record);
        self.lengths.push((key.len(), record.len()));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut rest = &self.bytes[..];
        self.lengths.iter().map(move |(key, record)| {
            let (pair, behind) = rest.split_at(key + record);
            rest = behind;
            pair.split_at(*key)
        })
    }
}

/// Calls `visit` with all records, in the order of keys.
pub(super) fn visit_records(
    storage: &Storage,
    visit: impl FnMut(&[u8], &[u8]) -> Result<()>,
) -> Result<()> {
    thread::scope(|scope| {
        let (sender, receiver) = sync_channel(CHUNKS_AHEAD);
        let reader = thread::Builder::new()
            .name("tidegate-records".to_owned())
            .spawn_scoped(scope, move || {
                let mut chunk = Chunk::default();
                let partition = storage.partition(Partition::Memberships);
                partition.scan(b"", |key, record| {
                    chunk.push(key, record);
                    if chunk.lengths.len() < RESTORE_BATCH {
                        return Ok(());
                    }
                    sender
                        .send(std::mem::take(&mut chunk))
                        .map_err(Error::storage("read the records"))
                })?;
                sender
                    .send(chunk)
                    .map_err(Error::storage("read the records"))
            })
            .map_err(Error::storage("start a thread that reads the records"))?;
        let visited = visit_chunks(receiver, visit);
        let read = reader
            .join()
            .map_err(|_| Error::storage("read the records")("the thread that reads them ended"));
        // Where visiting failed the reader did too, for lack of anyone to read for.
        visited.and(read.flatten())
    })
}

fn visit_chunks(
    chunks: Receiver<Chunk>,
    mut visit: impl FnMut(&[u8], &[u8]) -> Result<()>,
) -> Result<()> {
    for chunk in chunks {
        for (key, record) in chunk.iter() {
            visit(key, record)?;
        }
    }
    Ok(())
}
