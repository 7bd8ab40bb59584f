//! The whole store in one file, written while it is in use, and a store made from such
//! a file.
//!
//! The file begins with `tidegate backup\n` and the format's version, 1, in 4 bytes. Frames
//! follow, one for each key:
//!
//! | length | content |
//! |---|---|
//! | 1 | partition: 1 users, 2 memberships, 3 history, 4 ledger, 5 system, as in [`Partition::ALL`] |
//! | 4 | length of the key, at most 2^24 |
//! | 4 | length of the value, at most 2^24 |
//! | any | the key, then the value |
//! | 4 | CRC-32 of the frame so far |
//!
//! and at the end one of 13 bytes: a zero byte, the number of frames in 8 bytes, and
//! the CRC-32 of these 9. All numbers are little endian. The journal is not in it: it is
//! written from the history when a store is made from the file.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use super::TidalDb;
use super::reconcile::write_journal;
use crate::checksum;
use crate::error::{Error, Result};
use crate::journal::Location;
use crate::journal::disk::SystemDisk;
use crate::storage::sled::SledEngine;
use crate::storage::{Batch, Partition, Storage, StorageEngine};

const MAGIC: &[u8; 16] = b"tidegate backup\n";
const VERSION: u32 = 1;

/// Far above any key or value of a store; a frame that claims more is damaged.
const MAX_LENGTH: usize = 1 << 24;

const KEYS_PER_BATCH: usize = 4096;

impl TidalDb {
    /// Writes the whole store, as it is at one moment, to `output`. Signals go on
    /// meanwhile and are not in it; leaves, rejoins and changes of profiles, cohorts
    /// and communities wait.
    pub fn backup(&self, output: &mut dyn Write) -> Result<()> {
        self.turns.paused(|| {
            self.commit.apply()?;
            self.ledger.paused(|| write(self.storage.engine(), output))
        })
    }

    /// Makes a store in the folder `path` from a backup. The folder must not exist, or
    /// be empty; after an error there is none.
    pub fn restore(path: impl AsRef<Path>, input: &mut dyn Read) -> Result<()> {
        let path = path.as_ref();
        let making = || format!("make the store `{}`", path.display());
        let is_empty = match fs::read_dir(path) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        if !is_empty {
            return Err(Error::storage(making())(
                "there is something of this name already; nothing was changed",
            ));
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".restoring");
        let unfinished = path.with_file_name(name);
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).map_err(Error::storage(making()))?;
        }
        let restored = fill(&unfinished, input).and_then(|()| {
            if path.exists() {
                fs::remove_dir(path).map_err(Error::storage(making()))?;
            }
            fs::rename(&unfinished, path).map_err(Error::storage(making()))
        });
        if restored.is_err() {
            // What is wrong was said already.
            let _ = fs::remove_dir_all(&unfinished);
        }
        restored
    }
}

/// Fills a new store and opens it once, so that it is known to be whole.
fn fill(folder: &Path, input: &mut dyn Read) -> Result<()> {
    fs::create_dir_all(folder).map_err(Error::storage(format!(
        "make the folder `{}`",
        folder.display()
    )))?;
    {
        let engine = SledEngine::open(&folder.join("sled"))?;
        read(&engine, input)?;
        engine.flush()?;
        let location = Location {
            disk: Arc::new(SystemDisk),
            folder: folder.to_owned(),
        };
        write_journal(&location, &Storage::new(Arc::new(engine)))?;
    }
    TidalDb::open(folder)?.flush()
}

pub(crate) fn write(engine: &dyn StorageEngine, output: &mut dyn Write) -> Result<()> {
    let failed = || Error::storage::<io::Error>("write the backup");
    output
        .write_all(MAGIC)
        .and_then(|()| output.write_all(&VERSION.to_le_bytes()))
        .map_err(failed())?;
    let mut frames: u64 = 0;
    for (partition, number) in Partition::ALL.into_iter().zip(1_u8..) {
        engine.scan(partition, b"", &mut |key, value| {
            let mut frame = vec![number];
            for part in [key, value] {
                let length =
                    u32::try_from(part.len()).map_err(Error::storage("write the backup"))?;
                frame.extend_from_slice(&length.to_le_bytes());
            }
            frame.extend_from_slice(key);
            frame.extend_from_slice(value);
            frames += 1;
            write_checked(frame, output).map_err(failed())
        })?;
    }
    let mut end = vec![0];
    end.extend_from_slice(&frames.to_le_bytes());
    write_checked(end, output)
        .and_then(|()| output.flush())
        .map_err(failed())
}

fn write_checked(mut frame: Vec<u8>, output: &mut dyn Write) -> io::Result<()> {
    frame.extend_from_slice(&checksum::of(&frame));
    output.write_all(&frame)
}

pub(crate) fn read(engine: &dyn StorageEngine, input: &mut dyn Read) -> Result<()> {
    let damaged = |reason: &str| Error::storage("read the backup")(reason.to_owned());
    let mut header = [0; 20];
    read_exactly(input, &mut header)?;
    let (magic, version) = header.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err(damaged("it is no backup of tidegate"));
    }
    if version != VERSION.to_le_bytes() {
        return Err(damaged(
            "it is in the format of another version of tidegate",
        ));
    }
    let mut batch = Batch::default();
    for frames in 0_u64.. {
        let mut frame = vec![0];
        read_exactly(input, &mut frame)?;
        if frame == [0] {
            append(input, &mut frame, 8)?;
            check(input, &frame)?;
            engine.apply(&batch)?;
            return if frame[1..] == frames.to_le_bytes() {
                Ok(())
            } else {
                Err(damaged("frames are missing"))
            };
        }
        let partition = Partition::ALL
            .get(usize::from(frame[0]) - 1)
            .ok_or_else(|| damaged("it is damaged"))?;
        append(input, &mut frame, 8)?;
        let length = |at: usize| {
            let bytes = frame[at..].first_chunk::<4>().copied().unwrap_or_default();
            usize::try_from(u32::from_le_bytes(bytes)).unwrap_or(usize::MAX)
        };
        let (key, value) = (length(1), length(5));
        if key > MAX_LENGTH || value > MAX_LENGTH {
            return Err(damaged("it is damaged"));
        }
        append(input, &mut frame, key + value)?;
        check(input, &frame)?;
        let (key, value) = frame[9..].split_at(key);
        batch.put(*partition, key.to_vec(), value.to_vec());
        if batch.writes().len() == KEYS_PER_BATCH {
            engine.apply(&batch)?;
            batch = Batch::default();
        }
    }
    Ok(())
}

fn read_exactly(input: &mut dyn Read, bytes: &mut [u8]) -> Result<()> {
    input.read_exact(bytes).map_err(|error| {
        let reason = match error.kind() {
            io::ErrorKind::UnexpectedEof => "it ends too early".to_owned(),
            _ => error.to_string(),
        };
        Error::storage("read the backup")(reason)
    })
}

fn append(input: &mut dyn Read, frame: &mut Vec<u8>, length: usize) -> Result<()> {
    let start = frame.len();
    frame.resize(start + length, 0);
    read_exactly(input, &mut frame[start..])
}

fn check(input: &mut dyn Read, frame: &[u8]) -> Result<()> {
    let mut checksum = [0; 4];
    read_exactly(input, &mut checksum)?;
    if checksum::matches(frame, checksum) {
        return Ok(());
    }
    Err(Error::storage("read the backup")("it is damaged"))
}
