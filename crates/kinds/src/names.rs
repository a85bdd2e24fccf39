//! Rules for names, label keys and values, ports and keys, with the messages of Kubernetes.
//!
//! Every function returns what is wrong, in words; nothing for a valid text. The patterns are
//! matched by hand, since they run for every label of every object that is written.

use bellwether_json::name;

use crate::NameRule;

/// The longest DNS subdomain.
const SUBDOMAIN_LENGTH: usize = 253;

const UNDERSCORES_1123: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";
const WILDCARD_1123: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
const HEADER: &str = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
const VARIABLE: &str = "a valid environment variable name must consist only of printable ASCII characters other than '='";

/// What is wrong with the name of an object; `prefix` for a `generateName`, to which the server
/// will append.
pub fn object_name(rule: NameRule, name: &str, prefix: bool) -> Vec<String> {
    let masked;
    let name = if prefix && rule != NameRule::PathSegment {
        masked = name::mask_trailing_dash(name);
        &*masked
    } else {
        name
    };
    match rule {
        NameRule::Subdomain => subdomain(name),
        NameRule::Label => label(name),
        NameRule::Label1035 => label_1035(name),
        NameRule::PathSegment => path_segment(name, prefix),
    }
}

/// A DNS label (RFC 1123).
pub fn label(value: &str) -> Vec<String> {
    name::dns_label_problems(value)
}

/// A DNS subdomain (RFC 1123).
pub fn subdomain(value: &str) -> Vec<String> {
    name::dns_subdomain_problems(value)
}

/// A DNS subdomain whose labels may have underscores, as search paths do.
pub fn subdomain_with_underscores(value: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if value.len() > SUBDOMAIN_LENGTH {
        messages.push(too_long(SUBDOMAIN_LENGTH));
    }
    let is_valid = |label: &str| {
        let plain = label.strip_prefix('_').unwrap_or(label);
        name::is_dns_label(&plain.replace('_', "-"))
            && !plain.starts_with('_')
            && !plain.ends_with('_')
    };
    if !value.split('.').all(is_valid) {
        messages.push(UNDERSCORES_1123.to_owned());
    }
    messages
}

/// A DNS subdomain after `*.`.
pub fn wildcard_subdomain(value: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if value.len() > SUBDOMAIN_LENGTH {
        messages.push(too_long(SUBDOMAIN_LENGTH));
    }
    if !value.strip_prefix("*.").is_some_and(name::is_dns_subdomain) {
        messages.push(WILDCARD_1123.to_owned());
    }
    messages
}

/// A DNS label that begins with a letter (RFC 1035).
pub fn label_1035(value: &str) -> Vec<String> {
    name::dns_1035_label_problems(value)
}

/// One segment of a URL path.
pub fn path_segment(value: &str, prefix: bool) -> Vec<String> {
    if !prefix && (value == "." || value == "..") {
        return vec![format!("may not be '{value}'")];
    }
    let forbidden = ["/", "%"].into_iter();
    forbidden
        .filter(|forbidden| value.contains(forbidden))
        .map(|forbidden| format!("may not contain '{forbidden}'"))
        .collect()
}

/// A label key, or the key of an annotation: a name with an optional domain before a slash.
pub fn qualified_name(value: &str) -> Vec<String> {
    name::label_key_problems(value)
}

/// A label value.
pub fn label_value(value: &str) -> Vec<String> {
    name::label_value_problems(value)
}

/// A key of a ConfigMap or Secret.
pub fn config_key(value: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if value.len() > SUBDOMAIN_LENGTH {
        messages.push(too_long(SUBDOMAIN_LENGTH));
    }
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if value.is_empty() || !value.bytes().all(valid) {
        messages.push(CONFIG_KEY.to_owned());
    }
    match value {
        "." => messages.push("must not be '.'".to_owned()),
        ".." => messages.push("must not be '..'".to_owned()),
        _ if value.starts_with("..") => messages.push("must not start with '..'".to_owned()),
        _ => {}
    }
    messages
}

/// The name of an environment variable.
pub fn environment_variable(value: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if value.is_empty() {
        messages.push("environment variable name must be non-empty".to_owned());
    }
    let valid = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'=';
    if !value.bytes().all(valid) {
        messages.push(VARIABLE.to_owned());
    }
    messages
}

