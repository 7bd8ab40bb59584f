//! Whether a component does what the contract says, whatever its policy and its record:
//! the promises of `wit/membership.wit` tried on memberships and bytes that are at the edge
//! of something; and each function asked once more in another instance, in the opposite
//! order.

use std::iter;

use super::{MAX_RECORD_BYTES, RESTORE_BATCH, Rules, StoredRecords};
use crate::error::{Error, Result};
use crate::membership::{CommunityMembership, FanOut, MembershipStatus};

/// 2^53 + 1 is the first number that a double-precision float can't hold.
const USERS: [u64; 5] = [0, 1, 42, (1 << 53) + 1, u64::MAX];
const INSTANTS_NS: [u64; 6] = [
    1,
    255,
    256,
    1_700_000_000_000_000_000,
    (1 << 53) + 1,
    u64::MAX,
];

/// In how many places a record is changed to see whether that is noticed.
const MAX_CHANGED_PLACES: usize = 16;

/// The first check.
const FITS: &str = "it imports nothing and exports the interface";

/// One promise of the contract, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was tried, in a few words.
    pub name: &'static str,
    /// What the component did instead; `None` if it kept the promise.
    pub failure: Option<String>,
}

/// Tries what the contract promises of a component of rules. The first check is whether it
/// can be loaded; if not, it is the only one.
///
/// ```
/// let checks = tidegate::check_component(tidegate::SHIPPED_COMPONENT);
/// assert!(checks.iter().all(|check| check.failure.is_none()));
/// ```
pub fn check_component(bytes: &[u8]) -> Vec<Check> {
    let loaded = Rules::load(bytes, "to check", None);
    let check = |name, outcome: Result<()>| Check {
        name,
        failure: outcome.err().map(|error| match error {
            Error::ComponentRefused { reason, .. } => reason,
            other => other.to_string(),
        }),
    };
    let rules = match loaded {
        Ok(rules) => rules,
        Err(error) => return vec![check(FITS, Err(error))],
    };
    vec![
        check(FITS, Ok(())),
        check("a user without a record is active", without_record(&rules)),
        check("leaving sets the later boundary", leaving(&rules)),
        check("rejoining keeps the boundary", rejoining(&rules)),
        check("records read back as what was written", round_trip(&rules)),
        check(
            "other bytes are refused, or are a record",
            other_bytes(&rules),
        ),
        check("restore says what status and signal say", restoring(&rules)),
        check("all users who never left may do the same", policy(&rules)),
        check(
            "another instance says the same",
            Rules::load(bytes, "to check", None).and_then(|other| purity(&rules, &other)),
        ),
    ]
}

/// Memberships of both standings, with and without a boundary.
fn memberships() -> impl Iterator<Item = CommunityMembership> + Clone {
    let instants = || iter::once(None).chain(INSTANTS_NS.map(Some));
    USERS.into_iter().flat_map(move |user_id| {
        [MembershipStatus::Active, MembershipStatus::Left]
            .into_iter()
            .flat_map(move |status| {
                instants().map(move |left_at_ns| CommunityMembership {
                    user_id,
                    status,
                    left_at_ns,
                })
            })
    })
}

fn without_record(rules: &Rules) -> Result<()> {
    for user_id in USERS {
        let found = rules.status(user_id, None)?;
        let expected = CommunityMembership::never_left(user_id);
        expect("status", &found, &expected, "a user without a record")?;
    }
    Ok(())
}

fn leaving(rules: &Rules) -> Result<()> {
    for membership in memberships() {
        for now_ns in iter::once(0).chain(INSTANTS_NS) {
            // That the result is right is checked there.
            rules.leave(&membership, now_ns)?;
        }
    }
    Ok(())
}

fn rejoining(rules: &Rules) -> Result<()> {
    for membership in memberships() {
        rules.rejoin(&membership)?;
    }
    Ok(())
}

fn round_trip(rules: &Rules) -> Result<()> {
    for membership in memberships() {
        // That `status` reads it back is checked there.
        let record = rules.record(&membership)?;
        let read = rules.deserialize(membership.user_id, &record)?;
        expect(
            "deserialize-membership",
            &read,
            &Some(membership),
            "its own record",
        )?;
    }
    Ok(())
}

/// Bytes near the records of some memberships, and bytes that are far from any.
fn bytes(rules: &Rules) -> Result<Vec<Vec<u8>>> {
    let mut bytes: Vec<Vec<u8>> = vec![vec![]];
    for filler in [0, 1, 0xff] {
        bytes
            .extend([1, 8, 9, 10, MAX_RECORD_BYTES, MAX_RECORD_BYTES + 1].map(|n| vec![filler; n]));
    }
    for membership in memberships().filter(|membership| membership.user_id == 42) {
        let record = rules.record(&membership)?;
        bytes.push(record[..record.len() - 1].to_vec());
        bytes.push([&record[..], &[0]].concat());
        for at in (0..record.len()).step_by(record.len().div_ceil(MAX_CHANGED_PLACES)) {
            let mut changed = record.clone();
            changed[at] ^= 0xff;
            bytes.push(changed);
        }
        bytes.push(record);
    }
    Ok(bytes)
}

fn other_bytes(rules: &Rules) -> Result<()> {
    for bytes in bytes(rules)? {
        let read = rules.read(42, &bytes)?;
        let what = format!("the bytes {bytes:02x?}");
        expect(
            "deserialize-membership",
            &rules.deserialize(42, &bytes)?,
            &read,
            &what,
        )?;
        if let Some(membership) = read {
            let written = rules.record(&membership)?;
            expect("serialize-membership", &written, &bytes, &what)?;
        }
    }
    Ok(())
}

