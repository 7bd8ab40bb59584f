//! The few operations on files that the journal is made of, behind a trait, so that
//! tests can let each of them fail or record it.

use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::Path;

/// A place for files. What an operation promises is what the journal's own promises
/// rest on.
pub trait Disk: Debug + Send + Sync {
    /// The whole content of a file; `None` if there is no file of this name.
    fn read(&self, path: &Path) -> io::Result<Option<Vec<u8>>>;

    /// Opens a file for writing; makes it if it does not exist.
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Gives a file another name, in place of what has that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Deletes a file, if it exists.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Returns once the names in a folder survive a power cut.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
}

/// An open file.
pub trait DiskFile: Debug + Send {
    /// Writes bytes from an offset on, which is not behind the file's end; it grows where
    /// they reach further. After an error some of them may be there.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Returns once the content survives a power cut.
    fn sync(&mut self) -> io::Result<()>;

    /// Cuts the file to this length.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
}

/// The operating system's files.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemDisk;

impl Disk for SystemDisk {
    fn read(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        match fs::read(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)?;
        Ok(Box::new(file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }
}

impl DiskFile for File {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.seek(SeekFrom::Start(offset))?;
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}
