use super::*;
use parse::TimestampError;
use proptest::prelude::*;

#[test]
fn timestamps_print_as_they_were_written() {
    for text in [
        "2023-05-01T10:20:30Z",
        "2023-05-01T10:20:30.5+02:00",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999999999Z",
        "2024-02-29T00:00:00-03:30",
    ] {
        assert_eq!(parse_rfc3339(text).unwrap().to_string(), text);
    }
}

#[test]
fn malformed_timestamps_are_refused() {
    for text in [
        "",
        "2023-05-01",
        "2023-02-29T00:00:00Z",
        "2023-05-01t10:20:30Z",
        "2023-05-01T24:00:00Z",
        "2023-05-01T10:20:30",
        "2023-05-01T10:20:30.Z",
        "2023-05-01T10:20:30Zx",
    ] {
        assert_eq!(
            parse_rfc3339(text).unwrap_err(),
            TimestampError::Malformed,
            "{text}"
        );
    }
    assert_eq!(
        parse_rfc3339("0000-01-01T00:00:00Z").unwrap_err(),
        TimestampError::OutOfRange
    );
}

#[test]
fn durations_are_read_as_go_reads_them() {
    for (text, nanoseconds) in [
        ("0", 0),
        ("1h30m", 5_400_000_000_000),
        ("-1.5s", -1_500_000_000),
        (".5ms", 500_000),
        ("1.s", 1_000_000_000),
        ("1h1m1s1ms1us1ns", 3_661_001_001_001),
        ("2562047h47m16.854775807s", i64::MAX),
        ("-2562047h47m16.854775808s", i64::MIN),
    ] {
        assert_eq!(
            parse_go_duration(text).map(Duration::nanoseconds),
            Some(nanoseconds),
            "{text}"
        );
    }
    for text in ["", "1", "s", ".s", "1x", "1d", "9999999999h", "+-1s"] {
        assert_eq!(parse_go_duration(text), None, "{text}");
    }
}

#[test]
fn durations_of_schemas_may_spell_out_units() {
    for (text, seconds) in [
        ("2 days", 172_800),
        ("1w", 604_800),
        ("3 min", 180),
        ("90s", 90),
    ] {
        assert_eq!(
            parse_open_api_duration(text).map(|d| d.nanoseconds() / NANOS_PER_SECOND),
            Some(seconds),
            "{text}"
        );
    }
    assert_eq!(parse_open_api_duration("soon"), None);
}

#[test]
fn zones_shift_the_clock() {
    let summer = parse_rfc3339("2024-07-01T00:00:00Z").unwrap();
    let winter = parse_rfc3339("2024-01-01T00:00:00Z").unwrap();
    assert_eq!(offset_in(summer, "Europe/Berlin"), Ok(7_200));
    assert_eq!(offset_in(winter, "Europe/Berlin"), Ok(3_600));
    assert_eq!(offset_in(winter, "-03:30"), Ok(-12_600));
    assert_eq!(
        offset_in(winter, "Nowhere/City").unwrap_err().to_string(),
        "unknown time zone Nowhere/City"
    );
}

proptest! {
    #[test]
    fn printing_and_reading_agree(seconds in MIN_SECONDS..=MAX_SECONDS, nanos in 0u32..1_000_000_000) {
        let timestamp = Timestamp::new(seconds, nanos).unwrap();
        prop_assert_eq!(parse_rfc3339(&timestamp.to_string()).unwrap(), timestamp);
    }

    #[test]
    fn no_text_makes_the_readers_panic(text in "\\PC{0,24}") {
        let _ = parse_rfc3339(&text);
        let _ = parse_go_duration(&text);
        let _ = parse_open_api_duration(&text);
        let _ = parse_date_time(&text);
        let _ = parse_date(&text);
    }
}
