//! What the tables of the benchmark share.
//!
//! - this file: contenders measured in turns, so that whatever else the machine does
//!   meets all of them
//! - [`report`]: tables, as JSON for the summary and as Markdown
//! - [`inputs`]: users and probes, the same in every run
//! - [`maps`]: the gate as bare data structures have it
//! - [`rules`]: the shipped component, called directly
//! - [`stores`]: stores of tidegate with many users who left
//! - [`processes`]: programs that are measured or needed
//!
//! criterion and divan measure one contender after the other; a ratio of two such times
//! says as much of the minute in which each was taken as of the contenders.

#![allow(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a benchmark that fails stops, and its numbers are rounded when printed"
)]

pub mod inputs;
pub mod maps;
pub mod processes;
pub mod report;
pub mod rules;
pub mod stores;

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// Whether the tables are run small, to see that they work.
pub fn quick() -> bool {
    std::env::var_os("TIDEGATE_BENCH_QUICK").is_some_and(|value| value != "0")
}

/// `full`, or `small` where the tables are run small.
pub fn size(full: u64, small: u64) -> u64 {
    if quick() { small } else { full }
}

/// How many rounds a table has whose rounds take no more than seconds.
pub fn rounds() -> usize {
    if quick() { 2 } else { 9 }
}

/// The numbers of users by which growth is shown: powers of ten from 1,000 to `largest`, or
/// to `TIDEGATE_BENCH_LARGEST` if that is less.
pub fn growth_sizes(largest: u64) -> impl Iterator<Item = u64> {
    let bound = std::env::var("TIDEGATE_BENCH_LARGEST").map_or(u64::MAX, |bound| {
        // A number that is none bounds nothing.
        bound.parse().unwrap_or(u64::MAX)
    });
    let largest = if quick() { 10_000 } else { largest.min(bound) };
    (3..)
        .map(|power| 10_u64.pow(power))
        .take_while(move |size| *size <= largest)
}

/// Something that is measured beside others. Each call measures it once.
pub struct Contender<'a, T = f64> {
    pub name: String,
    measure: Box<dyn FnMut() -> T + 'a>,
}

impl<'a, T> Contender<'a, T> {
    pub fn new(name: impl Into<String>, measure: impl FnMut() -> T + 'a) -> Self {
        Contender {
            name: name.into(),
            measure: Box::new(measure),
        }
    }
}

impl<T> std::fmt::Debug for Contender<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Contender").field(&self.name).finish()
    }
}

/// Measures all contenders in each round, every other round backwards, after a round that
/// does not count. Returns what each of them measured, by round.
pub fn interleave<T>(contenders: &mut [Contender<'_, T>], rounds: usize) -> Vec<Vec<T>> {
    let mut samples: Vec<Vec<T>> = contenders.iter().map(|_| Vec::new()).collect();
    for round in 0..=rounds {
        let mut order: Vec<usize> = (0..contenders.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for index in order {
            let sample = (contenders[index].measure)();
            if round > 0 {
                samples[index].push(sample);
            }
        }
    }
    samples
}

/// How often to repeat `once`, which does `operations`, so that one measurement takes
/// about as long as `enough`.
pub fn repeats(enough: Duration, mut once: impl FnMut()) -> u32 {
    once();
    let started = Instant::now();
    once();
    let times = enough.as_nanos() / started.elapsed().as_nanos().max(1);
    u32::try_from(times).unwrap_or(u32::MAX).max(1)
}

/// The nanoseconds of `work` for each of its operations.
pub fn nanoseconds_each(operations: u64, work: impl FnOnce()) -> f64 {
    let started = Instant::now();
    work();
    started.elapsed().as_nanos() as f64 / operations as f64
}

/// Runs `work` on so many threads, which start together. Returns the time from the first
/// start to the last end, and what each returned.
pub fn on_threads<R: Send>(threads: usize, work: impl Fn(usize) -> R + Sync) -> (Duration, Vec<R>) {
    let start = Barrier::new(threads);
    let run = |thread| {
        start.wait();
        let started = Instant::now();
        let outcome = work(thread);
        (started, Instant::now(), outcome)
    };
    let outcomes: Vec<_> = thread::scope(|scope| {
        let run = &run;
        let running: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || run(thread)))
            .collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| thread.join().unwrap();
        running.into_iter().map(join).collect()
    });
    let started = outcomes.iter().map(|(started, ..)| *started).min();
    let ended = outcomes.iter().map(|(_, ended, _)| *ended).max();
    (
        ended.unwrap() - started.unwrap(),
        outcomes.into_iter().map(|(.., outcome)| outcome).collect(),
    )
}

/// What one has of the other's, in each round.
pub fn ratios(one: &[Vec<f64>], other: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let rows = one.iter().zip(other);
    rows.map(|(one, other)| {
        let rounds = one.iter().zip(other);
        rounds.map(|(one, other)| one / other).collect()
    })
    .collect()
}

/// The middle one of some samples.
pub fn median(samples: &[f64]) -> f64 {
    percentile(samples, 0.5)
}

/// The sample below which so large a `share` of the others lies.
pub fn percentile(samples: &[f64], share: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of the length is an index"
    )]
    let index = ((sorted.len() - 1) as f64 * share).round() as usize;
    sorted[index]
}
