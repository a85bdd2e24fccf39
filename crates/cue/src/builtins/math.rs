//! Package `math`.
//!
//! Functions that the reference defines on decimals keep 34 digits; those it defines on binary
//! floats are computed in software, so that results are the same on every machine.

mod special;

use num_bigint::{BigInt, Sign};

use super::argument::{Outcome, arithmetic, big, decimal, float, from_float, int, integer, number};
use super::{INT, NUMBER, function};
use crate::number::{Decimal, EXPONENT_LIMIT, Number, Rounding};
use crate::value::{Builtin, Failure, Host, Kind, Package, Param, Value};

pub(super) static PACKAGE: Package = Package {
    path: "math",
    functions: &[
        function("Jacobi", &[INT, INT], Kind::INT, jacobi),
        function("Floor", ONE, Kind::INT, |_, a| round(a, Rounding::Floor)),
        function("Ceil", ONE, Kind::INT, |_, a| round(a, Rounding::Ceiling)),
        function("Trunc", ONE, Kind::INT, |_, a| round(a, Rounding::Down)),
        function("Round", ONE, Kind::INT, |_, a| round(a, Rounding::HalfUp)),
        function("RoundToEven", ONE, Kind::INT, |_, a| {
            round(a, Rounding::HalfEven)
        }),
        function("MultipleOf", TWO, Kind::BOOL, multiple_of),
        function("Abs", ONE, Kind::NUMBER, |_, a| {
            decimal(Ok(number(a, 0)?.absolute()))
        }),
        unary("Acosh", |_, a| from_float(libm::acosh(float(a, 0)?))),
        unary("Asin", |_, a| from_float(libm::asin(float(a, 0)?))),
        unary("Acos", |_, a| from_float(libm::acos(float(a, 0)?))),
        unary("Asinh", |_, a| from_float(libm::asinh(float(a, 0)?))),
        unary("Atan", |_, a| from_float(libm::atan(float(a, 0)?))),
        binary("Atan2", |_, a| {
            from_float(libm::atan2(float(a, 0)?, float(a, 1)?))
        }),
        unary("Atanh", |_, a| from_float(libm::atanh(float(a, 0)?))),
        unary("Cbrt", |_, a| decimal(number(a, 0)?.cbrt())),
        binary("Copysign", copysign),
        binary("Dim", dim),
        unary("Erf", |_, a| from_float(libm::erf(float(a, 0)?))),
        unary("Erfc", |_, a| from_float(libm::erfc(float(a, 0)?))),
        unary("Erfinv", |_, a| {
            from_float(special::erf_inverse(float(a, 0)?))
        }),
        unary("Erfcinv", |_, a| {
            from_float(special::erf_inverse(1.0 - float(a, 0)?))
        }),
        unary("Exp", |_, a| decimal(number(a, 0)?.exp())),
        unary("Exp2", |_, a| {
            decimal(Number::from(2i64).pow(number(a, 0)?))
        }),
        unary("Expm1", |_, a| from_float(libm::expm1(float(a, 0)?))),
        unary("Gamma", |_, a| from_float(libm::tgamma(float(a, 0)?))),
        binary("Hypot", |_, a| {
            from_float(libm::hypot(float(a, 0)?, float(a, 1)?))
        }),
        unary("J0", |_, a| from_float(libm::j0(float(a, 0)?))),
        unary("Y0", |_, a| from_float(libm::y0(float(a, 0)?))),
        unary("J1", |_, a| from_float(libm::j1(float(a, 0)?))),
        unary("Y1", |_, a| from_float(libm::y1(float(a, 0)?))),
        function("Jn", &[INT, NUMBER], Kind::NUMBER, |_, a| {
            from_float(libm::jn(small(a, 0)?, float(a, 1)?))
        }),
        function("Yn", &[INT, NUMBER], Kind::NUMBER, |_, a| {
            from_float(libm::yn(small(a, 0)?, float(a, 1)?))
        }),
        function("Ldexp", &[NUMBER, INT], Kind::NUMBER, |_, a| {
            from_float(libm::ldexp(float(a, 0)?, small(a, 1)?))
        }),
        unary("Log", |_, a| decimal(number(a, 0)?.ln())),
        unary("Log10", |_, a| decimal(number(a, 0)?.log(10))),
        unary("Log2", |_, a| {
            let logarithm = number(a, 0)?.log(2).map_err(arithmetic)?;
            decimal(Ok(Number::from_decimal(
                logarithm.to_decimal().reduced_keeping_point(),
            )))
        }),
        unary("Log1p", |_, a| from_float(libm::log1p(float(a, 0)?))),
        unary("Logb", |_, a| {
            from_float(f64::from(libm::ilogb(float(a, 0)?)))
        }),
        function("Ilogb", ONE, Kind::INT, |_, a| {
            integer(libm::ilogb(float(a, 0)?))
        }),
        binary("Mod", |_, a| {
            from_float(libm::fmod(float(a, 0)?, float(a, 1)?))
        }),
        binary("Pow", |_, a| decimal(number(a, 0)?.pow(number(a, 1)?))),
        function("Pow10", &[INT], Kind::NUMBER, pow10),
        binary("Remainder", |_, a| {
            from_float(libm::remainder(float(a, 0)?, float(a, 1)?))
        }),
        function("Signbit", ONE, Kind::BOOL, |_, a| {
            Ok(Value::Bool(number(a, 0)?.is_negative()))
        }),
        unary("Cos", |_, a| from_float(libm::cos(float(a, 0)?))),
        unary("Sin", |_, a| from_float(libm::sin(float(a, 0)?))),
        unary("Sinh", |_, a| from_float(libm::sinh(float(a, 0)?))),
        unary("Cosh", |_, a| from_float(libm::cosh(float(a, 0)?))),
        unary("Sqrt", |_, a| from_float(libm::sqrt(float(a, 0)?))),
        unary("Tan", |_, a| from_float(libm::tan(float(a, 0)?))),
        unary("Tanh", |_, a| from_float(libm::tanh(float(a, 0)?))),
    ],
    source: "
MaxExp:        2147483647
MinExp:        -2147483648
MaxPrec:       4294967295
ToNearestEven: 0
ToNearestAway: 1
ToZero:        2
AwayFromZero:  3
ToNegativeInf: 4
ToPositiveInf: 5
Below:         -1
Exact:         0
Above:         1
MaxBase:       62
E:             2.71828182845904523536028747135266249775724709369995957496696763
Pi:            3.14159265358979323846264338327950288419716939937510582097494459
Phi:           1.61803398874989484820458683436563811772030917980576286213544861
Sqrt2:         1.41421356237309504880168872420969807856967187537694807317667974
SqrtE:         1.64872127070012814684865078781416357165377610071014801157507931
SqrtPi:        1.77245385090551602729816748334114518279754945612238712821380779
SqrtPhi:       1.27201964951406896425242246173749149171560804184009624861664038
Ln2:           0.693147180559945309417232121458176568075500134360255254120680009
Log2E:         1.442695040888963407359924681001892137426645954152985934135449408
Ln10:          2.3025850929940456840179914546843642076011014886287729760333278
Log10E:        0.43429448190325182765112891891660508229439700580366656611445378
",
};

