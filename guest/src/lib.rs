//! `membership.wasm`: the rules of the community layer as a component.
//!
//! - [`record`]: the nine bytes that stand for a membership in storage
//! - [`policy`]: what leaving and rejoining do, and what a membership lets through
//!
//! Both are plain functions that run and are tested natively too. This file
//! leaves all deciding to them: it holds the bindings to the contract in `wit/`
//! and the conversions between its types and theirs, and is compiled for
//! WebAssembly only.

pub mod policy;
pub mod record;

#[cfg(target_arch = "wasm32")]
mod component;
