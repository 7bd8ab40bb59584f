//! Leave and rejoin against signals on other threads: nothing is forwarded between a
//! leave that has returned and the rejoin after it, and every stamp says so.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;

use tidegate::{MembershipStatus, TidalDb};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::support::{community, signal, views};

const USERS: u64 = 4;
const SIGNALLERS: usize = 2;
const ITEM: u64 = 7;
const LEAVES: usize = 100;

/// A contribution to a shared aggregate, as the library reports it.
#[derive(Clone, Copy, Debug, Default)]
struct Forwarded {
    user_id: u64,
    at_ns: u64,
    communities: u64,
}

impl Visit for Forwarded {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "user_id" => self.user_id = value,
            "at_ns" => self.at_ns = value,
            "communities" => self.communities = value,
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
        if forwarded.communities > 0 {
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

/// Sends signals of all users in turn until told to stop; returns those that a
/// community gained.
fn send_signals(db: &TidalDb, stop: &AtomicBool) -> Vec<Forwarded> {
    let collector = std::sync::Arc::new(Collector::default());
    tracing::subscriber::with_default(std::sync::Arc::clone(&collector), || {
        while !stop.load(Ordering::Relaxed) {
            for user_id in 0..USERS {
                signal(db, user_id, ITEM);
            }
        }
    });
    std::mem::take(&mut *collector.forwarded.lock().unwrap())
}

/// Leaves and rejoins over and over, and looks at the aggregate while away.
fn come_and_go(db: &TidalDb, user_id: u64) {
    let own = community(&user_id.to_string());
    for _ in 0..LEAVES {
        db.leave_community_layer(user_id).unwrap();
        let at_return = views(db, &own, ITEM);
        std::thread::yield_now();
        assert!(signal(db, user_id, ITEM).gated);
        let later = views(db, &own, ITEM);
        assert_eq!(
            later, at_return,
            "user {user_id}: gained after the leave had returned"
        );
        db.rejoin_community_layer(user_id).unwrap();
        std::thread::yield_now();
    }
}

#[test]
fn nothing_is_forwarded_between_a_leave_and_the_next_rejoin() {
    let db = TidalDb::ephemeral().unwrap();
    for user_id in 0..USERS {
        db.join_community(user_id, &user_id.to_string()).unwrap();
    }
    let stop = AtomicBool::new(false);
    let forwarded: Vec<Forwarded> = std::thread::scope(|scope| {
        let signallers: Vec<_> = (0..SIGNALLERS)
            .map(|_| scope.spawn(|| send_signals(&db, &stop)))
            .collect();
        let goers: Vec<_> = (0..USERS)
            .map(|user_id| {
                let db = &db;
                scope.spawn(move || come_and_go(db, user_id))
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
    assert!(!forwarded.is_empty());

    let mut stamps: Vec<u64> = forwarded.iter().map(|forwarded| forwarded.at_ns).collect();
    stamps.sort_unstable();
    stamps.dedup();
    assert_eq!(
        stamps.len(),
        forwarded.len(),
        "the clock is strictly increasing"
    );

    for user_id in 0..USERS {
        let history = db.community_layer_history(user_id).unwrap();
        let own = forwarded
            .iter()
            .filter(|forwarded| forwarded.user_id == user_id);
        for contribution in own.clone() {
            let before =
                history.partition_point(|transition| transition.at_ns < contribution.at_ns);
            let standing = before.checked_sub(1).map(|latest| history[latest].to);
            assert_ne!(standing, Some(MembershipStatus::Left), "{contribution:?}");
        }
        let gained = views(&db, &community(&user_id.to_string()), ITEM);
        assert_eq!(gained, own.count() as u64);
    }
    assert!(db.verify().unwrap().is_clean());
}
