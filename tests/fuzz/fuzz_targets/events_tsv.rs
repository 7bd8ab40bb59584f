//! Events and profiles in TSV.

#![no_main]

#[path = "../events.rs"]
mod events;

use libfuzzer_sys::fuzz_target;
use tidegate::events::Format;

fuzz_target!(|input: &[u8]| events::check(input, Format::Tsv));
