//! The eight scenarios that the feature was specified with, under their names.

use tidegate::{CommunityMembership, MembershipStatus, Scope, TidalDb};

use crate::support::{cohort, community, profile, signal, views};

const USER: u64 = 42;
const OTHER: u64 = 43;
const ITEM: u64 = 7;

/// A store whose two users are in the cohort `young` and the community `film`.
fn store() -> TidalDb {
    let db = TidalDb::ephemeral().unwrap();
    set_up(&db);
    db
}

fn set_up(db: &TidalDb) {
    db.define_cohort("young", "age < 25").unwrap();
    for user_id in [USER, OTHER] {
        db.set_profile(user_id, &profile(&serde_json::json!({"age": 20})))
            .unwrap();
        db.join_community(user_id, "film").unwrap();
    }
}

#[test]
fn leave_stops_cohort_fanout() {
    let db = store();
    assert_eq!(signal(&db, USER, ITEM).cohorts, 1);
    db.leave_community_layer(USER).unwrap();

    let receipt = signal(&db, USER, ITEM);
    assert_eq!(receipt.cohorts, 0);
    assert!(receipt.gated);
    assert_eq!(views(&db, &cohort("young"), ITEM), 1);
    assert_eq!(
        views(&db, &Scope::Base, ITEM),
        2,
        "the base ledger is never gated"
    );

    let receipt = signal(&db, OTHER, ITEM);
    assert!(!receipt.gated, "others are not affected");
    assert_eq!(views(&db, &cohort("young"), ITEM), 2);
    assert_eq!(db.stats().gated_cohort_attribution, 1);
}

#[test]
fn join_resumes_cohort_fanout() {
    let db = store();
    db.leave_community_layer(USER).unwrap();
    signal(&db, USER, ITEM);
    db.rejoin_community_layer(USER).unwrap();

    let receipt = signal(&db, USER, ITEM);
    assert_eq!((receipt.cohorts, receipt.gated), (1, false));
    assert_eq!(
        views(&db, &cohort("young"), ITEM),
        1,
        "what was held back does not come later"
    );
}

#[test]
fn leave_is_idempotent() {
    let db = store();
    db.leave_community_layer(USER).unwrap();
    let first = db.community_layer_status(USER).unwrap();
    db.leave_community_layer(USER).unwrap();
    let second = db.community_layer_status(USER).unwrap();

    assert_eq!(second.status, MembershipStatus::Left);
    assert!(
        second.left_at_ns > first.left_at_ns,
        "a fresh boundary, never an earlier one"
    );
    assert!(signal(&db, USER, ITEM).gated);
    assert_eq!(db.stats().left_users, 1);
}

#[test]
fn status_query_lifecycle() {
    let db = store();
    let status = |db: &TidalDb| db.community_layer_status(USER).unwrap();
    let before = now_ns();
    assert_eq!(status(&db).status, MembershipStatus::Active);
    assert_eq!(status(&db).left_at_ns, None);

    db.leave_community_layer(USER).unwrap();
    let left = status(&db);
    assert_eq!((left.user_id, left.status), (USER, MembershipStatus::Left));
    let left_at_ns = left.left_at_ns.unwrap();
    assert!(before <= left_at_ns && left_at_ns <= now_ns());

    db.rejoin_community_layer(USER).unwrap();
    assert_eq!(status(&db).status, MembershipStatus::Active);

    let history = db.community_layer_history(USER).unwrap();
    let to: Vec<_> = history.iter().map(|transition| transition.to).collect();
    assert_eq!(to, [MembershipStatus::Left, MembershipStatus::Active]);
    assert_eq!(history[0].at_ns, left_at_ns);
    assert!(history[1].at_ns > left_at_ns);
}

#[test]
fn left_at_ns_preserved_on_rejoin() {
    let db = store();
    db.leave_community_layer(USER).unwrap();
    let left = db.community_layer_status(USER).unwrap();
    db.rejoin_community_layer(USER).unwrap();
    assert_eq!(
        db.community_layer_status(USER).unwrap(),
        CommunityMembership {
            status: MembershipStatus::Active,
            ..left
        }
    );
}

#[test]
fn durability_across_reopen() {
    let folder = tempfile::tempdir().unwrap();
    let (left, back, history) = {
        let db = TidalDb::open(folder.path()).unwrap();
        set_up(&db);
        db.leave_community_layer(USER).unwrap();
        db.leave_community_layer(OTHER).unwrap();
        db.rejoin_community_layer(OTHER).unwrap();
        signal(&db, OTHER, ITEM);
        (
            db.community_layer_status(USER).unwrap(),
            db.community_layer_status(OTHER).unwrap(),
            db.community_layer_history(OTHER).unwrap(),
        )
    };
    assert_eq!(left.status, MembershipStatus::Left);

    let db = TidalDb::open(folder.path()).unwrap();
    assert_eq!(db.community_layer_status(USER).unwrap(), left);
    assert_eq!(db.community_layer_status(OTHER).unwrap(), back);
    assert_eq!(db.community_layer_history(OTHER).unwrap(), history);
    assert_eq!(views(&db, &community("film"), ITEM), 1);

    let receipt = signal(&db, USER, ITEM);
    assert_eq!(
        (receipt.cohorts, receipt.communities, receipt.gated),
        (0, 0, true)
    );
    let receipt = signal(&db, OTHER, ITEM);
    assert_eq!(
        (receipt.cohorts, receipt.communities, receipt.gated),
        (1, 1, false)
    );
    let stats = db.stats();
    assert_eq!((stats.leaves, stats.rejoins, stats.left_users), (2, 1, 1));
    assert_eq!(stats.signals, 3);
}

#[test]
fn unknown_user_defaults_to_active() {
    let db = store();
    for user_id in [0, 1, (1 << 53) + 1, u64::MAX] {
        assert_eq!(
            db.community_layer_status(user_id).unwrap(),
            CommunityMembership {
                user_id,
                status: MembershipStatus::Active,
                left_at_ns: None,
            }
        );
        assert_eq!(db.community_layer_history(user_id).unwrap(), []);
        assert!(!signal(&db, user_id, ITEM).gated);
    }
}

#[test]
fn leave_stops_community_forwarding() {
    let db = store();
    assert_eq!(signal(&db, USER, ITEM).communities, 1);
    db.leave_community_layer(USER).unwrap();

    let receipt = signal(&db, USER, ITEM);
    assert_eq!((receipt.communities, receipt.gated), (0, true));
    assert_eq!(views(&db, &community("film"), ITEM), 1);
    assert_eq!(db.stats().gated_community_forwarding, 1);

    db.rejoin_community_layer(USER).unwrap();
    assert_eq!(signal(&db, USER, ITEM).communities, 1);
    assert_eq!(views(&db, &community("film"), ITEM), 2);
}

fn now_ns() -> u64 {
    let since_epoch = std::time::UNIX_EPOCH.elapsed().unwrap();
    u64::try_from(since_epoch.as_nanos()).unwrap()
}
