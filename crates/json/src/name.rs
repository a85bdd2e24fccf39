//! What Kubernetes accepts as names: label keys and values, DNS labels and subdomains.
//!
//! Each check returns what is wrong in the words of apimachinery; an empty list means that the text is fine. Labels are
//! measured in bytes (pkg/api/validate/content), names in characters (pkg/util/validation), though both count bytes.

use std::borrow::Cow;

const LABEL_KEY_MAX_BYTES: usize = 63;
const LABEL_VALUE_MAX_BYTES: usize = 63;
const DNS_LABEL_MAX_BYTES: usize = 63;
const DNS_SUBDOMAIN_MAX_BYTES: usize = 253;

const LABEL_KEY_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const DNS_LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const DNS_SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const DNS_1035_LABEL_RULE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const MUST_NOT_BE_EMPTY: &str = "must be non-empty";

/// What is wrong with a label key, which is also the form of annotation keys and resource names.
pub fn label_key_problems(key: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let (prefix, name) = match key.split_once('/') {
        None => (None, key),
        Some((prefix, name)) if !name.contains('/') => (Some(prefix), name),
        Some(_) => {
            return vec![format!(
                "a valid label key {LABEL_KEY_RULE} with an optional DNS subdomain prefix and '/' \
                 (e.g. 'example.com/MyName')"
            )];
        }
    };
    match prefix {
        Some("") => problems.push(format!("prefix part {MUST_NOT_BE_EMPTY}")),
        Some(prefix) => {
            let of_prefix = subdomain_problems(prefix, at_most_bytes);
            problems.extend(
                of_prefix
                    .into_iter()
                    .map(|problem| format!("prefix part {problem}")),
            );
        }
        None => {}
    }
    if name.is_empty() {
        problems.push(format!("name part {MUST_NOT_BE_EMPTY}"));
    } else if name.len() > LABEL_KEY_MAX_BYTES {
        problems.push(format!("name part {}", at_most_bytes(LABEL_KEY_MAX_BYTES)));
    }
    if !is_label_word(name) {
        problems.push(format!("name part {LABEL_KEY_RULE}"));
    }
    problems
}

/// What is wrong with a label value.
pub fn label_value_problems(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > LABEL_VALUE_MAX_BYTES {
        problems.push(at_most_bytes(LABEL_VALUE_MAX_BYTES));
    }
    if !value.is_empty() && !is_label_word(value) {
        problems.push(LABEL_VALUE_RULE.to_owned());
    }
    problems
}

/// What is wrong with a DNS label (RFC 1123), the form of namespaces and many names.
pub fn dns_label_problems(label: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if label.len() > DNS_LABEL_MAX_BYTES {
        problems.push(at_most_characters(DNS_LABEL_MAX_BYTES));
    }
    if !is_dns_label(label) {
        let problem = if is_dns_subdomain(label) {
            "must not contain dots"
        } else {
            DNS_LABEL_RULE
        };
        problems.push(problem.to_owned());
    }
    problems
}

/// What is wrong with a DNS subdomain (RFC 1123), the form of most object names.
pub fn dns_subdomain_problems(name: &str) -> Vec<String> {
    subdomain_problems(name, at_most_characters)
}

fn subdomain_problems(name: &str, too_long: fn(usize) -> String) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > DNS_SUBDOMAIN_MAX_BYTES {
        problems.push(too_long(DNS_SUBDOMAIN_MAX_BYTES));
    }
    if !is_dns_subdomain(name) {
        problems.push(DNS_SUBDOMAIN_RULE.to_owned());
    }
    problems
}

/// What is wrong with a DNS label that begins with a letter (RFC 1035), the form of names of services.
pub fn dns_1035_label_problems(label: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if label.len() > DNS_LABEL_MAX_BYTES {
        problems.push(at_most_characters(DNS_LABEL_MAX_BYTES));
    }
    if !is_dns_label(label) || label.starts_with(|first: char| first.is_ascii_digit()) {
        problems.push(DNS_1035_LABEL_RULE.to_owned());
    }
    problems
}

/// A prefix to which something will be appended, as the checks of names have to see it: a dash at its end is fine.
///
/// Upstream replaces the last two bytes, so that whatever is before the dash is fine, too.
pub fn mask_trailing_dash(prefix: &str) -> Cow<'_, str> {
    let before = prefix.strip_suffix('-').unwrap_or_default();
    // Half a character is never fine.
    match before.strip_suffix(|last: char| last.is_ascii()) {
        Some(kept) => Cow::Owned(format!("{kept}a")),
        None => Cow::Borrowed(prefix),
    }
}

