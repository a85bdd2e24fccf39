use proptest::prelude::*;

use super::*;

fn quantity(text: &str) -> Quantity {
    text.parse().unwrap()
}

#[track_caller]
fn check(text: &str, expected: Result<&str, QuantityError>) {
    let actual = text
        .parse::<Quantity>()
        .map(|quantity| quantity.to_string());
    assert_eq!(actual, expected.map(str::to_owned), "{text}");
}

#[test]
fn canonical_form_has_no_fraction_and_the_largest_suffix() {
    for (text, canonical) in [
        ("0", "0"),
        ("0Gi", "0"),
        ("100m", "100m"),
        ("1000m", "1"),
        ("0.1", "100m"),
        ("1.5", "1500m"),
        ("1.5Gi", "1536Mi"),
        ("1024Mi", "1Gi"),
        ("1023Ki", "1023Ki"),
        ("1.5Ki", "1536"),
        ("512", "512"),
        ("1000", "1k"),
        ("1000000", "1M"),
        ("12e6", "12e6"),
        ("12e5", "1200e3"),
        ("1e2", "100"),
        ("1E", "1E"),
        ("0.5Mi", "512Ki"),
        ("0.0005Ki", "512m"),
        ("-1.5", "-1500m"),
        ("-0.5Gi", "-512Mi"),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
        ("1.0000000001", "1000000001n"),
        ("100Ei", "9223372036854775807"),
        ("1e30", "1e30"),
        ("1000000000000000000000", "1000E"),
        (".", "0"),
        ("-", "0"),
        ("1.", "1."),
    ] {
        check(text, Ok(canonical));
    }
}

#[test]
fn texts_that_upstream_takes_for_canonical_are_kept() {
    for text in ["1.500", "+1", "001", "1.234", "1E3", "5.678M"] {
        check(text, Ok(text));
        let sum = quantity(text).add(&quantity("0"));
        assert_ne!(sum.to_string(), text, "but not in results");
    }
}

#[test]
fn errors_say_which_part_is_wrong() {
    for text in ["", "a", "1x", "1.1.1", "1 Gi", "1e3.5", "1Gi5x"] {
        check(text, Err(QuantityError::Format));
    }
    for text in [
        "1ki",
        "1KB",
        "1Zi",
        "1e",
        "1ee3",
        "1kk",
        "1e1000",
        "1e99999999999",
    ] {
        let expected = if matches!(text, "1KB" | "1Zi") {
            QuantityError::Format
        } else {
            QuantityError::Suffix
        };
        check(text, Err(expected));
    }
    check(".Ei", Err(QuantityError::Numeric));
    assert_eq!(
        QuantityError::Format.to_string(),
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    );
}

#[test]
fn arithmetic_is_exact() {
    for (a, b, sum, difference) in [
        ("1", "100m", "1100m", "900m"),
        ("1Gi", "1Mi", "1025Mi", "1023Mi"),
        ("0", "1Gi", "1Gi", "-1Gi"),
        ("1Gi", "1G", "2073741824", "73741824"),
        (
            "1n",
            "1E",
            "1000000000000000000000000001n",
            "-999999999999999999999999999n",
        ),
        (
            "9223372036854775807",
            "1",
            "9223372036854775808",
            "9223372036854775806",
        ),
    ] {
        assert_eq!(quantity(a).add(&quantity(b)).to_string(), sum, "{a} + {b}");
        assert_eq!(
            quantity(a).sub(&quantity(b)).to_string(),
            difference,
            "{a} - {b}"
        );
    }
}

#[test]
fn order_is_by_value() {
    let ordered = [
        "-1Gi", "-1G", "-1m", "0", "1n", "1m", "999m", "1", "1k", "1Ki", "1M", "1e30",
    ];
    for window in ordered.windows(2) {
        assert!(quantity(window[0]) < quantity(window[1]), "{window:?}");
    }
    assert_eq!(quantity("1000m"), quantity("1"));
    assert_eq!(quantity("1e3"), quantity("1k"));
    assert_eq!(quantity("0.5Gi"), quantity("512Mi"));
    assert!(quantity("1e999") > quantity("1e998"));
}

