//! Inputs that nobody would write: bytes at random, words of a format at random, and
//! mutations of the files in `tests/corpus/<target>/`.
//!
//! A failing input is made small by proptest and printed; add it to the corpus.
//! `TIDEGATE_FUZZ_ITERATIONS` is the number of inputs in place of the target's own.

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestRunner;

use super::repository;

/// What is fuzzed, and with what.
pub(crate) struct Target {
    /// The folder of its corpus.
    pub(crate) name: &'static str,
    /// What inputs are made of, beside bytes.
    pub(crate) words: &'static [&'static str],
    /// How many inputs take about a second.
    pub(crate) iterations: u32,
}

#[derive(Clone, Debug)]
enum Mutation {
    Set(u8),
    Insert(Vec<u8>),
    Remove(usize),
    /// Takes what is behind from the place that the index names.
    JumpTo(Index),
}

impl Target {
    /// The corpus, in the order of the files' names.
    pub(crate) fn corpus(&self) -> Vec<Vec<u8>> {
        let folder = repository().join("tests/corpus").join(self.name);
        let mut files: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        files
            .iter()
            .map(|file| std::fs::read(file).unwrap())
            .collect()
    }

    /// Calls `check`, which fails by panicking, with each seed and with many inputs
    /// that are not far from them.
    pub(crate) fn fuzz(&self, seeds: Vec<Vec<u8>>, check: impl Fn(&[u8])) {
        for seed in &seeds {
            check(seed);
        }
        let iterations = std::env::var("TIDEGATE_FUZZ_ITERATIONS")
            .map_or(self.iterations, |number| number.parse().unwrap());
        let config = ProptestConfig {
            cases: iterations,
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        TestRunner::new(config)
            .run(&self.inputs(seeds), |input| {
                check(&input);
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{}: {error}", self.name));
    }

    fn inputs(&self, seeds: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> + use<> {
        let word = prop::sample::select(self.words);
        // Some in a row, for what is nested.
        let words = (word, prop_oneof![9 => 1..3_usize, 1 => 1..400_usize])
            .prop_map(|(word, times)| word.repeat(times).into_bytes());
        let mutation = prop_oneof![
            any::<u8>().prop_map(Mutation::Set),
            words.clone().prop_map(Mutation::Insert),
            (1..40_usize).prop_map(Mutation::Remove),
            any::<Index>().prop_map(Mutation::JumpTo),
        ];
        let mutations = prop::collection::vec((any::<Index>(), mutation), 1..8);
        prop_oneof![
            1 => prop::collection::vec(any::<u8>(), 0..200),
            3 => prop::collection::vec(words, 0..40).prop_map(|words| words.concat()),
            6 => (prop::sample::select(seeds), mutations).prop_map(|(mut input, mutations)| {
                for (at, mutation) in mutations {
                    mutation.apply(at, &mut input);
                }
                input
            }),
        ]
    }
}

impl Mutation {
    fn apply(self, at: Index, input: &mut Vec<u8>) {
        let at = at.index(input.len() + 1);
        match self {
            Mutation::Set(byte) => {
                if let Some(place) = input.get_mut(at) {
                    *place = byte;
                }
            }
            Mutation::Insert(bytes) => drop(input.splice(at..at, bytes)),
            Mutation::Remove(length) => drop(input.drain(at..(at + length).min(input.len()))),
            Mutation::JumpTo(from) => {
                let tail = input[from.index(input.len() + 1)..].to_vec();
                input.truncate(at);
                input.extend(tail);
            }
        }
    }
}
