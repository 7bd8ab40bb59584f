//! The fence of the gate, the very file that ships, on loom's atomics and threads: loom
//! runs each scenario through every interleaving, and every value that a load may see
//! under the memory model, and fails where one thread writes what another uses.
//!
//! What a shard holds and what a signal adds to are cells without a lock here, as they
//! are where signals read them.

#![cfg(test)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::duplicate_mod,
    reason = "the same fence, with its barriers and without"
)]

mod fenced;
mod unfenced;

use fenced::scenarios;

#[test]
fn a_leave_returns_after_the_signal_that_was_under_way() {
    loom::model(scenarios::leave_during_a_signal);
}

#[test]
fn a_leave_returns_after_the_signals_of_two_threads() {
    loom::model(scenarios::leave_during_signals_of_two_threads);
}

#[test]
fn a_leave_after_a_rejoin_returns_after_the_signals_between() {
    loom::model(scenarios::leave_after_a_rejoin);
}

#[test]
fn changes_of_two_users_wait_for_each_other() {
    loom::model(scenarios::two_changes_at_once);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn without_its_barriers_the_fence_lets_a_signal_through() {
    loom::model(unfenced::scenarios::leave_during_a_signal);
}
