//! Exact decimal numbers: an integer times a power of ten.

use std::cmp::Ordering;

use bellwether_go::number::pow10;

/// The finest scale: a billionth.
pub(super) const NANO: i32 = -9;

/// Sums of numbers with so many digits fit 128 bits.
const SAFE_DIGITS: i64 = 36;

/// `unscaled × 10^scale`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Amount {
    pub(super) unscaled: i128,
    pub(super) scale: i32,
    /// The scale of the big decimal that upstream would hold it as, which some of its conversions refuse; nothing for
    /// 64-bit numbers.
    pub(super) big_scale: Option<i32>,
}

impl Amount {
    pub(super) fn small(unscaled: i64, scale: i32) -> Self {
        Self {
            unscaled: i128::from(unscaled),
            scale,
            big_scale: None,
        }
    }

    pub(super) fn negated(self) -> Self {
        Self {
            unscaled: self.unscaled.saturating_neg(),
            ..self
        }
    }

    /// The number of units of `10^scale`, rounded away from zero, and whether that was exact.
    pub(super) fn at_scale(self, scale: i32) -> (i128, bool) {
        let shift = i64::from(self.scale) - i64::from(scale);
        if shift >= 0 {
            let product = power_of_ten(shift).and_then(|power| self.unscaled.checked_mul(power));
            return match product {
                Some(product) => (product, true),
                None if self.unscaled == 0 => (0, true),
                None => (self.limit(), false),
            };
        }
        let sign = self.unscaled.signum();
        // A divisor beyond 128 bits leaves nothing but the rounding.
        let Some(divisor) = power_of_ten(-shift) else {
            return (sign, self.unscaled == 0);
        };
        let (quotient, rest) = (self.unscaled / divisor, self.unscaled % divisor);
        if rest == 0 {
            (quotient, true)
        } else {
            (quotient + sign, false)
        }
    }

    fn limit(self) -> i128 {
        if self.unscaled < 0 {
            i128::MIN
        } else {
            i128::MAX
        }
    }

    pub(super) fn add(self, other: Self) -> Self {
        if other.unscaled == 0 {
            return Self {
                big_scale: self.big_scale_with(other, false),
                ..self
            };
        }
        if self.unscaled == 0 {
            return Self {
                big_scale: self.big_scale_with(other, false),
                ..other
            };
        }
        // The finest scale at which the sum surely fits; digits below it are rounded away from zero.
        let coarsest = self
            .magnitude()
            .max(other.magnitude())
            .saturating_sub(SAFE_DIGITS);
        let scale = i64::from(self.scale.min(other.scale)).max(coarsest);
        let scale = i32::try_from(scale).unwrap_or(i32::MAX);
        let unscaled = self
            .at_scale(scale)
            .0
            .saturating_add(other.at_scale(scale).0);
        Self {
            unscaled,
            scale,
            big_scale: self.big_scale_with(other, i64::try_from(unscaled).is_err()),
        }
    }

    /// The scale of the big decimal that upstream would hold a sum as.
    fn big_scale_with(self, other: Self, overflows: bool) -> Option<i32> {
        let is_big = overflows || self.big_scale.is_some() || other.big_scale.is_some();
        let held = |amount: Self| amount.big_scale.unwrap_or(amount.scale);
        is_big.then(|| held(self).min(held(other)))
    }

    /// The power of ten of the first digit.
    fn magnitude(self) -> i64 {
        let digits = self
            .unscaled
            .unsigned_abs()
            .checked_ilog10()
            .unwrap_or_default();
        i64::from(digits) + i64::from(self.scale)
    }

    pub(super) fn compare(self, other: Self) -> Ordering {
        let (a, b) = (self.unscaled, other.unscaled);
        if a.signum() != b.signum() || a == 0 {
            return a.cmp(&b);
        }
        let order = self.magnitude().cmp(&other.magnitude());
        if order != Ordering::Equal {
            return if a < 0 { order.reverse() } else { order };
        }
        // Equally many digits before the point, so that bringing both to the finer scale adds at
        // most 38 digits to the shorter one; only numbers close to the limit can overflow.
        let scale = self.scale.min(other.scale);
        let order = self.at_scale(scale).0.cmp(&other.at_scale(scale).0);
        if order == Ordering::Equal && self.scale != other.scale {
            let coarse = self.scale.max(other.scale);
            return self
                .at_scale(coarse)
                .0
                .cmp(&other.at_scale(coarse).0)
                .then(order);
        }
        order
    }

    pub(super) fn to_f64(self) -> f64 {
        // Upstream multiplies what it holds with a power of ten.
        let scale = self.big_scale.unwrap_or(self.scale);
        let held = format!("{}e{}", self.unscaled, self.scale.saturating_sub(scale));
        let held: f64 = held.parse().unwrap_or(f64::NAN);
        if scale == 0 {
            held
        } else {
            held * pow10(scale)
        }
    }

    /// The same number with all factors of ten moved into the scale.
    pub(super) fn reduced(self) -> Self {
        let Self {
            mut unscaled,
            mut scale,
            ..
        } = self;
        while unscaled != 0 && unscaled % 10 == 0 {
            unscaled /= 10;
            scale = scale.saturating_add(1);
        }
        Self {
            unscaled,
            scale,
            ..self
        }
    }
}

/// Ten to the power of `exponent`, if 128 bits hold it.
pub(super) fn power_of_ten(exponent: i64) -> Option<i128> {
    10_i128.checked_pow(u32::try_from(exponent).ok()?)
}
