//! The process is killed, and what it had acknowledged is there.
//!
//! A leave that was answered and is gone after a crash is a gate that opens by itself,
//! and a signal of which one aggregate has a part and another has none can never be
//! taken out again. So processes are killed with SIGKILL, which closes, flushes and
//! drops nothing, and what they had said is compared with what is there.
//!
//! - [`workload`]: the process that is killed, and what it says
//! - [`account`]: what must be there after what it said
//! - [`kills`]: the process killed again and again, while it opens and while it works
//! - [`printed`]: the command-line tool killed at the instant it printed its answer
//!
//! `TIDEGATE_KILLS` sets the number of kills, 50 by default, and `TIDEGATE_SEED` their
//! moments.

mod account;
mod kills;
mod printed;
mod workload;

/// How many kills to make; `default` of them unless the environment says otherwise.
fn number_of_kills(default: usize) -> usize {
    match std::env::var("TIDEGATE_KILLS") {
        Ok(number) => number.parse().expect("TIDEGATE_KILLS is a number"),
        Err(_) => default,
    }
}