fn restoring(rules: &Rules) -> Result<()> {
    let mut stored = StoredRecords::default();
    let mut expected = Vec::new();
    expect_restored(rules, &stored, &expected, "no records")?;
    for (user_id, bytes) in USERS.into_iter().cycle().zip(bytes(rules)?) {
        stored.push(user_id, &bytes);
        expected.push(match rules.read(user_id, &bytes)? {
            Some(membership) => Some((membership, rules.fan_out(&membership)?)),
            None => None,
        });
    }
    expect_restored(rules, &stored, &expected, "records and other bytes in turn")?;

    // The last one is a record, and its length or its last byte is missing.
    if let Some(last) = expected.last_mut() {
        *last = None;
    }
    let length = stored.lengths.pop();
    expect_restored(rules, &stored, &expected, "a record without a length")?;
    stored.lengths.extend(length);
    stored.bytes.pop();
    expect_restored(rules, &stored, &expected, "a record that is cut off")?;
    unequal_columns(rules)?;
    full_batch(rules)
}

/// Lengths and bytes for more users than there are, and records behind one that claims more
/// than all bytes: where those begin is not known.
fn unequal_columns(rules: &Rules) -> Result<()> {
    let membership = CommunityMembership::never_left(42);
    let (record, fan_out) = (rules.record(&membership)?, rules.fan_out(&membership)?);
    let mut stored = StoredRecords::default();
    stored.push(42, &record);
    stored.lengths.extend([1, 0, 2]);
    stored.bytes.extend([0; 3]);
    let expected = [Some((membership, fan_out))];
    expect_restored(rules, &stored, &expected, "more records than users")?;

    stored.clear();
    for _ in 0..3 {
        stored.push(42, &record);
    }
    stored.lengths[0] = u32::MAX;
    expect_restored(rules, &stored, &[None; 3], "records, the first cut off")
}

/// As many records as the host hands over at once.
fn full_batch(rules: &Rules) -> Result<()> {
    let mut stored = StoredRecords::default();
    let mut expected = Vec::new();
    for (user_id, membership) in (0..).zip(memberships().cycle().take(RESTORE_BATCH)) {
        let membership = CommunityMembership {
            user_id,
            ..membership
        };
        stored.push(user_id, &rules.record(&membership)?);
        expected.push(Some((membership, rules.fan_out(&membership)?)));
    }
    expect_restored(rules, &stored, &expected, "a full batch of records")
}

fn expect_restored(
    rules: &Rules,
    stored: &StoredRecords,
    expected: &[Option<(CommunityMembership, FanOut)>],
    what: &str,
) -> Result<()> {
    let restored = rules.restore(stored)?;
    for (number, (found, expected)) in restored.iter().zip(expected).enumerate() {
        let what = format!("entry {number} of {what}");
        expect("restore", found, expected, &what)?;
    }
    Ok(())
}

fn policy(rules: &Rules) -> Result<()> {
    let of = |user_id| rules.fan_out(&CommunityMembership::never_left(user_id));
    let expected = of(0)?;
    for user_id in USERS {
        expect(
            "signal",
            &of(user_id)?,
            &expected,
            &format!("user {user_id}"),
        )?;
    }
    Ok(())
}

/// What the functions say of memberships, their records and other bytes, in another
/// instance, the last one first.
fn purity(rules: &Rules, other: &Rules) -> Result<()> {
    let memberships: Vec<_> = memberships().collect();
    let both = (rules, other);
    expect_same("leave", both, &memberships, |rules, membership| {
        rules.leave(membership, INSTANTS_NS[0])
    })?;
    expect_same("rejoin", both, &memberships, Rules::rejoin)?;
    expect_same("serialize-membership", both, &memberships, Rules::record)?;
    expect_same("signal", both, &memberships, Rules::fan_out)?;
    let bytes = bytes(rules)?;
    expect_same("status", both, &bytes, |rules, bytes| rules.read(42, bytes))?;
    expect_same("deserialize-membership", both, &bytes, |rules, bytes| {
        rules.deserialize(42, bytes)
    })?;
    expect_same("restore", both, &bytes, |rules, bytes| {
        let mut stored = StoredRecords::default();
        stored.push(42, bytes);
        rules.restore(&stored)
    })
}

fn expect_same<I: std::fmt::Debug, T: PartialEq + std::fmt::Debug>(
    function: &'static str,
    (rules, other): (&Rules, &Rules),
    inputs: &[I],
    says: impl Fn(&Rules, &I) -> Result<T>,
) -> Result<()> {
    // That a call fails, or breaks another promise, is for the other checks to tell.
    let expected: Vec<Option<T>> = (inputs.iter().map(|input| says(rules, input).ok())).collect();
    for (input, expected) in inputs.iter().zip(&expected).rev() {
        let found = says(other, input).ok();
        let what = format!("{input:?}, in another instance,");
        expect(function, &found, expected, &what)?;
    }
    Ok(())
}

fn expect<T: PartialEq + std::fmt::Debug>(
    function: &'static str,
    found: &T,
    expected: &T,
    what: &str,
) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::ComponentFailed {
        function,
        reason: format!("for {what} it returned {found:?}, and {expected:?} was expected"),
    })
}
