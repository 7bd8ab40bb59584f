//! Records, through the component as the host calls it.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| tidegate::fuzzing::record(input));
