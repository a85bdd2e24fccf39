//! Special functions that no library at hand provides.

/// The constant of Winitzki's approximation, which is good to about three digits.
const SHAPE: f64 = 0.147;

/// The inverse of the error function: a rational first guess refined by Newton's method on the
/// function itself. Outside (-1, 1) the result is infinite or not a number.
pub(super) fn erf_inverse(y: f64) -> f64 {
    if y.is_nan() || y.abs() > 1.0 {
        return f64::NAN;
    }
    if y.abs() >= 1.0 {
        return f64::INFINITY.copysign(y);
    }
    let logarithm = libm::log1p(-y * y);
    let first = 2.0 / (std::f64::consts::PI * SHAPE) + logarithm / 2.0;
    let square = libm::sqrt(first * first - logarithm / SHAPE) - first;
    let mut x = libm::sqrt(square.max(0.0)).copysign(y);
    for _ in 0..4 {
        let residual = if y.abs() > 0.5 {
            complement_residual(x, y)
        } else {
            libm::erf(x) - y
        };
        let slope = 2.0 / libm::sqrt(std::f64::consts::PI) * libm::exp(-x * x);
        if slope <= 0.0 {
            break;
        }
        let step = residual / slope;
        // Halley's correction doubles the digits gained near the tails.
        x -= step / (1.0 + x * step);
    }
    x
}

/// `erf(x) - y` without cancellation when both are close to one.
fn complement_residual(x: f64, y: f64) -> f64 {
    if y > 0.0 {
        (1.0 - y) - libm::erfc(x)
    } else {
        libm::erfc(-x) - (1.0 + y)
    }
}
