//! The mark: how many transitions a store has had, in a file beside the journal, so
//! that what the journal and the store lost both can be told.
//!
//! A journal that was cut at its end beside a store that was put back to an earlier day
//! look like a younger store. The mark says that there was more. It is written when
//! the store is opened and when it is closed, and never says more than what was durable
//! then; without it, or after a crash, nothing is told that could not be told before.
//!
//! | offset | length | content |
//! |---|---|---|
//! | 0 | 8 | store id |
//! | 8 | 8 | number of the last transition |
//! | 16 | 4 | CRC-32 of the 16 bytes before |
//!
//! All numbers are little endian.

use super::Location;
use super::format::MAX_SEQUENCE;
use crate::checksum;
use crate::error::{Error, Result};

const FILE_NAME: &str = "journal.mark";
const NEW_FILE_NAME: &str = "journal.mark.new";

/// What the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) store_id: u64,
    pub(crate) last_sequence: u64,
}

impl Mark {
    /// The mark; `None` if there is none or it is damaged.
    pub(crate) fn read(location: &Location) -> Result<Option<Self>> {
        let path = location.path(FILE_NAME);
        let bytes = location
            .disk
            .read(&path)
            .map_err(Error::storage(format!("read `{}`", path.display())))?;
        Ok(bytes.and_then(|bytes| Self::decode(&bytes)))
    }

    /// Puts it in place of the one there is, if any.
    pub(super) fn write(self, location: &Location) -> Result<()> {
        let (path, new) = (location.path(FILE_NAME), location.path(NEW_FILE_NAME));
        let disk = &*location.disk;
        let write = || {
            disk.remove(&new)?;
            let mut file = disk.open(&new)?;
            file.write_at(0, &self.encode())?;
            file.sync()?;
            disk.rename(&new, &path)?;
            disk.sync_folder(&location.folder)
        };
        write().map_err(Error::storage(format!("write `{}`", path.display())))
    }

    fn encode(self) -> Vec<u8> {
        let mut bytes = self.store_id.to_le_bytes().to_vec();
        bytes.extend_from_slice(&self.last_sequence.to_le_bytes());
        bytes.extend_from_slice(&checksum::of(&bytes));
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (store_id, rest) = bytes.split_first_chunk::<8>()?;
        let (last_sequence, _) = rest.split_first_chunk::<8>()?;
        let mark = Mark {
            store_id: u64::from_le_bytes(*store_id),
            last_sequence: u64::from_le_bytes(*last_sequence),
        };
        let can_be = mark.last_sequence <= MAX_SEQUENCE;
        (can_be && mark.encode() == bytes).then_some(mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_damaged_byte_is_noticed() {
        let mark = Mark {
            store_id: 5,
            last_sequence: 300,
        };
        let whole = mark.encode();
        assert_eq!(Mark::decode(&whole), Some(mark));
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            assert_eq!(Mark::decode(&bytes), None, "byte {at}");
            assert_eq!(Mark::decode(&whole[..at]), None);
        }
    }
}
