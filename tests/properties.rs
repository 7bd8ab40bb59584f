//! What holds for all inputs: the record, the keys, and that the component is the
//! native rules.

use std::cell::RefCell;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tidegate::storage::keys::{EntityId, Tag, encode_key, entity_of, parse_key};
use tidegate_membership::policy::{Membership, Status};
use tidegate_membership::record;

use crate::support::rules::{Native, Rules as _, shipped};

fn memberships() -> impl Strategy<Value = Membership> {
    (any::<u64>(), any::<bool>(), any::<Option<u64>>()).prop_map(|(user_id, left, left_at_ns)| {
        Membership {
            user_id,
            status: if left { Status::Left } else { Status::Active },
            left_at_ns,
        }
    })
}

/// What a membership is once 0 is read as no instant.
fn canonical(membership: Membership) -> Membership {
    Membership {
        left_at_ns: membership.left_at_ns.filter(|ns| *ns != 0),
        ..membership
    }
}

fn tags() -> impl Strategy<Value = Tag> {
    prop::sample::select(Tag::ALL.to_vec())
}

fn suffixes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn a_record_reads_back_as_what_was_written(membership in memberships()) {
        let bytes = record::serialize(&membership);
        let read = record::deserialize(membership.user_id, &bytes);
        prop_assert_eq!(read, Ok(canonical(membership)));
    }

    #[test]
    fn bytes_that_are_read_are_what_would_be_written(
        user_id in any::<u64>(),
        bytes in prop::collection::vec(prop_oneof![0..3_u8, any::<u8>()], 7..11),
    ) {
        if let Ok(membership) = record::deserialize(user_id, &bytes) {
            prop_assert_eq!(record::serialize(&membership).to_vec(), bytes);
        } else {
            prop_assert!(bytes.len() != 9 || bytes[0] > 1);
        }
    }

    #[test]
    fn a_key_parses_as_what_it_was_made_of(
        id in any::<u64>(), tag in tags(), suffix in suffixes(),
    ) {
        let key = encode_key(EntityId(id), tag, &suffix);
        prop_assert_eq!(parse_key(&key), Some((EntityId(id), tag, suffix.as_slice())));
        prop_assert_eq!(entity_of(&key), Some(EntityId(id)));
    }

    #[test]
    fn bytes_that_parse_are_the_key_of_what_they_parse_as(
        bytes in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        match parse_key(&bytes) {
            Some((id, tag, suffix)) => prop_assert_eq!(encode_key(id, tag, suffix), bytes),
            None => prop_assert!(bytes.len() < 9 || Tag::from_byte(bytes[8]).is_none()),
        }
    }

    #[test]
    fn keys_are_in_the_order_of_entity_tag_and_suffix(
        left in (any::<u64>(), tags(), suffixes()),
        right in (any::<u64>(), tags(), suffixes()),
    ) {
        let key = |(id, tag, suffix): &(u64, Tag, Vec<u8>)| encode_key(EntityId(*id), *tag, suffix);
        prop_assert_eq!(key(&left).cmp(&key(&right)), left.cmp(&right));
    }
}

#[test]
fn the_component_is_the_native_rules() {
    let cases = (
        memberships(),
        any::<u64>(),
        prop::collection::vec(0..4_u8, 0..12),
    );
    // The runner wants a closure that changes nothing.
    let component = RefCell::new(shipped());
    let config = ProptestConfig {
        cases: 4096,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    TestRunner::new(config)
        .run(&cases, |(membership, now_ns, bytes)| {
            let component = &mut *component.borrow_mut();
            let native = &mut Native;
            let user_id = membership.user_id;
            prop_assert_eq!(
                component.leave(membership, now_ns),
                native.leave(membership, now_ns)
            );
            prop_assert_eq!(component.rejoin(membership), native.rejoin(membership));
            prop_assert_eq!(component.signal(membership), native.signal(membership));
            prop_assert_eq!(
                component.serialize(membership),
                native.serialize(membership)
            );
            let read = native.deserialize(user_id, &bytes);
            prop_assert_eq!(component.deserialize(user_id, &bytes), read);
            prop_assert_eq!(component.status(user_id, Some(&bytes)), read);
            Ok(())
        })
        .unwrap();
}

#[test]
fn tags_are_those_of_the_specification_and_all_differ() {
    assert_eq!(Tag::CommunityMembership as u8, 0x0E);
    assert_eq!(Tag::PurgeManifest as u8, 0x10);
    assert_eq!(Tag::CommunityLeave as u8, 0x11);
    let mut bytes: Vec<u8> = Tag::ALL.iter().map(|tag| *tag as u8).collect();
    assert!(bytes.is_sorted());
    bytes.dedup();
    assert_eq!(bytes.len(), Tag::ALL.len());
    for byte in 0..=u8::MAX {
        let tag = Tag::from_byte(byte);
        assert_eq!(tag.is_some(), bytes.contains(&byte));
        assert!(tag.is_none_or(|tag| tag as u8 == byte));
        assert!(byte >= 0x40 || tag.is_none() || [0x0E, 0x10, 0x11].contains(&byte));
    }
}
