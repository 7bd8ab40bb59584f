//! Other rules in the place of the shipped ones: when a store is opened, and while it is in
//! use.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::json;
use tempfile::TempDir;
use tidegate::{Config, Error, FanOut, MembershipStatus, TidalDb};

use crate::support::component::from_text;
use crate::support::{cohort, community, profile, signal, views};

const LEFT: u64 = 42;
const REJOINED: u64 = 43;
/// One without a record.
const NEVER_LEFT: u64 = 44;
const USERS: [u64; 3] = [LEFT, REJOINED, NEVER_LEFT];

const COHORTS: FanOut = FanOut {
    cohort_attribution: true,
    community_forwarding: false,
};
const COMMUNITIES: FanOut = FanOut {
    cohort_attribution: false,
    community_forwarding: true,
};

/// Rules with the shipped record: what they let through for users who left and for active
/// ones, as the bits of the contract's flags.
fn rules(left: u8, active: u8) -> Vec<u8> {
    let shipped = "(select (i32.const 0) (i32.const 3) (local.get $status))";
    changed(
        shipped,
        &format!("(select (i32.const {left}) (i32.const {active}) (local.get $status))"),
    )
}

const COHORT_BIT: u8 = 1;
const COMMUNITY_BIT: u8 = 2;

/// Rules that read no record of a user who left.
fn rules_that_forget() -> Vec<u8> {
    changed(
        "(i32.lt_u (i32.load8_u (local.get $at)) (i32.const 2))",
        "(i32.eqz (i32.load8_u (local.get $at)))",
    )
}

fn changed(code: &str, other: &str) -> Vec<u8> {
    let honest = include_str!("hostile/honest.wat");
    assert_eq!(honest.matches(code).count(), 1);
    from_text(&honest.replace(code, other))
}

struct Setting {
    folder: TempDir,
}

