//! What must hold for any bytes, where the public interface does not show it. There for the
//! fuzz targets alone, which are built with `--cfg fuzzing`.

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a check fails by panicking"
)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::RangeBounds;
use std::sync::Mutex;

use crate::db::backup;
use crate::error::{Error, Result};
use crate::journal::{Content, blocks, format};
use crate::ledger::Profile;
use crate::ledger::cohorts::Predicate;
use crate::rules::{Rules, SHIPPED_COMPONENT, StoredRecords};
use crate::storage::{Batch, KeyRange, Partition, StorageEngine, Visitor};

/// A journal is read to its end; what compaction makes of it holds the same transitions.
pub fn journal(input: &[u8]) {
    let Some(content) = Content::parse(input.to_vec()) else {
        return;
    };
    assert!(content.damaged_bytes() <= input.len().max(32));
    assert!(content.ordered().is_sorted_by_key(|entry| entry.order()));
    let mut entries: Vec<_> = content.ordered().chain(content.unordered()).collect();
    entries.sort_by_key(format::Entry::order);
    entries.dedup_by_key(|entry| entry.order());

    let mut compacted = format::header(7);
    blocks::write_blocks(entries.iter().cloned(), |block| {
        compacted.extend_from_slice(block);
        Ok(())
    })
    .unwrap();
    let compacted = Content::parse(compacted).unwrap();
    assert_eq!((compacted.damaged_bytes(), compacted.torn_bytes()), (0, 0));
    assert_eq!(compacted.unordered().count(), 0);
    let mut read = 0;
    for (before, after) in entries.iter().zip(compacted.ordered()) {
        assert_eq!(before.order(), after.order());
        assert_eq!((before.at_ns, before.to), (after.at_ns, after.to));
        assert!(after.record.is_empty() || after.record == before.record);
        read += 1;
    }
    assert_eq!(read, entries.len());
}

/// What is read of a backup is what a backup of it holds.
pub fn backup(input: &[u8]) {
    let engine = Memory::default();
    if backup::read(&engine, &mut { input }).is_err() {
        return;
    }
    let mut again = Vec::new();
    backup::write(&engine, &mut again).unwrap();
    let second = Memory::default();
    backup::read(&second, &mut &*again).unwrap();
    assert!(*engine.0.lock().unwrap() == *second.0.lock().unwrap());
}

/// A predicate is refused or evaluated.
pub fn predicate(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let Ok(predicate) = Predicate::compile("fuzzed", &text) else {
        return;
    };
    let attributes = serde_json::json!({
        "age": 24, "tags": ["a", "b"], "home": {"city": "Oslo"}, "x": -0.5, "a": true
    });
    predicate.is_met(attributes.as_object().unwrap());
    predicate.is_met(&Profile::new());
}

/// A record is a membership or malformed, the same one by one as in bulk.
pub fn record(input: &[u8]) {
    thread_local! {
        static RULES: RefCell<Rules> =
            RefCell::new(Rules::load(SHIPPED_COMPONENT, "of this program", None).unwrap());
    }
    RULES.with_borrow(|rules| {
        let one_by_one = match rules.status(7, Some(input)) {
            Ok(membership) => Some(membership),
            Err(Error::MalformedRecord { .. }) => None,
            Err(error) => panic!("{error}"),
        };
        let mut records = StoredRecords::default();
        records.push(7, input);
        let in_bulk = rules.restore(&records).unwrap();
        assert_eq!(in_bulk.len(), 1);
        assert_eq!(in_bulk[0].map(|(membership, _)| membership), one_by_one);
        if let Some(membership) = one_by_one {
            // The only one that the format allows, but for what a timestamp of an active
            // user is worth.
            assert_eq!(rules.record(&membership).unwrap(), input);
        }
    });
}

/// An engine in memory.
#[derive(Debug, Default)]
struct Memory(Mutex<BTreeMap<(Partition, Vec<u8>), Vec<u8>>>);

impl StorageEngine for Memory {
    fn get(&self, partition: Partition, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let keys = self.0.lock().unwrap();
        Ok(keys.get(&(partition, key.to_vec())).cloned())
    }

    fn apply(&self, batch: &Batch) -> Result<()> {
        let mut keys = self.0.lock().unwrap();
        for write in batch.writes() {
            let key = (write.partition, write.key.clone());
            match &write.value {
                Some(value) => drop(keys.insert(key, value.clone())),
                None => drop(keys.remove(&key)),
            }
        }
        Ok(())
    }

    fn scan_range(
        &self,
        partition: Partition,
        range: KeyRange<'_>,
        visit: Visitor<'_>,
    ) -> Result<()> {
        let keys = self.0.lock().unwrap();
        for ((of, key), value) in keys.iter() {
            if *of == partition && RangeBounds::<[u8]>::contains(&range, &key[..]) {
                visit(key, value)?;
            }
        }
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }
}
