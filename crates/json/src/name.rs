//! What Kubernetes accepts as names: label keys and values, DNS labels and subdomains.
//!
//! Each check returns what is wrong in the words of apimachinery: pkg/api/validate/content; an
//! empty list means that the text is fine.

const LABEL_KEY_MAX_BYTES: usize = 63;
const LABEL_VALUE_MAX_BYTES: usize = 63;
const DNS_LABEL_MAX_BYTES: usize = 63;
const DNS_SUBDOMAIN_MAX_BYTES: usize = 253;

const LABEL_KEY_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const DNS_LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const DNS_SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
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
            let of_prefix = dns_subdomain_problems(prefix);
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
        problems.push(format!("name part {}", at_most(LABEL_KEY_MAX_BYTES)));
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
        problems.push(at_most(LABEL_VALUE_MAX_BYTES));
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
        problems.push(at_most(DNS_LABEL_MAX_BYTES));
    }
    if !is_dns_label(label) {
        let is_subdomain = label.split('.').all(is_dns_label);
        let problem = if is_subdomain {
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
    let mut problems = Vec::new();
    if name.len() > DNS_SUBDOMAIN_MAX_BYTES {
        problems.push(at_most(DNS_SUBDOMAIN_MAX_BYTES));
    }
    if !name.split('.').all(is_dns_label) {
        problems.push(DNS_SUBDOMAIN_RULE.to_owned());
    }
    problems
}

fn at_most(bytes: usize) -> String {
    format!("must be no more than {bytes} bytes")
}

/// `([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]`
fn is_label_word(word: &str) -> bool {
    let bytes = word.as_bytes();
    let is_inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(is_inner)
}

/// `[a-z0-9]([-a-z0-9]*[a-z0-9])?`
fn is_dns_label(label: &str) -> bool {
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
            &["must be no more than 253 bytes"],
        );
    }
}
