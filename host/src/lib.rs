#![doc = include_str!("../../README.md")]
//!
//! ## The modules
//!
//! Arrows point to what each one uses.
//!
//! ```text
//! cli ──> db ──> gate        who may fan out; the DashMap and the fence
//!  │      │  ──> rules       the component: wasmtime and the bindings
//!  │      │  ──> ledger      aggregates, cohorts, communities, write-behind
//!  │      │  ──> storage     partitions, keys, sled
//!  │      └─ ──> journal     every transition once more, synced and numbered
//!  ├────> events             readers of event files
//!  └────> callers ──> db     programs of others, run with what they were given
//! ```
//!
//! Any of them may use `error`, `membership` (the words of the domain), `config`, `clock`,
//! `checksum`, and `sandbox` (what `rules` and `callers` bound a component by). `fuzzing` is
//! there for the fuzz targets alone.

#[cfg(feature = "callers")]
pub mod callers;
mod checksum;
mod clock;
mod config;
mod db;
mod error;
#[cfg(feature = "cli")]
pub mod events;
#[cfg(fuzzing)]
pub mod fuzzing;
mod gate;
mod journal;
mod ledger;
mod membership;
mod rules;
mod sandbox;
pub mod storage;

pub use config::Config;
pub use db::{Receipt, Stats, TidalDb, Verification};
pub use error::{Cause, Error, Result};
pub use journal::disk::{Disk, DiskFile, SystemDisk};
pub use ledger::{
    Aggregate, MAX_KIND_BYTES, MAX_NAME_BYTES, MAX_PREDICATE_BYTES, MAX_PROFILE_BYTES, Position,
    Profile, Ranked, Scope, Signal, StoredPosition,
};
pub use membership::{CommunityMembership, FanOut, MembershipStatus, Transition};
pub use rules::{Check, Inspection, SHIPPED_COMPONENT, check_component, inspect_component};
