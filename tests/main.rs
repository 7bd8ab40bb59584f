//! tidegate from outside, as those who use it see it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

/// The command-line tool from outside, each command and each error.
mod cli;

/// The formats of event files, their order, and bad lines.
mod events;

/// The eight scenarios of the feature's test plan.
mod leave_revocation;

/// What every test file needs.
mod support;
