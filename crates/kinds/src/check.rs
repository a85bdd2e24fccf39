//! Checks that many kinds share.

use std::net::IpAddr;

use bellwether_json::quantity::Quantity;
use bellwether_schema::{FieldError, FieldErrors, FieldPath};
use serde_json::Value;

use crate::meta::IMMUTABLE;
use crate::names;
use crate::value::{at, same, text};

/// Where checks put what they find.
pub(crate) type Errors = FieldErrors;

/// Reports every message about a value.
pub(crate) fn report(
    errors: &mut Errors,
    path: &FieldPath<'_>,
    value: &str,
    messages: Vec<String>,
) {
    for message in messages {
        errors.push(FieldError::invalid(path, value, message));
    }
}

/// The text of a field that has to be there.
pub(crate) fn required<'a>(
    errors: &mut Errors,
    object: &'a Value,
    path: &FieldPath<'_>,
    key: &str,
) -> &'a str {
    let found = text(object, &[key]);
    if found.is_empty() {
        errors.push(FieldError::required(&path.child(key), ""));
    }
    found
}

/// Checks that a text is one of a few; reports are in the given order.
pub(crate) fn supported(
    errors: &mut Errors,
    path: &FieldPath<'_>,
    value: &str,
    allowed: &[&str],
) -> bool {
    let fine = allowed.contains(&value);
    if !fine {
        errors.push(FieldError::not_supported(path, value, allowed));
    }
    fine
}

/// The same for a field that has to be there.
pub(crate) fn required_choice(
    errors: &mut Errors,
    path: &FieldPath<'_>,
    value: &str,
    allowed: &[&str],
) {
    if value.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else {
        supported(errors, path, value, allowed);
    }
}

/// Checks that a number, if given, is not below zero.
pub(crate) fn not_negative(errors: &mut Errors, object: &Value, path: &FieldPath<'_>, key: &str) {
    if let Some(number) = at(object, &[key]).as_i64()
        && number < 0
    {
        errors.push(crate::meta::not_negative(&path.child(key), number));
    }
}

/// Checks that a number is above zero.
pub(crate) fn positive(errors: &mut Errors, path: &FieldPath<'_>, number: i64) {
    if number <= 0 {
        errors.push(FieldError::invalid(
            path,
            number,
            "must be greater than zero",
        ));
    }
}

/// Checks that the value at a path of names has not changed.
pub(crate) fn immutable(
    errors: &mut Errors,
    new: &Value,
    old: &Value,
    names: &[&str],
    path: &FieldPath<'_>,
) {
    let value = at(new, names);
    if !same(value, at(old, names)) {
        errors.push(FieldError::invalid(path, value.clone(), IMMUTABLE));
    }
}

/// A DNS label.
pub(crate) fn label(errors: &mut Errors, path: &FieldPath<'_>, value: &str) {
    report(errors, path, value, names::label(value));
}

/// A DNS subdomain.
pub(crate) fn subdomain(errors: &mut Errors, path: &FieldPath<'_>, value: &str) {
    report(errors, path, value, names::subdomain(value));
}

/// A label key.
pub(crate) fn qualified_name(errors: &mut Errors, path: &FieldPath<'_>, value: &str) {
    report(errors, path, value, names::qualified_name(value));
}

/// A path below a domain, such as `example.com/controller`.
pub(crate) fn domain_prefixed_path(errors: &mut Errors, path: &FieldPath<'_>, value: &str) {
    const PATTERN: &str = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+";
    if value.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let Some((host, rest)) = value
        .split_once('/')
        .filter(|(host, rest)| !host.is_empty() && !rest.is_empty())
    else {
        let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        errors.push(FieldError::invalid(path, value, detail));
        return;
    };
    report(errors, path, host, names::subdomain(host));
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
    if !rest.bytes().all(valid) {
        let detail = format!("Invalid path (regex used for validation is '{PATTERN}')");
        errors.push(FieldError::invalid(path, rest, detail));
    }
}

/// A port by number or by name.
pub(crate) fn port(errors: &mut Errors, path: &FieldPath<'_>, port: &Value) {
    match port {
        Value::String(name) => report(errors, path, name, names::port_name(name)),
        other => port_number(errors, path, other.as_i64().unwrap_or_default()),
    }
}

/// A port by number.
pub(crate) fn port_number(errors: &mut Errors, path: &FieldPath<'_>, number: i64) {
    if let Some(message) = names::port_number(number) {
        errors.push(FieldError::invalid(path, number, message));
    }
}

/// An IP address of either family.
pub(crate) fn ip(errors: &mut Errors, path: &FieldPath<'_>, value: &str) {
    if value.parse::<IpAddr>().is_err() {
        let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        errors.push(FieldError::invalid(path, value, detail));
    }
}

/// A range of IP addresses of either family.
pub(crate) fn cidr(errors: &mut Errors, path: &FieldPath<'_>, value: &str) -> bool {
    let fine = parse_cidr(value).is_some();
    if !fine {
        let detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        errors.push(FieldError::invalid(path, value, detail));
    }
    fine
}

/// An address and the length of its prefix.
pub(crate) fn parse_cidr(value: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = value.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let length: u8 = length.parse().ok()?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    (length <= longest).then_some((address, length))
}

/// A count, or a percentage that may be above 100.
pub(crate) fn count_or_percentage(errors: &mut Errors, path: &FieldPath<'_>, value: &Value) {
    match value {
        Value::String(percentage) => {
            report(errors, path, percentage, names::percent(percentage));
        }
        other => {
            let number = other.as_i64().unwrap_or_default();
            if number < 0 {
                errors.push(crate::meta::not_negative(path, number));
            }
        }
    }
}

/// The percentage that a text says, if it says one.
pub(crate) fn percentage(value: &Value) -> Option<i64> {
    value.as_str()?.strip_suffix('%')?.parse().ok()
}

/// Checks that a percentage is not above 100.
pub(crate) fn at_most_all(errors: &mut Errors, path: &FieldPath<'_>, value: &Value) {
    if percentage(value).is_some_and(|percentage| percentage > 100) {
        let detail = "must not be greater than 100%";
        errors.push(FieldError::invalid(path, value.clone(), detail));
    }
}

/// A quantity; decoding has checked that it is one.
pub(crate) fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

/// Checks that a quantity is not below zero.
pub(crate) fn quantity_not_negative(errors: &mut Errors, path: &FieldPath<'_>, value: &Value) {
    if quantity(value).is_some_and(|quantity| quantity.signum() < 0) {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(path, value.clone(), detail));
    }
}
