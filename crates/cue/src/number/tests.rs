use std::cmp::Ordering;

use proptest::prelude::*;

use super::*;

fn number(text: &str) -> Number {
    Number::parse_literal(text).expect(text)
}

#[track_caller]
fn check_literal(text: &str, expected: Result<&str, &str>) {
    let actual = Number::parse_literal(text);
    match (actual, expected) {
        (Ok(value), Ok(want)) => assert_eq!(value.to_message(), want, "{text}"),
        (Err(error), Err(want)) => assert_eq!(error.to_string(), want, "{text}"),
        (actual, want) => panic!("{text}: got {actual:?}, want {want:?}"),
    }
}

#[test]
fn literals_of_every_form_are_read() {
    check_literal("0", Ok("0"));
    check_literal("42", Ok("42"));
    check_literal("1_000_000", Ok("1000000"));
    check_literal("0x1F", Ok("31"));
    check_literal("0xdead_beef", Ok("3735928559"));
    check_literal("0o17", Ok("15"));
    check_literal("0b101", Ok("5"));
    check_literal("1K", Ok("1000"));
    check_literal("1Ki", Ok("1024"));
    check_literal("1.5Mi", Ok("1572864"));
    check_literal("1.", Ok("1.0"));
    check_literal(".5", Ok("0.5"));
    check_literal("1.50", Ok("1.50"));
    check_literal("1e3", Ok("1E+3"));
    check_literal("1e-7", Ok("1E-7"));
    check_literal("0.000001", Ok("0.000001"));
    check_literal("09.5", Ok("9.5"));
    check_literal(
        "-12345678901234567890123456789",
        Ok("-12345678901234567890123456789"),
    );
}

#[test]
fn malformed_literals_say_what_is_wrong() {
    check_literal("012", Err("illegal integer number \"012\""));
    check_literal("1_", Err("illegal '_' in number"));
    check_literal("0x", Err("illegal hexadecimal number \"0x\""));
    check_literal("0b12", Err("illegal binary number \"0b12\""));
    check_literal("1e", Err("illegal exponent \"1e\""));
    check_literal("1.23456K", Err("number cannot be represented as int"));
    check_literal(
        "1e200000",
        Err("exponent out of range in number \"1e200000\""),
    );
    check_literal("", Err("invalid number \"\""));
    check_literal("abc", Err("invalid number \"abc\""));
}

#[track_caller]
fn check_operation(left: &str, operator: &str, right: &str, expected: Result<&str, &str>) {
    let (a, b) = (number(left), number(right));
    let actual = match operator {
        "+" => a.add(&b),
        "-" => a.sub(&b),
        "*" => a.mul(&b),
        "/" => a.quo(&b),
        "div" => a.div_euclid(&b),
        "mod" => a.mod_euclid(&b),
        "quo" => a.quo_truncated(&b),
        "rem" => a.rem_truncated(&b),
        "pow" => a.pow(&b),
        other => panic!("unknown operator {other}"),
    };
    let context = format!("{left} {operator} {right}");
    match (actual, expected) {
        (Ok(value), Ok(want)) => assert_eq!(value.to_message(), want, "{context}"),
        (Err(error), Err(want)) => assert_eq!(error.to_string(), want, "{context}"),
        (actual, want) => panic!("{context}: got {actual:?}, want {want:?}"),
    }
}

#[test]
fn integer_arithmetic_is_exact() {
    check_operation("9223372036854775807", "+", "1", Ok("9223372036854775808"));
    check_operation("9223372036854775808", "-", "1", Ok("9223372036854775807"));
    check_operation(
        "12345678901234567890123456789012345678901",
        "*",
        "3",
        Ok("37037036703703703670370370367037037036703"),
    );
    check_operation("2", "pow", "10", Ok("1024"));
}

#[test]
fn decimal_arithmetic_keeps_34_digits() {
    check_operation("1", "/", "3", Ok("0.3333333333333333333333333333333333"));
    check_operation("2", "/", "3", Ok("0.6666666666666666666666666666666667"));
    check_operation("6", "/", "2", Ok("3.0"));
    check_operation("0.1", "+", "0.2", Ok("0.3"));
    check_operation("3.00", "+", "2", Ok("5.00"));
    check_operation("1e3", "+", "1", Ok("1001.0"));
    check_operation("1.5e3", "*", "2", Ok("3.0E+3"));
    check_operation("500000", "/", "1e-3", Ok("5.0E+8"));
    check_operation("1", "/", "0", Err("failed arithmetic: division by zero"));
    check_operation("0", "/", "0", Err("failed arithmetic: division undefined"));
    check_operation(
        "5e99999",
        "*",
        "5e99999",
        Err("failed arithmetic: exponent out of range"),
    );
}

#[test]
fn integer_division_comes_in_two_conventions() {
    check_operation("-7", "div", "2", Ok("-4"));
    check_operation("-7", "mod", "2", Ok("1"));
    check_operation("-7", "quo", "2", Ok("-3"));
    check_operation("-7", "rem", "2", Ok("-1"));
    check_operation("7", "div", "-2", Ok("-3"));
    check_operation("7", "mod", "-2", Ok("1"));
    check_operation("-7", "div", "-2", Ok("4"));
    check_operation("7", "quo", "0", Err("division by zero"));
}

