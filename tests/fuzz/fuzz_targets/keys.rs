//! Keys of the store.

#![no_main]

#[path = "../keys.rs"]
mod keys;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| keys::check(input));