#[test]
fn conversions_round_away_from_zero() {
    assert_eq!(quantity("1100m").value(), 2);
    assert_eq!(quantity("-1100m").value(), -2);
    assert_eq!(quantity("1.5Gi").value(), 1_610_612_736);
    assert_eq!(quantity("1u").milli_value(), 1);
    assert_eq!(quantity("1e30").value(), i64::MAX);
    assert_eq!(quantity("-1e300").value(), i64::MIN);
    let (rounded, is_exact) = quantity("1234567").rounded_up(3);
    assert_eq!((rounded.to_string().as_str(), is_exact), ("1235k", false));
}

#[test]
fn integers_are_given_when_upstream_gives_them() {
    assert_eq!(quantity("5Gi").as_i64(), Some(5_368_709_120));
    assert_eq!(quantity("3k").as_i64(), Some(3000));
    assert_eq!(quantity("1000m").as_i64(), None);
    assert_eq!(quantity("1.5Gi").as_i64(), None);
    assert_eq!(quantity("1e20").as_i64(), None);
}

fn described(quantity: &Quantity) -> serde_json::Value {
    let mut described = serde_json::json!({
        "text": quantity.to_string(), "sign": quantity.signum(),
        "float": bellwether_go::float::shortest(quantity.as_f64()),
    });
    if let Some(whole) = quantity.as_i64() {
        described["int"] = whole.into();
    }
    described
}

/// What is found of a case, in the form of the file.
fn answer(case: &serde_json::Value) -> serde_json::Value {
    let mut answer = serde_json::json!({ "in": case["in"] });
    let found = match case["in"].as_str().unwrap().parse::<Quantity>() {
        Ok(found) => found,
        Err(error) => {
            answer["error"] = error.to_string().into();
            return answer;
        }
    };
    let Some(other) = case["other"].as_str() else {
        answer["quantity"] = described(&found);
        return answer;
    };
    let right = quantity(other);
    answer["other"] = other.into();
    answer["compare"] = (found.cmp(&right) as i32).into();
    answer["equal"] = (found == right).into();
    answer["sum"] = described(&found.add(&right));
    answer["difference"] = described(&found.sub(&right));
    answer
}

/// The file was made by apimachinery 0.35. It has no exponents above 999, and no sums of more than 38 digits: the former
/// are refused here, the latter rounded.
#[test]
fn quantities_are_those_of_apimachinery() {
    let mut differences = Vec::new();
    for line in include_str!("../../tests/data/quantity.jsonl").lines() {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        let found = answer(&case);
        if found != case {
            differences.push(format!("{case}\n{found}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

#[test]
fn json_may_hold_strings_or_numbers() {
    let quantities: Vec<Quantity> = serde_json::from_str("[\"1.5Gi\", 2, 0.5, null]").unwrap();
    assert_eq!(
        serde_json::to_string(&quantities).unwrap(),
        "[\"1536Mi\",\"2\",\"500m\",\"0\"]"
    );
    let error = serde_json::from_str::<Quantity>("\"x\"").unwrap_err();
    assert!(error.to_string().starts_with("quantities must match"));
}

fn quantities() -> impl Strategy<Value = Quantity> {
    "[-+]?[0-9]{1,12}(\\.[0-9]{0,6})?(n|u|m||k|M|G|T|Ki|Mi|Gi|Ti|e-3|e3|E6)"
        .prop_map(|text| text.parse().unwrap())
}

proptest! {
    #[test]
    fn the_canonical_form_means_the_same(a in quantities()) {
        let text = text::canonical(a.amount, a.format);
        let again: Quantity = text.parse().unwrap();
        prop_assert_eq!(&again, &a);
        prop_assert_eq!(again.to_string(), text);
    }

    #[test]
    fn what_is_added_can_be_subtracted(a in quantities(), b in quantities()) {
        prop_assert_eq!(a.add(&b).sub(&b), a.clone());
        prop_assert_eq!(a.add(&b), b.add(&a));
    }

    #[test]
    fn order_agrees_with_differences(a in quantities(), b in quantities()) {
        prop_assert_eq!(a.cmp(&b) as i32, a.sub(&b).signum());
    }

    #[test]
    fn no_text_panics(text in "[-+0-9.eEinumkKMGTP]{0,60}") {
        if let Ok(quantity) = text.parse::<Quantity>() {
            let other: Quantity = "1n".parse().unwrap();
            let _ = (quantity.to_string(), quantity.value(), quantity.as_f64(), quantity.as_i64());
            let _ = (quantity.add(&other).to_string(), quantity.cmp(&other));
        }
    }
}
