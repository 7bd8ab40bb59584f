//! The gate as bare data structures have it: no fence, no leave that is exact, nothing
//! durable. Each holds for a user what tidegate's gate holds: the boundary and the
//! fan-outs.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::{PoisonError, RwLock};

use dashmap::DashMap;
use tidegate::FanOut;

use crate::inputs::user;

/// What is held for one user who left.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub left_at_ns: u64,
    pub fan_out: FanOut,
}

/// The users who left, with what is held for each.
pub fn entries(left: u64) -> impl Iterator<Item = (u64, Entry)> {
    (0..left).map(|number| {
        let entry = Entry {
            left_at_ns: number + 1,
            fan_out: FanOut::NONE,
        };
        (user(number), entry)
    })
}

/// The check on a `DashMap` with its default number of shards.
pub fn dash_map<S>(left: u64) -> impl Fn(u64) -> FanOut + Sync
where
    S: BuildHasher + Clone + Default + Sync,
{
    check_dash_map(entries(left).collect::<DashMap<_, _, S>>())
}

/// The check on a `DashMap` with many shards.
pub fn sharded_dash_map<S>(left: u64, shards: usize) -> impl Fn(u64) -> FanOut + Sync
where
    S: BuildHasher + Clone + Default + Sync,
{
    let map = DashMap::with_hasher_and_shard_amount(S::default(), shards);
    for (user, entry) in entries(left) {
        map.insert(user, entry);
    }
    check_dash_map(map)
}

fn check_dash_map<S>(map: DashMap<u64, Entry, S>) -> impl Fn(u64) -> FanOut + Sync
where
    S: BuildHasher + Clone + Sync,
{
    move |user| map.get(&user).map_or(FanOut::ALL, |entry| entry.fan_out)
}

/// The check on a map behind a lock for readers and writers.
pub fn locked_map<S>(left: u64) -> impl Fn(u64) -> FanOut + Sync
where
    S: BuildHasher + Default + Send + Sync,
{
    let map = RwLock::new(entries(left).collect::<HashMap<_, _, S>>());
    move |user| {
        let map = map.read().unwrap_or_else(PoisonError::into_inner);
        map.get(&user).map_or(FanOut::ALL, |entry| entry.fan_out)
    }
}

/// The check on papaya's map, with an epoch entered for each.
pub fn papaya<S>(left: u64) -> impl Fn(u64) -> FanOut + Sync
where
    S: BuildHasher + Default + Send + Sync,
{
    let map: papaya::HashMap<u64, Entry, S> = entries(left).collect();
    move |user| {
        map.pin()
            .get(&user)
            .map_or(FanOut::ALL, |entry| entry.fan_out)
    }
}

/// The check on a map that can't change: what the look-up alone costs.
pub fn frozen_map<S>(left: u64) -> impl Fn(u64) -> FanOut + Sync
where
    S: BuildHasher + Default + Sync,
{
    let map: HashMap<u64, Entry, S> = entries(left).collect();
    move |user| map.get(&user).map_or(FanOut::ALL, |entry| entry.fan_out)
}
