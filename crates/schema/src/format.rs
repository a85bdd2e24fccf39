//! The `format`s of strings that the API server checks; others are ignored.
//!
//! Each follows the check of `k8s.io/kube-openapi: pkg/validation/strfmt`, down to what it lets pass.

mod address;
mod time;

use std::sync::LazyLock;

use bellwether_json::name::{dns_label_problems, dns_subdomain_problems};
use regex::Regex;

/// A format that is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    BsonObjectId,
    Uri,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    Cidr,
    Mac,
    Uuid,
    Uuid3,
    Uuid4,
    Uuid5,
    Isbn,
    Isbn10,
    Isbn13,
    CreditCard,
    Ssn,
    HexColor,
    RgbColor,
    Byte,
    Password,
    Date,
    Duration,
    DateTime,
    ShortName,
    LongName,
}

impl Format {
    /// The format called `name`; dashes in it do not count.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name.replace('-', "").as_str() {
            "bsonobjectid" => Self::BsonObjectId,
            "uri" => Self::Uri,
            "email" => Self::Email,
            "hostname" => Self::Hostname,
            "ipv4" => Self::Ipv4,
            "ipv6" => Self::Ipv6,
            "cidr" => Self::Cidr,
            "mac" => Self::Mac,
            "uuid" => Self::Uuid,
            "uuid3" => Self::Uuid3,
            "uuid4" => Self::Uuid4,
            "uuid5" => Self::Uuid5,
            "isbn" => Self::Isbn,
            "isbn10" => Self::Isbn10,
            "isbn13" => Self::Isbn13,
            "creditcard" => Self::CreditCard,
            "ssn" => Self::Ssn,
            "hexcolor" => Self::HexColor,
            "rgbcolor" => Self::RgbColor,
            "byte" => Self::Byte,
            "password" => Self::Password,
            "date" => Self::Date,
            "duration" => Self::Duration,
            "datetime" => Self::DateTime,
            "k8sshortname" => Self::ShortName,
            "k8slongname" => Self::LongName,
            _ => return None,
        })
    }

    /// Whether `text` has this format.
    pub(crate) fn accepts(self, text: &str) -> bool {
        match self {
            Self::BsonObjectId => text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
            Self::Uri => address::is_request_uri(text),
            Self::Email => address::is_email(text),
            Self::Hostname => address::is_hostname(text),
            Self::Ipv4 => text.contains('.') && address::parse_ip_sloppy(text).is_some(),
            Self::Ipv6 => text.contains(':') && text.parse::<std::net::Ipv6Addr>().is_ok(),
            Self::Cidr => address::is_cidr(text),
            Self::Mac => address::is_mac(text),
            Self::Uuid => is_uuid(text, None),
            Self::Uuid3 => is_uuid(text, Some('3')),
            Self::Uuid4 => is_uuid(text, Some('4')),
            Self::Uuid5 => is_uuid(text, Some('5')),
            Self::Isbn => is_isbn10(text) || is_isbn13(text),
            Self::Isbn10 => is_isbn10(text),
            Self::Isbn13 => is_isbn13(text),
            Self::CreditCard => is_credit_card(text),
            Self::Ssn => text.len() == 11 && SSN.is_match(text),
            Self::HexColor => is_hex_color(text),
            Self::RgbColor => RGB.is_match(text),
            Self::Byte => bellwether_go::base64::is_encoded(text),
            Self::Password => true,
            Self::Date => time::is_date(text),
            Self::Duration => time::is_duration(text),
            Self::DateTime => time::is_date_time(text),
            Self::ShortName => dns_label_problems(text).is_empty(),
            Self::LongName => dns_subdomain_problems(text).is_empty(),
        }
    }
}

/// Compiles an expression of this module.
#[expect(
    clippy::expect_used,
    reason = "the expressions are constants, and tests use each"
)]
fn constant(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant expression is valid")
}

static SSN: LazyLock<Regex> = LazyLock::new(|| constant(r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"));

static RGB: LazyLock<Regex> = LazyLock::new(|| {
    let part = r"[\t\n\f\r ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*";
    constant(&format!(r"^rgb\({part},{part},{part}\)$"))
});

static CARD: LazyLock<Regex> = LazyLock::new(|| {
    constant(concat!(
        "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}",
        "|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$",
    ))
});

/// `8-4-4-4-12` hexadecimal digits with optional dashes; versions 4 and 5 also fix the variant.
fn is_uuid(text: &str, version: Option<char>) -> bool {
    let mut rest = text;
    let mut digits = String::with_capacity(32);
    for (index, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some(group) = rest.get(..length) else {
            return false;
        };
        digits.push_str(group);
        rest = &rest[length..];
    }
    let variant = || {
        matches!(
            digits.as_bytes()[16].to_ascii_lowercase(),
            b'8' | b'9' | b'a' | b'b'
        )
    };
    rest.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        && version.is_none_or(|version| digits[12..].starts_with(version))
        && (!matches!(version, Some('4' | '5')) || variant())
}

/// The digits of an ISBN without blanks and dashes.
fn isbn_digits(text: &str) -> Vec<u8> {
    text.bytes()
        .filter(|byte| !matches!(byte, b'\t' | b'\n' | 0xc | b'\r' | b' ' | b'-'))
        .collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = isbn_digits(text);
    let Some((last, first)) = digits.split_last().filter(|_| digits.len() == 10) else {
        return false;
    };
    if !first.iter().all(u8::is_ascii_digit) || !(last.is_ascii_digit() || *last == b'X') {
        return false;
    }
    let check = if *last == b'X' {
        10
    } else {
        u32::from(last - b'0')
    };
    let sum: u32 = (1..)
        .zip(first)
        .map(|(weight, digit)| weight * u32::from(digit - b'0'))
        .sum();
    (sum + 10 * check).is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits = isbn_digits(text);
    if digits.len() != 13 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let weights = [1, 3].into_iter().cycle();
    let sum: u32 = digits
        .iter()
        .zip(weights)
        .map(|(digit, w)| w * u32::from(digit - b'0'))
        .sum();
    sum.is_multiple_of(10)
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let luhn = |(index, byte): (usize, u8)| {
        let digit = u32::from(byte - b'0');
        let doubled = if index % 2 == 1 { digit * 2 } else { digit };
        if doubled >= 10 {
            doubled % 10 + 1
        } else {
            doubled
        }
    };
    CARD.is_match(&digits)
        && digits
            .bytes()
            .rev()
            .enumerate()
            .map(luhn)
            .sum::<u32>()
            .is_multiple_of(10)
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests;