impl Setting {
    /// A store under the shipped rules in which one user left, one left and came back, and
    /// one did neither. All are in a cohort and a community.
    fn new() -> Self {
        let setting = Setting {
            folder: tempfile::tempdir().unwrap(),
        };
        let db = TidalDb::open(setting.store()).unwrap();
        db.define_cohort("all", "true").unwrap();
        for user_id in USERS {
            db.set_profile(user_id, &profile(&json!({}))).unwrap();
            db.join_community(user_id, "film").unwrap();
        }
        db.leave_community_layer(LEFT).unwrap();
        db.leave_community_layer(REJOINED).unwrap();
        db.rejoin_community_layer(REJOINED).unwrap();
        setting
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    fn file(&self, name: &str, component: &[u8]) -> PathBuf {
        let file = self.folder.path().join(name);
        std::fs::write(&file, component).unwrap();
        file
    }

    fn open_with(&self, component: &[u8]) -> TidalDb {
        let file = self.file("rules.wasm", component);
        TidalDb::from_config(Config::new(self.store()).component(file)).unwrap()
    }
}

fn fan_outs(db: &TidalDb) -> [FanOut; 3] {
    USERS.map(|user_id| db.fan_out(user_id))
}

/// What shipped rules make of the three.
const SHIPPED: [FanOut; 3] = [FanOut::NONE, FanOut::ALL, FanOut::ALL];

#[test]
fn a_store_opened_with_other_rules_goes_by_their_policy_for_everybody() {
    let setting = Setting::new();
    // The policies, and what they make of the three.
    for (left, active, expected) in [
        (COHORT_BIT, 3, [COHORTS, FanOut::ALL, FanOut::ALL]),
        (0, COMMUNITY_BIT, [FanOut::NONE, COMMUNITIES, COMMUNITIES]),
        (3, 0, [FanOut::ALL, FanOut::NONE, FanOut::NONE]),
    ] {
        let db = setting.open_with(&rules(left, active));
        assert_eq!(fan_outs(&db), expected);
        assert!(db.verify().unwrap().is_clean());
    }
    let db = setting.open_with(&rules(COHORT_BIT, 3));
    let receipt = signal(&db, LEFT, 7);
    assert_eq!((receipt.cohorts, receipt.communities), (1, 0));
    assert!(receipt.gated);
    assert_eq!(views(&db, &cohort("all"), 7), 1);
    assert_eq!(views(&db, &community("film"), 7), 0);
    // The transitions go by the policy too.
    db.leave_community_layer(NEVER_LEFT).unwrap();
    assert_eq!(db.fan_out(NEVER_LEFT), COHORTS);
    drop(db);
    assert_eq!(
        fan_outs(&TidalDb::open(setting.store()).unwrap()),
        [FanOut::NONE, FanOut::ALL, FanOut::NONE]
    );
}

#[test]
fn a_store_opened_with_rules_that_cannot_read_some_records_shuts_those_users() {
    let setting = Setting::new();
    let db = setting.open_with(&rules_that_forget());
    assert_eq!(fan_outs(&db), SHIPPED);
    assert_eq!(db.stats().malformed_records, 1);
    assert_eq!(db.verify().unwrap().malformed, [LEFT]);
    assert!(matches!(
        db.community_layer_status(LEFT),
        Err(Error::MalformedRecord { user_id: LEFT, .. })
    ));
    drop(db);
    // Nothing was written that the shipped rules could not read.
    let db = TidalDb::open(setting.store()).unwrap();
    let status = db.community_layer_status(LEFT).unwrap().status;
    assert_eq!(status, MembershipStatus::Left);
    assert!(db.verify().unwrap().is_clean());
}

#[test]
fn the_rules_of_an_open_store_can_be_exchanged_and_back() {
    let setting = Setting::new();
    let db = TidalDb::open(setting.store()).unwrap();
    let statuses = USERS.map(|user_id| db.community_layer_status(user_id).unwrap());

    let cohorts_stay = setting.file("cohorts.wasm", &rules(COHORT_BIT, COMMUNITY_BIT));
    assert_eq!(db.swap_component(&cohorts_stay).unwrap(), 0);
    assert_eq!(fan_outs(&db), [COHORTS, COMMUNITIES, COMMUNITIES]);
    assert_eq!(signal(&db, LEFT, 7).cohorts, 1);

    // A transition goes by the new rules.
    db.leave_community_layer(REJOINED).unwrap();
    assert_eq!(db.fan_out(REJOINED), COHORTS);
    db.rejoin_community_layer(REJOINED).unwrap();
    assert!(db.verify().unwrap().is_clean());

    // Rules that can't read a record shut the gate of its user, and only that one's.
    let forgetful = setting.file("forgetful.wasm", &rules_that_forget());
    assert_eq!(db.swap_component(&forgetful).unwrap(), 1);
    assert_eq!(fan_outs(&db), SHIPPED);
    assert_eq!(db.verify().unwrap().malformed, [LEFT]);

    let shipped = setting.file("shipped.wasm", tidegate::SHIPPED_COMPONENT);
    assert_eq!(db.swap_component(&shipped).unwrap(), 0);
    assert_eq!(fan_outs(&db), SHIPPED);
    assert!(db.verify().unwrap().is_clean());
    for (user_id, before) in USERS.into_iter().zip(statuses) {
        let now = db.community_layer_status(user_id).unwrap();
        assert_eq!(now.status, before.status);
    }
}

#[test]
fn rules_that_do_not_fit_or_fail_are_not_taken() {
    let setting = Setting::new();
    let db = TidalDb::open(setting.store()).unwrap();
    let core_module = wat::parse_str("(module)").unwrap();
    for (component, failure) in [
        (b"(component)".to_vec(), "can't be used"),
        (core_module, "can't be used"),
        (changed("(;signal;)", "unreachable"), "failed in `signal`"),
        (changed("(;restore;)", "unreachable"), "failed in `restore`"),
    ] {
        let file = setting.file("unfit.wasm", &component);
        let error = db.swap_component(&file).unwrap_err().to_string();
        assert!(error.contains(failure), "{error}");
        assert_eq!(fan_outs(&db), SHIPPED, "nothing has changed");
        assert!(db.verify().unwrap().is_clean());
    }
    let error = db.swap_component("missing.wasm").unwrap_err().to_string();
    assert!(error.contains("`missing.wasm`"), "{error}");
}

/// One policy lets cohorts gain, the other communities: whatever the moment, no user is
/// let through to both.
#[test]
fn while_two_policies_meet_nothing_passes_that_one_holds_back() {
    let setting = Setting::new();
    let db = TidalDb::open(setting.store()).unwrap();
    let policies = [
        setting.file("cohorts.wasm", &rules(0, COHORT_BIT)),
        setting.file("communities.wasm", &rules(0, COMMUNITY_BIT)),
    ];
    db.swap_component(&policies[1]).unwrap();
    let stop = AtomicBool::new(false);
    let look = || {
        let (mut seen, mut looks) = ([false; 2], 0);
        while !stop.load(Ordering::Relaxed) {
            for user_id in [REJOINED, NEVER_LEFT] {
                let fan_out = db.fan_out(user_id);
                assert_ne!(fan_out, FanOut::ALL);
                seen[0] |= fan_out == COHORTS;
                seen[1] |= fan_out == COMMUNITIES;
            }
            assert_eq!(db.fan_out(LEFT), FanOut::NONE);
            looks += 1;
        }
        (seen, looks)
    };
    thread::scope(|scope| {
        let looking = scope.spawn(look);
        for _ in 0..50 {
            for (policy, expected) in policies.iter().zip([COHORTS, COMMUNITIES]) {
                let swapped = db.swap_component(policy);
                let fan_outs = fan_outs(&db);
                if swapped.is_err() || fan_outs != [FanOut::NONE, expected, expected] {
                    stop.store(true, Ordering::Relaxed);
                    panic!("{swapped:?} {fan_outs:?}");
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        let (seen, looks) = looking.join().unwrap();
        assert_eq!(seen, [true; 2], "in {looks} looks");
    });
}
