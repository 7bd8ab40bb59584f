//! Predicates of cohorts, compiled and evaluated.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(
    init: {
        // libFuzzer's hook ends the process at a panic, also at one that is caught, as
        // those of the parser are. One that is not caught still ends it.
        std::panic::set_hook(Box::new(|_| {}));
    },
    |input: &[u8]| tidegate::fuzzing::predicate(input)
);
