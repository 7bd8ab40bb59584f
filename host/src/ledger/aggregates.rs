//! Aggregates in storage.
//!
//! | where | offset | length | content |
//! |---|---|---|---|
//! | key suffix | 0 | 8 | item id, big endian |
//! | key suffix | 8 | 1 to 64 | kind, UTF-8 |
//! | value | 0 | 8 | count, little endian |
//! | value | 8 | 16 | summed weight in millionths, two's complement, little endian |

use super::pending::Sum;
use super::scopes::ScopeId;
use super::weight::Millionths;
use crate::error::{Error, Result};
use crate::storage::keys::{Tag, encode_key, parse_key};
use crate::storage::{Partition, Storage};

const VALUE_LENGTH: usize = 24;

pub(super) fn key(scope: ScopeId, item_id: u64, kind: &str) -> Vec<u8> {
    let mut suffix = item_id.to_be_bytes().to_vec();
    suffix.extend_from_slice(kind.as_bytes());
    encode_key(scope.entity(), Tag::Aggregate, &suffix)
}

pub(super) fn encode(sum: Sum) -> Vec<u8> {
    let mut value = Vec::with_capacity(VALUE_LENGTH);
    value.extend_from_slice(&sum.count.to_le_bytes());
    value.extend_from_slice(&sum.weight.0.to_le_bytes());
    value
}

fn decode(value: &[u8]) -> Result<Sum> {
    let parts = value
        .split_first_chunk::<8>()
        .and_then(|(count, weight)| Some((count, <&[u8; 16]>::try_from(weight).ok()?)));
    let Some((count, weight)) = parts else {
        return Err(Error::storage("read an aggregate")(format!(
            "{VALUE_LENGTH} bytes expected, {} found",
            value.len()
        )));
    };
    Ok(Sum {
        count: u64::from_le_bytes(*count),
        weight: Millionths(i128::from_le_bytes(*weight)),
    })
}

/// The stored sum, zero if there is none.
pub(super) fn read(storage: &Storage, key: &[u8]) -> Result<Sum> {
    storage
        .partition(Partition::Ledger)
        .get(key)?
        .map_or(Ok(Sum::default()), |value| decode(&value))
}

/// Calls `visit` with item, kind and sum of each stored aggregate of a scope.
pub(super) fn scan(
    storage: &Storage,
    scope: ScopeId,
    mut visit: impl FnMut(u64, &str, Sum),
) -> Result<()> {
    let prefix = encode_key(scope.entity(), Tag::Aggregate, b"");
    storage
        .partition(Partition::Ledger)
        .scan(&prefix, |key, value| {
            let (item_id, kind) = parse_key(key)
                .and_then(|(_, _, suffix)| suffix.split_first_chunk::<8>())
                .and_then(|(item_id, kind)| Some((item_id, str::from_utf8(kind).ok()?)))
                .ok_or("its key does not parse")
                .map_err(Error::storage("read an aggregate"))?;
            visit(u64::from_be_bytes(*item_id), kind, decode(value)?);
            Ok(())
        })
}
