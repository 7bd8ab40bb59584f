//! Weights as whole millionths, so that sums do not depend on the order of
//! threads and a contribution can be taken out again exactly.

use std::ops::AddAssign;

/// The largest magnitude of one weight.
const MAX_WEIGHT: f64 = 1e9;

const PER_UNIT: f64 = 1e6;

/// A sum of weights in millionths. It can't overflow: a weight is at most 10^15 of
/// them, a count at most 2^64 weights, and the product is below 2^114.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Millionths(pub(crate) i128);

impl Millionths {
    /// The millionths of one weight, rounded, halves away from zero; `None` if it
    /// is not finite or above 10^9 in magnitude.
    pub(crate) fn from_weight(weight: f64) -> Option<Self> {
        // Not a number fails the comparison.
        (weight.abs() <= MAX_WEIGHT).then(|| {
            #[allow(
                clippy::cast_possible_truncation,
                reason = "at most 10^15, a whole number after rounding"
            )]
            Millionths((weight * PER_UNIT).round() as i128)
        })
    }

    /// The nearest floating-point number.
    pub(crate) fn to_weight(self) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "the nearest one is meant")]
        let millionths = self.0 as f64;
        millionths / PER_UNIT
    }
}

impl AddAssign for Millionths {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_halves_away_from_zero() {
        assert_eq!(Millionths::from_weight(1.5), Some(Millionths(1_500_000)));
        assert_eq!(Millionths::from_weight(0.5e-6), Some(Millionths(1)));
        assert_eq!(Millionths::from_weight(-0.5e-6), Some(Millionths(-1)));
        assert_eq!(Millionths::from_weight(0.4e-6), Some(Millionths(0)));
    }

    #[test]
    fn refuses_what_is_not_finite_or_too_large() {
        for weight in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e9 + 1.0, -1e10] {
            assert_eq!(Millionths::from_weight(weight), None);
        }
        assert_eq!(
            Millionths::from_weight(-1e9),
            Some(Millionths(-1_000_000_000_000_000))
        );
    }

    #[test]
    fn sums_are_exact_where_floating_point_is_not() {
        let mut sum = Millionths::default();
        for _ in 0..10 {
            sum += Millionths::from_weight(0.1).unwrap();
        }
        assert_eq!(sum, Millionths(1_000_000));
    }
}
