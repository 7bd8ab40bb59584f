//! How a store is opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::journal::disk::{Disk, SystemDisk};
use crate::storage::StorageEngine;

/// What a [`TidalDb`](crate::TidalDb) is opened with.
///
/// ```
/// use std::time::Duration;
/// use tidegate::{Config, TidalDb};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("store");
/// let config = Config::new(&path).flush_every(Duration::from_millis(100));
/// let db = TidalDb::from_config(config)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) path: PathBuf,
    pub(crate) component: Option<PathBuf>,
    pub(crate) flush_every: Duration,
    pub(crate) engine: Option<Arc<dyn StorageEngine>>,
    pub(crate) disk: Arc<dyn Disk>,
}

impl Config {
    /// The defaults for a store in the folder `path`, which is made if it does not
    /// exist.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Config {
            path: path.as_ref().to_owned(),
            component: None,
            flush_every: Duration::from_millis(500),
            engine: None,
            disk: Arc::new(SystemDisk),
        }
    }

    /// The file with the component of rules, instead of the one that ships with
    /// this crate.
    #[must_use]
    pub fn component(mut self, file: impl AsRef<Path>) -> Self {
        self.component = Some(file.as_ref().to_owned());
        self
    }

    /// How long a signal may stay in memory before it is written to storage; half
    /// a second by default. A crash may lose the signals of that time.
    #[must_use]
    pub fn flush_every(mut self, interval: Duration) -> Self {
        self.flush_every = interval;
        self
    }

    /// The storage engine, instead of a sled database in the store's folder. The
    /// folder still holds the lock, the journal and the compiled component.
    #[must_use]
    pub fn engine(mut self, engine: Arc<dyn StorageEngine>) -> Self {
        self.engine = Some(engine);
        self
    }

    /// Where the journal's files are kept, instead of the operating system's file
    /// system.
    #[must_use]
    pub fn disk(mut self, disk: Arc<dyn Disk>) -> Self {
        self.disk = disk;
        self
    }
}
