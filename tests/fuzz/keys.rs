//! What must hold for keys of any bytes, in `cargo test` and in fuzz targets.

use tidegate::storage::keys::{encode_key, entity_of, parse_key};

pub(crate) fn check(input: &[u8]) {
    assert_eq!(entity_of(input).is_some(), input.len() >= 8);
    if let Some((entity, tag, suffix)) = parse_key(input) {
        assert_eq!(encode_key(entity, tag, suffix), input);
        assert_eq!(entity_of(input), Some(entity));
    }
}
