//! tidegate from outside, as those who use it see it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

/// The shipped component as a file: fresh, small, without imports.
mod artifact;

/// Programs of others: what they reach, what they are told, and what stops them.
mod callers;

/// The command-line tool from outside, each command and each error.
mod cli;

/// The journal written anew, smaller, and what then depends on it.
mod compaction;

/// Components that do not fit, refused or bounded.
mod components;

/// What `component check` says.
mod conformance;

/// The contract as a package that others depend on.
mod contract;

/// What a killed process had acknowledged.
mod crash;

/// Damaged files of a store, and what an opening makes of them.
mod damage;

/// The formats of event files, their order, and bad lines.
mod events;

/// Records that can't be read.
mod fail_closed;

/// Every operation on storage and files, failed one after the other.
mod faults;

/// Leaves and rejoins against signals on other threads.
mod fence;

/// Bytes and texts that nobody would write.
mod fuzz;

/// Components that mean harm.
mod hostile;

/// The eight scenarios that the feature was specified with.
mod leave_revocation;

/// Sums, cohorts, communities, and what storage has of them.
mod ledger;

/// The gate's protocol, every interleaving of a model.
mod model;

/// MovieLens 100k through the CLI, beside plain loops.
mod movielens;

/// Stores so large that several threads read them.
mod opening;

/// Other rules in the place of the shipped ones.
mod policies;

/// The power fails at any moment, and what the disk may then hold is opened.
mod power_cut;

/// What holds for all inputs: records, keys, and the component beside the rules.
mod properties;

/// Ingests that are killed and resumed.
mod resume;

/// What every test file needs.
mod support;

/// Backup and restore, export and import.
mod transfer;

/// The golden vectors, against the native rules and against the component.
mod vectors;

/// The shipped component in the wasmtime CLI.
mod wasmtime_cli;
