//! Files of backups.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| tidegate::fuzzing::backup(input));