#[test]
fn equality_respects_kinds_and_comparison_does_not() {
    assert_ne!(number("1"), number("1.0"));
    assert_eq!(number("1.0"), number("1.00"));
    assert_eq!(number("1").compare(&number("1.0")), Ordering::Equal);
    assert_eq!(number("-1e30").compare(&number("1")), Ordering::Less);
    assert_eq!(number("-2.5").compare(&number("-2.4")), Ordering::Less);
    assert_eq!(number("1e100").compare(&number("1e99")), Ordering::Greater);
}

#[test]
fn functions_agree_with_known_values() {
    let show = |result: Result<Number, NumberError>| result.unwrap().to_string();
    assert_eq!(
        show(number("2").ln()),
        "0.6931471805599453094172321214581766"
    );
    assert_eq!(
        show(number("10").ln()),
        "2.302585092994045684017991454684364"
    );
    assert_eq!(
        show(number("1").exp()),
        "2.718281828459045235360287471352662"
    );
    assert_eq!(
        show(number("-1").exp()),
        "0.3678794411714423215955237701614609"
    );
    assert_eq!(show(number("27").cbrt()), "3");
    assert_eq!(
        show(number("2").log(10)),
        "0.3010299956639811952137388947244930"
    );
    assert_eq!(
        show(number("2").pow(&number("0.5"))),
        "1.414213562373095048801688724209698"
    );
    assert_eq!(show(number("2").pow(&number("-2"))), "0.25");
    assert_eq!(show(number("2.5").round_to_integer(Rounding::HalfUp)), "3");
    assert_eq!(
        show(number("2.5").round_to_integer(Rounding::HalfEven)),
        "2"
    );
    assert_eq!(show(number("-2.5").round_to_integer(Rounding::Floor)), "-3");
    assert_eq!(
        show(number("99.5").round_to_integer(Rounding::Ceiling)),
        "100"
    );
    assert_eq!(
        number("-1").ln().unwrap_err().to_string(),
        "failed arithmetic: invalid operation"
    );
}

#[test]
fn binary_floats_convert_through_their_shortest_text() {
    assert_eq!(Number::from_f64(0.1).unwrap().to_string(), "0.1");
    assert_eq!(Number::from_f64(1e21).unwrap().to_string(), "1E+21");
    assert_eq!(Number::from_f64(3.0).unwrap().to_message(), "3.0");
    assert!(Number::from_f64(f64::NAN).is_none());
    assert!((number("2.5").to_f64() - 2.5).abs() < f64::EPSILON);
}

#[test]
fn results_beyond_the_size_limit_are_errors() {
    let mut value = number("9223372036854775807");
    let failure = loop {
        match value.mul(&value) {
            Ok(next) => value = next,
            Err(error) => break error,
        }
    };
    assert_eq!(
        failure.to_string(),
        "failed arithmetic: integer out of range"
    );
}

proptest! {
    #[test]
    fn display_and_parse_are_inverse(coefficient in any::<i64>(), exponent in -40i32..40) {
        let value = Number::from_decimal(Decimal::new(BigInt::from(coefficient), exponent));
        let again = Number::parse_literal(&value.to_source()).unwrap();
        prop_assert_eq!(&again, &value);
        prop_assert_eq!(again.is_int(), value.is_int());
    }

    #[test]
    fn integer_operations_agree_with_wide_machine_arithmetic(a in any::<i64>(), b in any::<i64>()) {
        let (x, y) = (Number::from(a), Number::from(b));
        let (a, b) = (i128::from(a), i128::from(b));
        prop_assert_eq!(x.add(&y).unwrap().to_string(), (a + b).to_string());
        prop_assert_eq!(x.sub(&y).unwrap().to_string(), (a - b).to_string());
        prop_assert_eq!(x.mul(&y).unwrap().to_string(), (a * b).to_string());
        if b != 0 {
            prop_assert_eq!(x.div_euclid(&y).unwrap().to_string(), a.div_euclid(b).to_string());
            prop_assert_eq!(x.mod_euclid(&y).unwrap().to_string(), a.rem_euclid(b).to_string());
            prop_assert_eq!(x.quo_truncated(&y).unwrap().to_string(), (a / b).to_string());
            prop_assert_eq!(x.rem_truncated(&y).unwrap().to_string(), (a % b).to_string());
        }
    }

    #[test]
    fn parsing_never_panics(text in ".{0,20}") {
        let _ = Number::parse_literal(&text);
        let _ = Number::parse_decimal(&text);
    }

    #[test]
    fn order_is_antisymmetric(a in any::<i32>(), x in -20i32..20, b in any::<i32>(), y in -20i32..20) {
        let left = Number::from_decimal(Decimal::new(BigInt::from(a), x));
        let right = Number::from_decimal(Decimal::new(BigInt::from(b), y));
        prop_assert_eq!(left.compare(&right), right.compare(&left).reverse());
        let difference = left.sub(&right).unwrap();
        let expected = if difference.is_zero() { Ordering::Equal }
            else if difference.is_negative() { Ordering::Less } else { Ordering::Greater };
        prop_assert_eq!(left.compare(&right), expected);
    }
}
