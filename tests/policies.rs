//! Other rules in the place of the shipped ones: when a store is opened, and while it is in
//! use.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use tidegate::{Config, Error, FanOut, MembershipStatus, TidalDb};

use crate::support::component::from_text;
use crate::support::faults::{Fault, Machine};
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

/// One policy lets cohorts gain, the other communities. While the rules are exchanged, no
/// user is let through by the second as long as another is by the first, so that together
/// they never give more than both policies do.
#[test]
fn while_two_policies_meet_nothing_passes_that_one_holds_back() {
    let setting = Setting::new();
    let db = TidalDb::open(setting.store()).unwrap();
    // Enough for the exchange to take a while.
    for user_id in 1_000..1_200 {
        db.leave_community_layer(user_id).unwrap();
        db.rejoin_community_layer(user_id).unwrap();
    }
    let policies = [
        setting.file("cohorts.wasm", &rules(0, COHORT_BIT)),
        setting.file("communities.wasm", &rules(0, COMMUNITY_BIT)),
    ];
    let fan_outs_of = [COHORTS, COMMUNITIES];
    db.swap_component(&policies[1]).unwrap();
    // How many exchanges have begun or ended: odd while there is one.
    let exchanges = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let look = |users: [u64; 2]| {
        let mut seen = [0; 3];
        while !stop.load(Ordering::SeqCst) {
            let before = exchanges.load(Ordering::SeqCst);
            let found = users.map(|user_id| db.fan_out(user_id));
            assert_eq!(db.fan_out(LEFT), FanOut::NONE);
            assert!(!found.contains(&FanOut::ALL));
            let is_one_exchange = before % 2 == 1 && exchanges.load(Ordering::SeqCst) == before;
            if !is_one_exchange {
                continue;
            }
            // The first begins with 1 and goes to the first policy.
            let new = fan_outs_of[before / 2 % 2];
            let old = fan_outs_of[1 - before / 2 % 2];
            assert!(
                found != [new, old],
                "a user has the new policy while another has the old one"
            );
            seen[0] += u32::from(found[0] == old);
            seen[1] += u32::from(found[0] == FanOut::NONE);
            seen[2] += u32::from(found[0] == new);
        }
        seen
    };
    thread::scope(|scope| {
        let looking = scope.spawn(|| look([1_100, NEVER_LEFT]));
        for _ in 0..50 {
            for (policy, expected) in policies.iter().zip(fan_outs_of) {
                exchanges.fetch_add(1, Ordering::SeqCst);
                let swapped = db.swap_component(policy);
                exchanges.fetch_add(1, Ordering::SeqCst);
                let fan_outs = fan_outs(&db);
                if swapped.is_err() || fan_outs != [FanOut::NONE, expected, expected] {
                    stop.store(true, Ordering::SeqCst);
                    panic!("{swapped:?} {fan_outs:?}");
                }
            }
        }
        stop.store(true, Ordering::SeqCst);
        let seen = looking.join().unwrap();
        assert!(seen[0] > 0, "nobody looked: {seen:?}");
    });
}

/// Whoever's leave failed is shut, whatever the new policy would give.
#[test]
fn an_exchange_of_rules_does_not_open_the_gate_of_a_failed_leave() {
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine::default();
    let config = Config::new(folder.path())
        .flush_every(Duration::from_hours(1))
        .engine(Arc::new(machine.clone()))
        .disk(Arc::new(machine.clone()));
    let db = TidalDb::from_config(config).unwrap();
    machine.plan(0, Fault::Before);
    db.leave_community_layer(LEFT).unwrap_err();
    machine.heal();
    let file = folder.path().join("all.wasm");
    std::fs::write(&file, rules(3, 3)).unwrap();
    db.swap_component(&file).unwrap();
    assert_eq!(db.fan_out(LEFT), FanOut::NONE);
    assert_eq!(db.fan_out(NEVER_LEFT), FanOut::ALL);
    db.leave_community_layer(LEFT).unwrap();
    assert_eq!(db.fan_out(LEFT), FanOut::ALL, "the new policy is in force");
}
