//! The ledger: sums that are exact, whole signals, cohorts and communities as they
//! change, and what storage has after a flush.

use std::time::Duration;

use serde_json::json;
use tidegate::{Aggregate, Config, Error, Scope, Signal, TidalDb};

use crate::support::{cohort, community, profile, signal, view, views};

#[test]
fn sums_do_not_depend_on_threads() {
    let db = TidalDb::ephemeral().unwrap();
    for user_id in 0..8 {
        db.join_community(user_id, "all").unwrap();
    }
    std::thread::scope(|scope| {
        for user_id in 0..8 {
            let db = &db;
            scope.spawn(move || {
                for _ in 0..5_000 {
                    let signal = Signal {
                        item_id: 1,
                        kind: "rating",
                        weight: 0.1,
                    };
                    db.signal_with_context(user_id, &signal).unwrap();
                }
            });
        }
    });
    // 40,000 tenths: 4,000 exactly, which floating point would miss.
    let expected = Aggregate {
        count: 40_000,
        weight: 4_000.0,
    };
    assert_eq!(db.aggregate(&Scope::Base, 1, "rating").unwrap(), expected);
    assert_eq!(
        db.aggregate(&community("all"), 1, "rating").unwrap(),
        expected
    );
    db.flush().unwrap();
    assert_eq!(
        db.aggregate(&community("all"), 1, "rating").unwrap(),
        expected
    );
    assert_eq!(db.stats().community_contributions, 40_000);
}

#[test]
fn an_invalid_signal_has_no_effect() {
    let db = TidalDb::ephemeral().unwrap();
    let long = "k".repeat(65);
    for (kind, weight) in [
        ("", 1.0),
        (long.as_str(), 1.0),
        ("view", f64::NAN),
        ("view", f64::INFINITY),
        ("view", 1.000_000_1e9),
    ] {
        let signal = Signal {
            item_id: 1,
            kind,
            weight,
        };
        assert!(matches!(
            db.signal_with_context(1, &signal),
            Err(Error::InvalidSignal { .. })
        ));
    }
    assert_eq!(db.stats().signals, 0);
    assert_eq!(db.top(&Scope::Base, None, 10).unwrap(), []);

    let longest = "k".repeat(64);
    for weight in [1e9, -1e9] {
        let signal = Signal {
            item_id: 1,
            kind: &longest,
            weight,
        };
        db.signal_with_context(1, &signal).unwrap();
    }
    let expected = Aggregate {
        count: 2,
        weight: 0.0,
    };
    assert_eq!(db.aggregate(&Scope::Base, 1, &longest).unwrap(), expected);
}

#[test]
fn top_is_by_weight_then_item_then_kind_and_sees_what_is_not_flushed() {
    let db = TidalDb::ephemeral().unwrap();
    let add = |item_id, kind, weight| {
        let signal = Signal {
            item_id,
            kind,
            weight,
        };
        db.signal_with_context(1, &signal).unwrap();
    };
    add(3, "view", 2.0);
    add(1, "view", 1.0);
    db.flush().unwrap();
    add(2, "like", 2.0);
    add(1, "view", 1.0);
    add(1, "like", -5.0);
    let rows = |kind, limit| -> Vec<(u64, String, u64, f64)> {
        let rows = db.top(&Scope::Base, kind, limit).unwrap();
        rows.into_iter()
            .map(|row| (row.item_id, row.kind, row.count, row.weight))
            .collect()
    };
    let all = [
        (1, "view".to_owned(), 2, 2.0),
        (2, "like".to_owned(), 1, 2.0),
        (3, "view".to_owned(), 1, 2.0),
        (1, "like".to_owned(), 1, -5.0),
    ];
    assert_eq!(rows(None, 10), all);
    assert_eq!(rows(None, 2), all[..2]);
    assert_eq!(rows(Some("like"), 10), [all[1].clone(), all[3].clone()]);
}

#[test]
fn cohorts_follow_profiles_and_predicates() {
    let db = TidalDb::ephemeral().unwrap();
    let age = |user_id, age: u64| {
        db.set_profile(user_id, &profile(&json!({ "age": age })))
            .unwrap();
    };
    age(1, 20);
    db.define_cohort("young", "age < 25").unwrap();
    assert_eq!(signal(&db, 1, 7).cohorts, 1, "profiles from before count");
    age(2, 24);
    assert_eq!(signal(&db, 2, 7).cohorts, 1);
    age(1, 30);
    assert_eq!(
        signal(&db, 1, 7).cohorts,
        0,
        "another profile, another cohort"
    );
    db.define_cohort("young", "age < 22").unwrap();
    assert_eq!(
        signal(&db, 2, 7).cohorts,
        0,
        "another predicate, other members"
    );
    assert_eq!(views(&db, &cohort("young"), 7), 2, "what was gained stays");
    assert_eq!(db.cohorts(), [("young".to_owned(), "age < 22".to_owned())]);

    assert!(matches!(
        db.define_cohort("young", "age <"),
        Err(Error::InvalidPredicate { .. })
    ));
    assert_eq!(db.cohorts()[0].1, "age < 22");
}

