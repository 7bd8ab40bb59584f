//! Which transitions are accounted for, by their numbers: 1 to the last one, without
//! gaps, if nothing was lost.

use crate::error::{Error, Result};

/// More transitions than any journal that could be read into memory has. A number
/// above it is damage.
const MAX_SEQUENCE: u64 = 1 << 36;

/// A set of sequence numbers.
#[derive(Debug, Default)]
pub(super) struct Sequences {
    words: Vec<u64>,
    highest: u64,
}

impl Sequences {
    /// Adds a number; says whether it is new.
    pub(super) fn insert(&mut self, sequence: u64) -> Result<bool> {
        if sequence == 0 || sequence > MAX_SEQUENCE {
            return Err(Error::storage("account for all transitions")(format!(
                "a transition has the number {sequence}"
            )));
        }
        let (word, bit) = position(sequence)?;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.highest = self.highest.max(sequence);
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        Ok(is_new)
    }

    /// The highest number so far; 0 if there is none.
    pub(super) fn highest(&self) -> u64 {
        self.highest
    }

    /// The highest number up to `last` that is missing; 0 if none is.
    pub(super) fn highest_missing(&self, last: u64) -> u64 {
        let is_missing = |sequence: &u64| {
            !position(*sequence)
                .is_ok_and(|(word, bit)| self.words.get(word).is_some_and(|word| word & bit != 0))
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

fn position(sequence: u64) -> Result<(usize, u64)> {
    let index = sequence.saturating_sub(1);
    let word =
        usize::try_from(index / 64).map_err(Error::storage("account for all transitions"))?;
    Ok((word, 1 << (index % 64)))
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
            assert!(sequences.insert(sequence).unwrap());
        }
        assert!(!sequences.insert(64).unwrap());
        assert_eq!(sequences.highest(), 130);
        assert_eq!(sequences.highest_missing(130), 129);
        assert_eq!(sequences.missing(130), 125);
        assert_eq!(sequences.missing(140), 135);
        for sequence in 1..=130 {
            sequences.insert(sequence).unwrap();
        }
        assert_eq!(sequences.highest_missing(130), 0);
        assert_eq!(sequences.missing(130), 0);
    }

    #[test]
    fn numbers_that_no_journal_has_are_refused() {
        assert!(Sequences::default().insert(0).is_err());
        assert!(Sequences::default().insert(u64::MAX).is_err());
    }
}
