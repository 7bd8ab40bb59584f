//! The golden vectors, run against the native rules and against the component.
//!
//! `vectors/membership.json` is written by `vectors/generate.py` from the text of
//! the contract, not from what the rules return.

use serde::Deserialize;
use tidegate_membership::policy::{FanOut, Membership, Status};

use crate::support::rules::{Native, Rules, shipped};

#[derive(Deserialize)]
struct Vectors {
    without_record: Vec<Standing>,
    serde: Vec<Serde>,
    leave: Vec<Leave>,
    rejoin: Vec<Rejoin>,
    signal: Vec<Signal>,
    malformed: Vec<String>,
}

#[derive(Deserialize)]
struct Standing {
    user_id: String,
    status: String,
    left_at_ns: Option<String>,
}

#[derive(Deserialize)]
struct Serde {
    membership: Standing,
    bytes: String,
}

#[derive(Deserialize)]
struct Leave {
    current: Standing,
    now: String,
    result: Standing,
}

#[derive(Deserialize)]
struct Rejoin {
    current: Standing,
    result: Standing,
}

#[derive(Deserialize)]
struct Signal {
    current: Standing,
    fan_out: Vec<String>,
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("vectors/membership.json")).unwrap()
}

impl Standing {
    fn membership(&self) -> Membership {
        Membership {
            user_id: self.user_id.parse().unwrap(),
            status: match self.status.as_str() {
                "active" => Status::Active,
                "left" => Status::Left,
                unknown => panic!("unknown status {unknown}"),
            },
            left_at_ns: self.left_at_ns.as_ref().map(|ns| ns.parse().unwrap()),
        }
    }
}

impl Signal {
    fn fan_out(&self) -> FanOut {
        let open = |way: &str| self.fan_out.iter().any(|open| open == way);
        FanOut {
            cohort_attribution: open("cohort-attribution"),
            community_forwarding: open("community-forwarding"),
        }
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

fn check(rules: &mut impl Rules) {
    let vectors = vectors();
    for expected in &vectors.without_record {
        let expected = expected.membership();
        assert_eq!(rules.status(expected.user_id, None), Some(expected));
    }
    for vector in &vectors.serde {
        let (membership, bytes) = (vector.membership.membership(), bytes(&vector.bytes));
        assert_eq!(rules.serialize(membership), bytes);
        let user_id = membership.user_id;
        assert_eq!(rules.deserialize(user_id, &bytes), Some(membership));
        assert_eq!(rules.status(user_id, Some(&bytes)), Some(membership));
    }
    for vector in &vectors.leave {
        let result = rules.leave(vector.current.membership(), vector.now.parse().unwrap());
        assert_eq!(result, vector.result.membership());
    }
    for vector in &vectors.rejoin {
        let result = rules.rejoin(vector.current.membership());
        assert_eq!(result, vector.result.membership());
    }
    for vector in &vectors.signal {
        assert_eq!(rules.signal(vector.current.membership()), vector.fan_out());
    }
    for hex in &vectors.malformed {
        let bytes = bytes(hex);
        assert_eq!(rules.deserialize(42, &bytes), None, "{hex}");
        assert_eq!(rules.status(42, Some(&bytes)), None, "{hex}");
    }
    check_restore(rules, &vectors);
}

/// All records of the vectors in one call, the malformed ones between the others.
fn check_restore(rules: &mut impl Rules, vectors: &Vectors) {
    let open = |membership: &Membership| {
        let open = membership.status == Status::Active;
        FanOut {
            cohort_attribution: open,
            community_forwarding: open,
        }
    };
    let good = vectors.serde.iter().map(|vector| {
        let membership = vector.membership.membership();
        (bytes(&vector.bytes), Some((membership, open(&membership))))
    });
    let malformed = vectors.malformed.iter().map(|hex| (bytes(hex), None));
    let (mut users, mut lengths, mut column, mut expected) = (vec![], vec![], vec![], vec![]);
    for (bytes, entry) in malformed.zip(good).flat_map(|(left, right)| [left, right]) {
        users.push(entry.map_or(42, |(membership, _)| membership.user_id));
        lengths.push(u32::try_from(bytes.len()).unwrap());
        column.extend(bytes);
        expected.push(entry);
    }
    assert!(expected.len() > 20);
    assert_eq!(rules.restore(&users, &lengths, &column), expected);

    // One byte short: the last record, which is a good one, is cut off.
    column.pop();
    *expected.last_mut().unwrap() = None;
    assert_eq!(rules.restore(&users, &lengths, &column), expected);
}

#[test]
fn the_native_rules_agree_with_the_contract() {
    check(&mut Native);
}

#[test]
fn the_component_agrees_with_the_contract() {
    check(&mut shipped());
}
