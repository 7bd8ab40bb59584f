//! Leave and rejoin against signals on other threads: nothing is forwarded between a
//! leave that has returned and the rejoin after it, and every stamp says so.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use serde_json::json;
use tidegate::{MembershipStatus, TidalDb, Transition};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::support::{cohort, community, profile, signal, views};

const ITEM: u64 = 7;

/// How much is going on: little, or for `TIDEGATE_STRESS_SECONDS` a lot.
struct Load {
    /// How many users come and go at a time.
    slots: usize,
    signallers: usize,
    rounds: u64,
    deadline: Option<Instant>,
}

impl Load {
    fn of_environment() -> Self {
        match std::env::var("TIDEGATE_STRESS_SECONDS") {
            Ok(seconds) => Load {
                slots: 10,
                signallers: 8,
                rounds: u64::MAX,
                deadline: Some(Instant::now() + Duration::from_secs(seconds.parse().unwrap())),
            },
            Err(_) => Load {
                slots: 4,
                signallers: 2,
                rounds: 40,
                deadline: None,
            },
        }
    }

    fn is_over(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| Instant::now() > deadline)
    }
}

/// A contribution to a shared aggregate, as the library reports it.
#[derive(Clone, Copy, Debug, Default)]
struct Forwarded {
    user_id: u64,
    at_ns: u64,
    scopes: u64,
}

impl Visit for Forwarded {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "user_id" => self.user_id = value,
            "at_ns" => self.at_ns = value,
            "cohorts" | "communities" => self.scopes += value,
            _ => {}
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

/// Collects what the library reports on one thread.
#[derive(Default)]
struct Collector {
    forwarded: Mutex<Vec<Forwarded>>,
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("tidegate")
    }

    fn event(&self, event: &Event<'_>) {
        let mut forwarded = Forwarded::default();
        event.record(&mut forwarded);
        if forwarded.scopes > 0 {
            self.forwarded.lock().unwrap().push(forwarded);
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// The users who come and go at present, one for each slot.
type Present = [AtomicU64];

fn user(slot: usize, round: u64) -> u64 {
    ((slot as u64) << 32) + round
}

/// Sends signals of all present users in turn until told to stop; returns those that a
/// community or a cohort gained.
fn send_signals(db: &TidalDb, present: &Present, stop: &AtomicBool) -> Vec<Forwarded> {
    let collector = Arc::new(Collector::default());
    tracing::subscriber::with_default(Arc::clone(&collector), || {
        while !stop.load(Ordering::Relaxed) {
            for user_id in present {
                signal(db, user_id.load(Ordering::Acquire), ITEM);
            }
        }
    });
    std::mem::take(&mut *collector.forwarded.lock().unwrap())
}

/// One user after the other comes, leaves, and rejoins; the slot's aggregates are
/// looked at while the user is away. Each user is new, so that most leaves are of users
/// of whom the gate knows nothing.
fn come_and_go(db: &TidalDb, load: &Load, slot: usize, present: &AtomicU64) {
    let scopes = [
        community(&format!("slot{slot}")),
        cohort(&format!("slot{slot}")),
    ];
    let gained = || scopes.each_ref().map(|scope| views(db, scope, ITEM));
    for round in (0..load.rounds).take_while(|_| !load.is_over()) {
        let user_id = user(slot, round);
        db.join_community(user_id, &format!("slot{slot}")).unwrap();
        db.set_profile(user_id, &profile(&json!({ "slot": slot })))
            .unwrap();
        present.store(user_id, Ordering::Release);
        let before = gained();
        // Until signals of this user flow; not always, to leave at other moments too.
        while round % 2 == 0 && gained() == before {
            std::thread::yield_now();
        }
        db.leave_community_layer(user_id).unwrap();
        let at_return = gained();
        std::thread::yield_now();
        assert!(signal(db, user_id, ITEM).gated);
        assert_eq!(
            gained(),
            at_return,
            "user {user_id}: gained after the leave had returned"
        );
        db.rejoin_community_layer(user_id).unwrap();
        std::thread::yield_now();
        db.leave_community_layer(user_id).unwrap();
        assert_eq!(
            gained(),
            gained(),
            "user {user_id}: gained after the second leave"
        );
    }
}

#[test]
fn nothing_is_forwarded_between_a_leave_and_the_next_rejoin() {
    let load = Load::of_environment();
    let db = TidalDb::ephemeral().unwrap();
    for slot in 0..load.slots {
        db.define_cohort(&format!("slot{slot}"), &format!("slot == {slot}"))
            .unwrap();
    }
    let present: Vec<AtomicU64> = (0..load.slots)
        .map(|slot| AtomicU64::new(user(slot, 0)))
        .collect();
    let stop = AtomicBool::new(false);
    let forwarded: Vec<Forwarded> = std::thread::scope(|scope| {
        let signallers: Vec<_> = (0..load.signallers)
            .map(|_| scope.spawn(|| send_signals(&db, &present, &stop)))
            .collect();
        let goers: Vec<_> = present
            .iter()
            .enumerate()
            .map(|(slot, present)| {
                let (db, load) = (&db, &load);
                scope.spawn(move || come_and_go(db, load, slot, present))
            })
            .collect();
        // A goer that found a violation has panicked; the signallers stop all the same.
        let goers: Vec<_> = goers.into_iter().map(ScopedJoinHandle::join).collect();
        stop.store(true, Ordering::Relaxed);
        let forwarded = signallers
            .into_iter()
            .flat_map(|signaller| signaller.join().unwrap())
            .collect();
        for goer in goers {
            goer.unwrap();
        }
        forwarded
    });
    let leaves = db.stats().leaves;
    println!("{leaves} leaves, {} contributions", forwarded.len());
    assert!(forwarded.len() as u64 * 4 >= leaves);

    let mut stamps: Vec<u64> = forwarded.iter().map(|forwarded| forwarded.at_ns).collect();
    stamps.sort_unstable();
    stamps.dedup();
    assert_eq!(
        stamps.len(),
        forwarded.len(),
        "the clock is strictly increasing"
    );

    let mut histories: BTreeMap<u64, Vec<Transition>> = BTreeMap::new();
    for contribution in &forwarded {
        let user_id = contribution.user_id;
        let history = histories
            .entry(user_id)
            .or_insert_with(|| db.community_layer_history(user_id).unwrap());
        assert_eq!(history.len(), 3);
        let before = history.partition_point(|transition| transition.at_ns < contribution.at_ns);
        let standing = before.checked_sub(1).map(|latest| history[latest].to);
        assert_ne!(standing, Some(MembershipStatus::Left), "{contribution:?}");
    }
    assert!(db.verify().unwrap().is_clean());
}
