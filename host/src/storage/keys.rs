//! The bytes of a key.
//!
//! | offset | length | content |
//! |---|---|---|
//! | 0 | 8 | entity id, big endian |
//! | 8 | 1 | tag |
//! | 9 | any | suffix, by the tag |
//!
//! Big endian makes the order of the bytes the order of the ids, so all keys of
//! one entity lie together and entities lie in the order of their ids.

/// What a key is about: a user, a scope of aggregates, or the store itself (0).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityId(pub u64);

/// What kind of value a key leads to. Tags below 0x40 are those of `TidalDb`, the database
/// that the community layer was specified for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Tag {
    /// A community that a user joined; the value is empty. Suffix: the community's name.
    CommunityMembership = 0x0E,
    /// Reserved; nothing is stored under it.
    PurgeManifest = 0x10,
    /// A user's record, written and read by the component. No suffix.
    CommunityLeave = 0x11,
    /// A user's attributes, as a JSON object. No suffix.
    Profile = 0x40,
    /// A cohort whose predicate a user's profile meets; the value is empty. Suffix: the
    /// cohort's name.
    CohortMembership = 0x41,
    /// An acknowledged transition: its number in the journal, 8 bytes big endian, and
    /// `left` or `active`. Suffix: its instant in nanoseconds, 8 bytes big endian.
    Transition = 0x42,
    /// The name of a scope of aggregates, such as `community::film`. No suffix.
    Scope = 0x43,
    /// A cohort's predicate and whether its members are worked out, as a JSON
    /// object. Suffix: the cohort's name.
    CohortPredicate = 0x44,
    /// An aggregate of a scope, with the value that `ledger::aggregates` describes. Suffix:
    /// the item's id, 8 bytes big endian, and the kind.
    Aggregate = 0x45,
    /// The version of the store's format, as decimal text. No suffix.
    FormatVersion = 0x46,
    /// A high-water mark of the host clock, 8 bytes big endian. Suffix: who wrote
    /// the readings it covers.
    ClockHighWater = 0x47,
    /// The totals of what signals did, as a JSON object. No suffix.
    SignalTotals = 0x48,
    /// The number that ties the store to its journal, 8 bytes big endian. No suffix.
    StoreId = 0x49,
    /// The number of the last transition that the store has, 8 bytes big endian. No
    /// suffix.
    AppliedSequence = 0x4A,
    /// How far an input was read, as a JSON object. Suffix: the input's name.
    IngestPosition = 0x4B,
    /// The lost transitions that were given up: how many, and the highest number among
    /// them, 8 bytes big endian each. No suffix.
    AcceptedLoss = 0x4C,
}

impl Tag {
    /// Every tag, in the order of their bytes.
    pub const ALL: [Tag; 16] = [
        Tag::CommunityMembership,
        Tag::PurgeManifest,
        Tag::CommunityLeave,
        Tag::Profile,
        Tag::CohortMembership,
        Tag::Transition,
        Tag::Scope,
        Tag::CohortPredicate,
        Tag::Aggregate,
        Tag::FormatVersion,
        Tag::ClockHighWater,
        Tag::SignalTotals,
        Tag::StoreId,
        Tag::AppliedSequence,
        Tag::IngestPosition,
        Tag::AcceptedLoss,
    ];

    /// The tag with this byte, if there is one.
    pub fn from_byte(byte: u8) -> Option<Tag> {
        Tag::ALL.into_iter().find(|tag| *tag as u8 == byte)
    }
}

/// The key of a value: entity id, tag, suffix.
///
/// ```
/// use tidegate::storage::keys::{EntityId, Tag, encode_key, parse_key};
///
/// let key = encode_key(EntityId(42), Tag::CommunityLeave, b"");
/// assert_eq!(key, [0, 0, 0, 0, 0, 0, 0, 42, 0x11]);
/// assert_eq!(parse_key(&key), Some((EntityId(42), Tag::CommunityLeave, &b""[..])));
/// ```
pub fn encode_key(entity: EntityId, tag: Tag, suffix: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(9 + suffix.len());
    key.extend_from_slice(&entity.0.to_be_bytes());
    key.push(tag as u8);
    key.extend_from_slice(suffix);
    key
}

/// The inverse of [`encode_key`]; `None` if the bytes are shorter than a key or
/// their tag is unknown.
pub fn parse_key(key: &[u8]) -> Option<(EntityId, Tag, &[u8])> {
    let (entity, rest) = key.split_first_chunk::<8>()?;
    let (tag, suffix) = rest.split_first()?;
    Some((
        EntityId(u64::from_be_bytes(*entity)),
        Tag::from_byte(*tag)?,
        suffix,
    ))
}

/// The entity that a key begins with, even where the rest does not parse.
pub fn entity_of(key: &[u8]) -> Option<EntityId> {
    let entity = key.first_chunk::<8>()?;
    Some(EntityId(u64::from_be_bytes(*entity)))
}

/// The first key behind all that begin with `prefix`; `None` if there can be none.
pub(super) fn behind_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut behind = prefix[..=last].to_vec();
    behind[last] += 1;
    Some(behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_behind_a_prefix_is_the_next_key_without_it() {
        assert_eq!(behind_prefix(b""), None);
        assert_eq!(behind_prefix(&[255, 255]), None);
        assert_eq!(behind_prefix(&[0]), Some(vec![1]));
        assert_eq!(behind_prefix(&[7, 8]), Some(vec![7, 9]));
        assert_eq!(behind_prefix(&[7, 254, 255]), Some(vec![7, 255]));
    }
}
