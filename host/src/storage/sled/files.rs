//! sled's files, looked at before sled does and when it fails.
//!
//! | in the folder | what |
//! |---|---|
//! | `db` | the log with all data |
//! | `snap.*` | where in `db` each page is: content, its length (8 bytes), CRC-32 of the content (4 bytes); made anew from `db` where it is missing |
//! | `conf` | parameters: content, CRC-32 (4 bytes); made anew with the defaults, which are ours, where it is missing |
//! | `snap.*.generating` | a snapshot that was never finished |
//!
//! A file that is damaged makes sled's opener fail or panic, and it says neither
//! which file nor what to do.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const WAY_OUT: &str = "restore a backup, or move the folder away to have memberships and their history written again from the journal; signals are lost then";

/// What is wrong with the files beside the data file, and what to do; `None` if sled
/// can be let at them.
pub(super) fn find_damage(folder: &Path) -> Option<String> {
    let snapshot = latest_snapshot(folder);
    if let Some(snapshot) = &snapshot {
        if !folder.join("db").exists() {
            return Some(format!(
                "its file `db` is missing; put it back, or {WAY_OUT}"
            ));
        }
        if !is_whole(snapshot, 12) {
            return Some(damaged(snapshot));
        }
    }
    let parameters = folder.join("conf");
    // sled itself takes a shorter one for none.
    let is_there = fs::metadata(&parameters).is_ok_and(|found| found.len() > 8);
    (is_there && !is_whole(&parameters, 4)).then(|| damaged(&parameters))
}

/// Removes what a process that was killed left of a snapshot. sled would take it for
/// one, and for the latest: a crash while it opens kept it from opening ever again.
pub(super) fn remove_unfinished(folder: &Path) -> io::Result<()> {
    snapshots(folder)
        .filter(|path| path.extension().is_some_and(|found| found == "generating"))
        .try_for_each(fs::remove_file)
}

/// What to do when sled says that its files are damaged, or panics.
pub(super) fn data_is_damaged() -> String {
    format!("its file `db` is damaged; {WAY_OUT}")
}

fn damaged(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().display();
    format!("its file `{name}` is damaged; move that file away, and it is made anew")
}

/// The one that sled reads.
fn latest_snapshot(folder: &Path) -> Option<PathBuf> {
    snapshots(folder).max()
}

/// A folder that can't be read is left to sled, which says why.
fn snapshots(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.as_encoded_bytes().starts_with(b"snap."))
        })
}

/// Whether a file ends in the checksum of what it holds before the last `trailer`
/// bytes. One that can't be read is left to sled, which says why.
fn is_whole(file: &Path, trailer: usize) -> bool {
    let Ok(bytes) = fs::read(file) else {
        return true;
    };
    let content = bytes.len().checked_sub(trailer);
    content
        .and_then(|length| bytes.split_at_checked(length))
        .zip(bytes.last_chunk::<4>())
        .is_some_and(|((content, _), checksum)| {
            !content.is_empty() && crc32fast::hash(content) == u32::from_le_bytes(*checksum)
        })
}
