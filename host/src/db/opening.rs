//! From a folder to a handle: the lock, the component, storage, the journal.
//!
//! | in the folder | what |
//! |---|---|
//! | `lock` | held while a process has the store open |
//! | `sled/` | the sled database |
//! | `journal` | every transition once more; see [`crate::journal`] |
//! | `journal.mark` | how many transitions there are; see [`crate::journal::mark`] |
//! | `journal.damaged` | a journal as it was before damage was cut off or it was written anew |
//! | `component-cache/` | compiled components, kept by wasmtime; may be deleted |

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;

use super::commit::GroupCommit;
use super::reconcile::reconcile;
use super::turns::Turns;
use super::write_behind::WriteBehind;
use super::{TidalDb, flush};
use crate::clock::HostClock;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::gate::Gate;
use crate::journal::Location;
use crate::ledger::Ledger;
use crate::membership::CommunityMembership;
use crate::rules::{Rules, SHIPPED_COMPONENT};
use crate::storage::keys::{EntityId, Tag, encode_key, parse_key};
use crate::storage::sled::SledEngine;
use crate::storage::{Partition, Storage};

/// The version of all that is stored: keys, values, partitions.
const FORMAT_VERSION: u32 = 1;

impl TidalDb {
    /// Opens the store in the folder `path`, or makes one, with the defaults of
    /// [`Config`].
    pub fn open(path: impl AsRef<Path>) -> Result<TidalDb> {
        Self::from_config(Config::new(path))
    }

    /// Opens a store in a temporary folder that is deleted when it is dropped.
    pub fn ephemeral() -> Result<TidalDb> {
        let folder =
            tempfile::tempdir().map_err(Error::storage("make a folder for a temporary store"))?;
        let mut db = Self::open(folder.path())?;
        db.temporary = Some(folder);
        Ok(db)
    }

    /// Opens the store that `config` describes, or makes one.
    ///
    /// The cost follows the number of users with a record. Records that can't be
    /// read do not stop it: their users' gates are shut, and a warning says how
    /// many there are.
    pub fn from_config(config: Config) -> Result<TidalDb> {
        let path = &config.path;
        make_folder(path)?;
        let lock = StoreLock::take(path)?;
        let rules = load_rules(&config)?;
        let storage = Storage::new(match config.engine {
            Some(engine) => engine,
            None => Arc::new(SledEngine::open(&path.join("sled"))?),
        });
        check_format(&storage, path)?;

        let location = Location {
            disk: config.disk,
            folder: path.clone(),
        };
        let mut gate = Gate::new(rules.fan_out(&CommunityMembership::never_left(0))?);
        let found = reconcile(&location, &storage, &rules, &mut gate)?;
        let malformed = gate.census().malformed + found.unattributed;
        if malformed > 0 {
            tracing::warn!(
                "{malformed} membership records are malformed; the gate is shut for their users until a leave or a rejoin writes new ones, and `verify` names them"
            );
        }
        let clock = Arc::new(HostClock::load(&storage, found.highest_at_ns)?);
        let ledger = Arc::new(Ledger::load(storage.clone(), Arc::clone(&clock))?);
        let commit = Arc::new(GroupCommit::new(
            found.journal,
            found.last_sequence,
            found.totals,
            storage.clone(),
            Arc::clone(&clock),
        ));
        let write_behind = WriteBehind::start(config.flush_every, {
            let (commit, ledger) = (Arc::clone(&commit), Arc::clone(&ledger));
            move || flush(&commit, &ledger)
        })?;
        Ok(TidalDb {
            write_behind: Some(write_behind),
            ledger,
            gate,
            rules: RwLock::new(rules),
            turns: Turns::new(),
            commit,
            clock,
            storage,
            unattributed_records: found.unattributed,
            loss: found.loss,
            path: config.path,
            _lock: lock,
            temporary: None,
        })
    }
}

/// Makes the store's folder, if there is none, so that its name lasts.
fn make_folder(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let making = || format!("make the folder `{}`", path.display());
    if path.exists() {
        return Err(Error::storage(making())("there is a file of this name"));
    }
    let absolute = std::path::absolute(path).map_err(Error::storage(making()))?;
    fs::create_dir_all(&absolute)
        .and_then(|()| match absolute.parent() {
            Some(parent) => File::open(parent)?.sync_all(),
            None => Ok(()),
        })
        .map_err(Error::storage(making()))
}

/// What keeps a second process from opening the store.
#[derive(Debug)]
pub(super) struct StoreLock {
    // Closing the file gives the lock back, even when the process is killed.
    file: File,
}

impl Drop for StoreLock {
    fn drop(&mut self) {
        // Closing it is not enough while another thread starts a process: that one
        // holds a copy of every open file for a moment.
        if let Err(error) = self.file.unlock() {
            tracing::warn!(%error, "the lock on the store was not given back");
        }
    }
}

impl StoreLock {
    fn take(folder: &Path) -> Result<Self> {
        let path = folder.join("lock");
        let locking = || format!("lock the store with `{}`", path.display());
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(Error::storage(locking()))?;
        match file.try_lock() {
            Ok(()) => Ok(StoreLock { file }),
            Err(TryLockError::WouldBlock) => Err(Error::StoreInUse {
                path: folder.to_owned(),
            }),
            Err(TryLockError::Error(error)) => Err(Error::storage(locking())(error)),
        }
    }
}

fn load_rules(config: &Config) -> Result<Rules> {
    match &config.component {
        None => Rules::load(
            SHIPPED_COMPONENT,
            "of this program",
            Some(&cache_folder(&config.path)?),
        ),
        Some(file) => read_rules(file, &config.path),
    }
}

/// Loads the component in `file` for the store in the folder `store`.
pub(super) fn read_rules(file: &Path, store: &Path) -> Result<Rules> {
    let name = format!("`{}`", file.display());
    let bytes = fs::read(file).map_err(|error| Error::ComponentRefused {
        component: name.clone(),
        reason: format!("it can't be read ({error})"),
    })?;
    Rules::load(&bytes, &name, Some(&cache_folder(store)?))
}

fn cache_folder(store: &Path) -> Result<PathBuf> {
    // wasmtime takes no relative path.
    std::path::absolute(store.join("component-cache")).map_err(Error::storage(format!(
        "find the folder `{}`",
        store.display()
    )))
}

fn check_format(storage: &Storage, path: &Path) -> Result<()> {
    let key = encode_key(EntityId(0), Tag::FormatVersion, b"");
    let expected = FORMAT_VERSION.to_string();
    match storage.partition(Partition::System).get(&key)? {
        None => storage
            .partition(Partition::System)
            .put(&key, expected.as_bytes()),
        Some(found) if found == expected.as_bytes() => Ok(()),
        Some(found) => Err(Error::StoreFormat {
            path: path.to_owned(),
            found: found.escape_ascii().to_string(),
            expected: FORMAT_VERSION,
        }),
    }
}

/// The user whose record a key leads to; `None` if it does not parse as the key of
/// a record.
pub(super) fn user_of_record(key: &[u8]) -> Option<u64> {
    match parse_key(key) {
        Some((EntityId(user_id), Tag::CommunityLeave, b"")) => Some(user_id),
        _ => None,
    }
}
