//! Stores of tidegate with many users who left, filled by leaves through its API.
//!
//! A store is filled once in a run and kept in the folder that `TIDEGATE_BENCH_STORES`
//! names, for the other tables of the run; without it, in a folder that goes when the
//! table ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Result, ensure};
use tempfile::TempDir;
use tidegate::{FanOut, TidalDb};

use crate::inputs::user;
use crate::on_threads;
use crate::processes::temporary_folder;

/// So many callers share each sync.
const CALLERS: usize = 64;

/// The folder of filled stores.
#[derive(Debug)]
pub struct Stores {
    root: PathBuf,
    _temporary: Option<TempDir>,
}

impl Stores {
    pub fn new() -> Result<Self> {
        if let Some(root) = std::env::var_os("TIDEGATE_BENCH_STORES") {
            return Ok(Stores {
                root: root.into(),
                _temporary: None,
            });
        }
        let temporary = temporary_folder()?;
        Ok(Stores {
            root: temporary.path().to_owned(),
            _temporary: Some(temporary),
        })
    }

    /// The store in which the first `left` users have left, closed, and opened once since,
    /// which compacted its journal.
    pub fn with_left(&self, left: u64) -> Result<PathBuf> {
        let path = self.root.join(format!("left-{left}"));
        let unfinished = self.root.join(format!("left-{left}.unfinished"));
        if !path.exists() {
            if unfinished.exists() {
                fs::remove_dir_all(&unfinished)?;
            }
            let db = TidalDb::open(&unfinished)?;
            leave(&db, 0..left)?;
            drop(db);
            let started = Instant::now();
            let db = TidalDb::open(&unfinished)?;
            let seconds = started.elapsed().as_secs_f64();
            fs::write(self.first_opening_of(left), seconds.to_string())?;
            ensure!(db.stats().left_users == left, "users who left are missing");
            drop(db);
            fs::rename(&unfinished, &path)?;
        }
        Ok(path)
    }

    /// The seconds of its first opening after the leaves.
    pub fn first_opening(&self, left: u64) -> Result<f64> {
        self.with_left(left)?;
        Ok(fs::read_to_string(self.first_opening_of(left))?.parse()?)
    }

    fn first_opening_of(&self, left: u64) -> PathBuf {
        self.root.join(format!("left-{left}.first-opening"))
    }

    /// That store, open.
    pub fn open_with_left(&self, left: u64) -> Result<TidalDb> {
        let db = TidalDb::open(self.with_left(left)?)?;
        ensure!(db.fan_out(user(0)) == FanOut::NONE);
        ensure!(db.fan_out(user(left)) == FanOut::ALL);
        Ok(db)
    }
}

/// Lets users leave, many at a time.
pub fn leave(db: &TidalDb, numbers: std::ops::Range<u64>) -> Result<()> {
    let next = AtomicU64::new(numbers.start);
    let (_, outcomes) = on_threads(CALLERS, |_| -> tidegate::Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= numbers.end {
                return Ok(());
            }
            db.leave_community_layer(user(number))?;
        }
    });
    for outcome in outcomes {
        outcome?;
    }
    Ok(())
}

/// Copies a closed store.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