#[test]
fn communities_are_joined_and_quit() {
    let db = TidalDb::ephemeral().unwrap();
    assert_eq!(signal(&db, 1, 7).communities, 0);
    db.join_community(1, "film").unwrap();
    db.join_community(1, "film").unwrap();
    db.join_community(1, "music").unwrap();
    assert_eq!(
        signal(&db, 1, 7).communities,
        2,
        "joining twice counts once"
    );
    db.quit_community(1, "film").unwrap();
    assert_eq!(signal(&db, 1, 7).communities, 1);
    assert_eq!(views(&db, &community("film"), 7), 1);
    assert_eq!(views(&db, &community("music"), 7), 2);
    assert_eq!(db.communities(), ["film", "music"]);

    db.quit_community(2, "film").unwrap();
    assert!(matches!(
        db.quit_community(1, "books"),
        Err(Error::NotFound {
            what: "community",
            ..
        })
    ));
    for name in ["", "a\nb", &"n".repeat(65)] {
        assert!(matches!(
            db.join_community(1, name),
            Err(Error::InvalidArgument { .. })
        ));
    }
}

#[test]
fn a_cohort_and_a_community_of_one_name_are_two_scopes() {
    let db = TidalDb::ephemeral().unwrap();
    db.set_profile(1, &profile(&json!({"age": 20}))).unwrap();
    db.define_cohort("film", "true").unwrap();
    signal(&db, 1, 7);
    db.join_community(1, "film").unwrap();
    signal(&db, 1, 7);
    assert_eq!(views(&db, &cohort("film"), 7), 2);
    assert_eq!(views(&db, &community("film"), 7), 1);
    assert!(matches!(
        db.aggregate(&cohort("music"), 7, "view"),
        Err(Error::NotFound { what: "cohort", .. })
    ));
}

#[test]
fn everything_is_there_after_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let expected = {
        let db = TidalDb::open(folder.path()).unwrap();
        db.define_cohort("young", "age < 25").unwrap();
        db.set_profile(1, &profile(&json!({"age": 20}))).unwrap();
        db.join_community(1, "film").unwrap();
        db.leave_community_layer(2).unwrap();
        for item_id in 0..100 {
            signal(&db, 1, item_id % 7);
            signal(&db, 2, item_id % 5);
        }
        db.count_rejected();
        let tops = [Scope::Base, cohort("young"), community("film")]
            .map(|scope| db.top(&scope, None, 100).unwrap());
        (db.stats(), tops, db.cohorts(), db.communities())
    };
    let db = TidalDb::open(folder.path()).unwrap();
    let tops = [Scope::Base, cohort("young"), community("film")]
        .map(|scope| db.top(&scope, None, 100).unwrap());
    assert_eq!((db.stats(), tops, db.cohorts(), db.communities()), expected);
    assert_eq!(db.stats().signals, 200);
    assert_eq!(db.stats().rejected, 1);
    assert_eq!(signal(&db, 1, 7).cohorts, 1);
}

#[test]
fn signals_are_written_behind() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config::new(folder.path()).flush_every(Duration::from_millis(20));
    let db = TidalDb::from_config(config).unwrap();
    let empty = folder_bytes(folder.path());
    for item_id in 0..2_000 {
        db.signal_with_context(1, &view(item_id)).unwrap();
    }
    // Nobody flushes; the files change all the same.
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while folder_bytes(folder.path()) == empty {
        assert!(std::time::Instant::now() < deadline, "nothing was written");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn folder_bytes(store: &std::path::Path) -> Vec<u8> {
    std::fs::read(store.join("sled").join("db")).unwrap()
}

/// sled keeps large nodes in files of their own, which nothing syncs.
#[test]
fn the_largest_values_stay_in_the_file_that_is_synced() {
    let folder = tempfile::tempdir().unwrap();
    let db = TidalDb::open(folder.path()).unwrap();
    let text = "x".repeat(tidegate::MAX_PROFILE_BYTES - 11);
    for user_id in 0..300 {
        db.set_profile(user_id, &profile(&json!({ "text": text })))
            .unwrap();
        db.leave_community_layer(user_id).unwrap();
    }
    let kind = "k".repeat(tidegate::MAX_KIND_BYTES);
    for item_id in 0..20_000 {
        let signal = Signal {
            item_id,
            kind: &kind,
            weight: 1.0,
        };
        db.signal_with_context(1, &signal).unwrap();
    }
    db.flush().unwrap();
    let too_long = profile(&json!({ "text": format!("{text}x") }));
    assert!(matches!(
        db.set_profile(1, &too_long),
        Err(Error::InvalidArgument {
            what: "profile",
            ..
        })
    ));
    let blobs = std::fs::read_dir(folder.path().join("sled/blobs")).unwrap();
    assert_eq!(blobs.count(), 0);
}

#[test]
fn a_profile_nested_deeper_than_it_could_be_read_again_is_refused() {
    let db = TidalDb::ephemeral().unwrap();
    let mut deep = json!(1);
    for _ in 0..200 {
        deep = json!([deep]);
    }
    assert!(matches!(
        db.set_profile(1, &profile(&json!({ "deep": deep }))),
        Err(Error::InvalidArgument {
            what: "profile",
            ..
        })
    ));
    db.define_cohort("all", "true").unwrap();
}
