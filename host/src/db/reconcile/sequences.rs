//! Which transitions are accounted for, by their numbers: 1 to the last one, without
//! gaps, if nothing was lost.

use crate::journal::format::is_sequence;

/// A set of sequence numbers.
#[derive(Debug, Default)]
pub(super) struct Sequences {
    words: Vec<u64>,
    highest: u64,
}

impl Sequences {
    /// Adds a number; says whether it is new. What no transition can have as its number
    /// is not added.
    pub(super) fn insert(&mut self, sequence: u64) -> bool {
        let Some((word, bit)) = position(sequence) else {
            return false;
        };
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.highest = self.highest.max(sequence);
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        is_new
    }

    /// The highest number so far; 0 if there is none.
    pub(super) fn highest(&self) -> u64 {
        self.highest
    }

    /// The highest number up to `last` that is missing; 0 if none is.
    pub(super) fn highest_missing(&self, last: u64) -> u64 {
        let is_missing = |sequence: &u64| {
            position(*sequence)
                .is_none_or(|(word, bit)| self.words.get(word).is_none_or(|word| word & bit == 0))
        };
        if last <= self.highest && self.count() == self.highest {
            return 0;
        }
        (1..=last).rev().find(is_missing).unwrap_or(0)
    }

    /// How many numbers up to `last` are missing.
    pub(super) fn missing(&self, last: u64) -> u64 {
        last.max(self.highest) - self.count()
    }

    fn count(&self) -> u64 {
        self.words
            .iter()
            .map(|word| u64::from(word.count_ones()))
            .sum()
    }
}

fn position(sequence: u64) -> Option<(usize, u64)> {
    if !is_sequence(sequence) {
        return None;
    }
    let index = sequence - 1;
    Some((usize::try_from(index / 64).ok()?, 1 << (index % 64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_found() {
        let mut sequences = Sequences::default();
        assert_eq!((sequences.highest(), sequences.highest_missing(0)), (0, 0));
        assert_eq!(sequences.highest_missing(3), 3);
        for sequence in [1, 2, 130, 64, 65] {
            assert!(sequences.insert(sequence));
        }
        assert!(!sequences.insert(64));
        assert_eq!(sequences.highest(), 130);
        assert_eq!(sequences.highest_missing(130), 129);
        assert_eq!(sequences.missing(130), 125);
        assert_eq!(sequences.missing(140), 135);
        for sequence in 1..=130 {
            sequences.insert(sequence);
        }
        assert_eq!(sequences.highest_missing(130), 0);
        assert_eq!(sequences.missing(130), 0);
    }

    #[test]
    fn numbers_that_no_transition_has_are_not_added() {
        let mut sequences = Sequences::default();
        assert!(!sequences.insert(0));
        assert!(!sequences.insert(u64::MAX));
        assert_eq!(sequences.highest(), 0);
    }
}