/// The name of a port (RFC 6335).
pub fn port_name(value: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if value.len() > 15 {
        messages.push(too_long(15));
    }
    if value.is_empty() || !value.bytes().all(is_label_byte) {
        messages.push(
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned(),
        );
    }
    if !value.bytes().any(|byte| byte.is_ascii_lowercase()) {
        messages.push("must contain at least one letter (a-z)".to_owned());
    }
    if value.contains("--") {
        messages.push("must not contain consecutive hyphens".to_owned());
    }
    if value.starts_with('-') || value.ends_with('-') {
        messages.push("must not begin or end with a hyphen".to_owned());
    }
    messages
}

/// The number of a port.
pub fn port_number(value: i64) -> Option<String> {
    (!(1..=65535).contains(&value)).then(|| between(1, 65535))
}

/// A percentage such as `25%`.
pub fn percent(value: &str) -> Vec<String> {
    let digits = value.strip_suffix('%').unwrap_or_default();
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        Vec::new()
    } else {
        vec![PERCENT.to_owned()]
    }
}

/// The name of an HTTP header.
pub fn header_name(value: &str) -> Vec<String> {
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if !value.is_empty() && value.bytes().all(valid) {
        Vec::new()
    } else {
        vec![HEADER.to_owned()]
    }
}

/// The message about a number out of bounds.
pub(crate) fn between(low: i64, high: i64) -> String {
    format!("must be between {low} and {high}, inclusive")
}

fn too_long(length: usize) -> String {
    format!("must be no more than {length} characters")
}

fn is_label_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rule: fn(&str) -> Vec<String>, good: &[&str], bad: &[&str]) {
        for value in good {
            assert_eq!(rule(value), Vec::<String>::new(), "{value:?}");
        }
        for value in bad {
            assert_ne!(rule(value), Vec::<String>::new(), "{value:?}");
        }
    }

    #[test]
    fn texts_obey_their_rules() {
        let long = "a".repeat(64);
        check(
            label,
            &["a", "a-1", "1"],
            &["", "-a", "a-", "A", "a.b", "ä", &long],
        );
        check(
            subdomain,
            &["a", "a.b-c.1", &long],
            &["", ".a", "a..b", "a.", "A.b", "a_b"],
        );
        check(label_1035, &["a", "a-1"], &["", "1a", "a-", "a.b"]);
        check(
            wildcard_subdomain,
            &["*.a", "*.a.b"],
            &["*", "a", "*a", "*."],
        );
        check(
            label_value,
            &["", "a", "A_b.c-9"],
            &["-a", "a-", "a b", "ä", &long],
        );
        check(
            qualified_name,
            &["a", "a.b/C_d", "x/1"],
            &["", "/", "a/", "/a", "a/b/c", "A/b", "a b"],
        );
        check(
            config_key,
            &["a", "..a".trim_start_matches('.'), "A_b-c.d", "-"],
            &["", ".", "..", "..a", "a/b"],
        );
        check(
            port_name,
            &["http", "a-1"],
            &["", "80", "a--b", "-a", "HTTP", "sixteen-characte"],
        );
        check(percent, &["0%", "25%"], &["", "%", "25", "-1%", "1.5%"]);
        check(
            environment_variable,
            &["A", "a b", "9"],
            &["", "a=b", "ä", "a\nb"],
        );
        check(header_name, &["X-A"], &["", "a b"]);
    }

    #[test]
    fn a_prefix_may_end_in_a_dash() {
        assert!(object_name(NameRule::Subdomain, "web-", true).is_empty());
        assert!(!object_name(NameRule::Subdomain, "web-", false).is_empty());
        assert!(!object_name(NameRule::Subdomain, "-", true).is_empty());
    }

    #[test]
    fn a_path_segment_is_almost_anything() {
        assert!(path_segment("system:node/", true).contains(&"may not contain '/'".to_owned()));
        assert!(path_segment("system:admin", false).is_empty());
        assert_eq!(path_segment("..", false), ["may not be '..'"]);
    }

    #[test]
    fn messages_say_what_is_wrong() {
        assert_eq!(label("a.b"), ["must not contain dots"]);
        assert_eq!(qualified_name("/a"), ["prefix part must be non-empty"]);
        assert_eq!(
            subdomain(&"a".repeat(254)),
            ["must be no more than 253 characters"]
        );
    }
}
