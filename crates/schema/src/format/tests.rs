use super::*;

#[track_caller]
fn check(name: &str, accepted: &[&str], refused: &[&str]) {
    let format = Format::parse(name).unwrap();
    for text in accepted {
        assert!(format.accepts(text), "{name} should accept {text:?}");
    }
    for text in refused {
        assert!(!format.accepts(text), "{name} should refuse {text:?}");
    }
}

#[test]
fn formats_without_a_check_are_unknown() {
    for name in [
        "int32", "int64", "float", "double", "binary", "quantity", "",
    ] {
        assert_eq!(Format::parse(name), None, "{name}");
    }
    assert_eq!(Format::parse("date-time"), Format::parse("datetime"));
}

#[test]
fn times() {
    check(
        "date",
        &["2026-02-28", "2024-02-29"],
        &["2026-02-29", "2026-2-1", "2026-02-28T", ""],
    );
    check(
        "date-time",
        &[
            "2026-02-03T10:00:00Z",
            "2026-02-03t10:00:00.123+02:00",
            "2026-02-03T10:00:00,5z",
        ],
        &[
            "2026-02-03",
            "2026-02-03T24:00:00Z",
            "2026-02-03T10:00:00",
            "2026-02-03T10:00:60Z",
            "x",
        ],
    );
    check(
        "duration",
        &[
            "1h30m",
            "0",
            "-1.5s",
            ".5s",
            "1.h",
            "3 days",
            "2w",
            "100 millis",
            "1 Hour",
            "1.2.3s",
        ],
        &["", "1", "h", "soon", "1 x"],
    );
}

#[test]
fn networks() {
    check(
        "ipv4",
        &["1.2.3.4", "010.0.0.1", "::ffff:1.2.3.4"],
        &["1.2.3", "1.2.3.256", "a.b.c.d"],
    );
    check(
        "ipv6",
        &["::1", "fe80::1"],
        &["1.2.3.4", "::g", "fe80::1%eth0"],
    );
    check(
        "cidr",
        &["10.0.0.0/8", "::/0"],
        &["10.0.0.0", "10.0.0.0/33", "10.0.0.0/x"],
    );
    check(
        "mac",
        &["00:00:5e:00:53:01", "00-00-5E-00-53-01", "0000.5e00.5301"],
        &["00:00", "x"],
    );
    check(
        "hostname",
        &[
            "localhost",
            "a-b",
            "example.com",
            "1.example.com",
            "bücher.example",
        ],
        &["", "-a", "a_b.com", "example.c", "a..b", "example.com."],
    );
    check(
        "uri",
        &[
            "http://example.com/a?b=%20#c",
            "/path",
            "mailto:a@b",
            "https://u:p@h:80/",
            "urn:x",
            "http://[::1]:8/",
        ],
        &[
            "",
            "example.com",
            "./a",
            "http://a:b/",
            "http://a b/",
            ":x",
            "/%zz",
        ],
    );
    check(
        "email",
        &[
            "a@b",
            "a.b+c@example.com",
            "Ann <a@b.example>",
            "\"a b\"@c",
            "a@[1.2.3.4]",
            "a@b (a (nested) remark)",
        ],
        &["", "a", "a@", "@b", "a b@c", "a..b@c", "Ann <a@b", "a@b@c"],
    );
}

#[test]
fn identifiers() {
    check(
        "uuid",
        &[
            "123e4567-e89b-12d3-a456-426614174000",
            "123E4567E89B12D3A456426614174000",
        ],
        &[
            "123e4567-e89b-12d3-a456-42661417400",
            "123e4567-e89b-12d3-a456-42661417400g",
            "",
        ],
    );
    check(
        "uuid4",
        &["123e4567-e89b-42d3-a456-426614174000"],
        &["123e4567-e89b-42d3-7456-426614174000"],
    );
    check(
        "uuid3",
        &["123e4567-e89b-32d3-7456-426614174000"],
        &["123e4567-e89b-42d3-a456-426614174000"],
    );
    check(
        "uuid5",
        &["123e4567-e89b-52d3-b456-426614174000"],
        &["123e4567-e89b-32d3-b456-426614174000"],
    );
    check(
        "bsonobjectid",
        &["507f1f77bcf86cd799439011"],
        &["507f1f77bcf86cd79943901", "x"],
    );
    check(
        "isbn",
        &["0-306-40615-2", "978-0-306-40615-7", "080442957X"],
        &["0306406153", "x"],
    );
    check("isbn10", &["0306406152"], &["9780306406157"]);
    check(
        "isbn13",
        &["9780306406157"],
        &["0306406152", "9780306406158"],
    );
    check(
        "creditcard",
        &["4111 1111 1111 1111"],
        &["4111 1111 1111 1112", "1"],
    );
    check("ssn", &["123-45-6789"], &["123456789", "123-45-678x"]);
    check("hexcolor", &["#fff", "A0B1C2"], &["#ff", "#ggg"]);
    check(
        "rgbcolor",
        &["rgb(0, 31,255)"],
        &["rgb(256,0,0)", "rgb(0,0)"],
    );
    check(
        "byte",
        &["aGk=", "aGVsbG8h"],
        &["", "a", "aGk", "a===", "aG k"],
    );
    check("password", &["", "anything"], &[]);
    check("k8s-short-name", &["a", "a-b-1"], &["", "-a", "A", "a.b"]);
    check("k8s-long-name", &["a.b-1.c"], &["", "a..b", "A"]);
}