fn at_most_bytes(bytes: usize) -> String {
    format!("must be no more than {bytes} bytes")
}

fn at_most_characters(bytes: usize) -> String {
    format!("must be no more than {bytes} characters")
}

/// Returns true for labels of a DNS subdomain, with dots in between: the length is not checked.
pub fn is_dns_subdomain(name: &str) -> bool {
    name.split('.').all(is_dns_label)
}

/// `([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]`
fn is_label_word(word: &str) -> bool {
    let bytes = word.as_bytes();
    let is_inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(is_inner)
}

/// Returns true for `[a-z0-9]([-a-z0-9]*[a-z0-9])?`: the length is not checked.
pub fn is_dns_label(label: &str) -> bool {
    let is_edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = label.as_bytes();
    bytes.first().is_some_and(is_edge)
        && bytes.last().is_some_and(is_edge)
        && bytes.iter().all(|byte| is_edge(byte) || *byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(problems: &[String], expected: &[&str]) {
        let starts: Vec<&str> = problems
            .iter()
            .zip(expected)
            .map(|(problem, start)| &problem[..start.len().min(problem.len())])
            .collect();
        assert_eq!(starts, expected);
        assert_eq!(problems.len(), expected.len(), "{problems:?}");
    }

    #[test]
    fn label_keys_have_an_optional_prefix() {
        for key in ["a", "app.kubernetes.io/name", "A_b.c-1", "1"] {
            check(&label_key_problems(key), &[]);
        }
        check(
            &label_key_problems(""),
            &["name part must be non-empty", "name part must consist"],
        );
        check(
            &label_key_problems("/a"),
            &["prefix part must be non-empty"],
        );
        check(
            &label_key_problems("A/a"),
            &["prefix part a lowercase RFC 1123 subdomain"],
        );
        check(
            &label_key_problems("a/b/c"),
            &["a valid label key must consist"],
        );
        check(&label_key_problems("-a"), &["name part must consist"]);
        check(
            &label_key_problems(&"a".repeat(64)),
            &["name part must be no more than 63 bytes"],
        );
    }

    #[test]
    fn label_values_may_be_empty() {
        check(&label_value_problems(""), &[]);
        check(&label_value_problems("v1.2_3-x"), &[]);
        check(
            &label_value_problems("a b"),
            &["a valid label must be an empty string"],
        );
        check(
            &label_value_problems(&"-".repeat(64)),
            &["must be no more than 63 bytes", "a valid"],
        );
    }

    #[test]
    fn dns_names_are_lower_case() {
        check(&dns_label_problems("my-name"), &[]);
        check(&dns_label_problems("my.name"), &["must not contain dots"]);
        check(&dns_label_problems("My"), &["a lowercase RFC 1123 label"]);
        check(&dns_subdomain_problems("my.name"), &[]);
        check(
            &dns_subdomain_problems("my..name"),
            &["a lowercase RFC 1123 subdomain"],
        );
        check(
            &dns_subdomain_problems(&"a".repeat(254)),
            &["must be no more than 253 characters"],
        );
    }

    #[test]
    fn names_are_those_of_apimachinery() {
        type Check = fn(&str) -> Vec<String>;
        let checks: [(&str, Check); 8] = [
            ("label", dns_label_problems),
            ("labelPrefix", |text| {
                dns_label_problems(&mask_trailing_dash(text))
            }),
            ("subdomain", dns_subdomain_problems),
            ("subdomainPrefix", |text| {
                dns_subdomain_problems(&mask_trailing_dash(text))
            }),
            ("label1035", dns_1035_label_problems),
            ("label1035Prefix", |text| {
                dns_1035_label_problems(&mask_trailing_dash(text))
            }),
            ("qualifiedName", label_key_problems),
            ("labelValue", label_value_problems),
        ];
        for line in include_str!("../tests/data/name.jsonl").lines() {
            let case: serde_json::Value = serde_json::from_str(line).unwrap();
            let text = case["in"].as_str().unwrap();
            for (name, check) in &checks {
                assert_eq!(
                    serde_json::json!(check(text)),
                    case[name],
                    "{name} of {text:?}"
                );
            }
        }
    }
}