const ONE: &[Param] = &[NUMBER];
const TWO: &[Param] = &[NUMBER, NUMBER];

const fn unary(name: &'static str, call: crate::value::Function) -> Builtin {
    function(name, ONE, Kind::NUMBER, call)
}

const fn binary(name: &'static str, call: crate::value::Function) -> Builtin {
    function(name, TWO, Kind::NUMBER, call)
}

/// An integer argument for functions that take a machine int.
fn small(arguments: &[Value], position: usize) -> Result<i32, Failure> {
    let value = int(arguments, position)?;
    Ok(i32::try_from(value).unwrap_or(if value < 0 { i32::MIN } else { i32::MAX }))
}

fn round(arguments: &[Value], rounding: Rounding) -> Outcome {
    let rounded = number(arguments, 0)?
        .round_to_integer(rounding)
        .map_err(arithmetic)?;
    Ok(Value::Number(rounded))
}

fn multiple_of(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let quotient = number(arguments, 0)?
        .quo(number(arguments, 1)?)
        .map_err(arithmetic)?;
    Ok(Value::Bool(quotient.is_integral()))
}

fn copysign(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let magnitude = number(arguments, 0)?.absolute();
    let negative = number(arguments, 1)?.is_negative();
    decimal(Ok(if negative {
        magnitude.negated()
    } else {
        magnitude
    }))
}

fn dim(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let difference = number(arguments, 0)?
        .sub(number(arguments, 1)?)
        .map_err(arithmetic)?;
    decimal(Ok(if difference.is_negative() {
        Number::ZERO
    } else {
        difference
    }))
}

fn pow10(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let exponent = small(arguments, 0)?;
    if exponent
        .checked_abs()
        .is_none_or(|magnitude| magnitude > EXPONENT_LIMIT)
    {
        return Err(Failure::error("exponent out of range"));
    }
    decimal(Ok(Number::from_decimal(Decimal::new(
        BigInt::from(1),
        exponent,
    ))))
}

/// The Jacobi symbol (x/y) for odd y, by quadratic reciprocity.
fn jacobi(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let (mut a, mut b) = (big(arguments, 0)?, big(arguments, 1)?);
    if !b.bit(0) {
        return Err(Failure::error(format!(
            "big: invalid 2nd argument to Int.Jacobi: need odd integer but got {b}"
        )));
    }
    let mut symbol = 1i64;
    if b.sign() == Sign::Minus {
        if a.sign() == Sign::Minus {
            symbol = -1;
        }
        b = -b;
    }
    loop {
        if b == BigInt::from(1) {
            return integer(symbol);
        }
        if a.sign() == Sign::NoSign {
            return integer(0i64);
        }
        a = ((a % &b) + &b) % &b;
        if a.sign() == Sign::NoSign {
            return integer(0i64);
        }
        let twos = a.trailing_zeros().unwrap_or(0);
        if twos % 2 == 1 && matches!(low_bits(&b, 7), 3 | 5) {
            symbol = -symbol;
        }
        let odd = &a >> twos;
        if low_bits(&b, 3) == 3 && low_bits(&odd, 3) == 3 {
            symbol = -symbol;
        }
        a = b;
        b = odd;
    }
}

fn low_bits(value: &BigInt, mask: u8) -> u8 {
    u8::try_from(value & BigInt::from(mask)).unwrap_or(0)
}
