//! Named string formats of Kubernetes: `format.dns1123Label().validate(name)`.

use std::sync::LazyLock;

use super::{text, url};
use crate::declaration::{Functions, Plain};
use crate::error::EvalError;
use crate::library::base64;
use crate::time;
use crate::value::Value;

/// A format texts can be checked against.
#[derive(Debug)]
pub struct NamedFormat {
    /// What values of the format call themselves.
    pub name: &'static str,
    /// Length of the pattern behind it, for costs.
    pub(crate) max_regex_size: u64,
    validate: fn(&str) -> Vec<String>,
}

/// Every format by the name expressions use.
static FORMATS: [(&str, NamedFormat); 13] = [
    ("dns1123Label", format("DNS1123Label", 30, dns_label)),
    (
        "dns1123Subdomain",
        format("DNS1123Subdomain", 60, dns_subdomain),
    ),
    ("dns1035Label", format("DNS1035Label", 30, dns_1035_label)),
    ("qualifiedName", format("QualifiedName", 60, qualified_name)),
    (
        "dns1123LabelPrefix",
        format("DNS1123LabelPrefix", 30, |text| dns_label(&mask_dash(text))),
    ),
    (
        "dns1123SubdomainPrefix",
        format("DNS1123SubdomainPrefix", 60, |text| {
            dns_subdomain(&mask_dash(text))
        }),
    ),
    (
        "dns1035LabelPrefix",
        format("DNS1035LabelPrefix", 30, |text| {
            dns_1035_label(&mask_dash(text))
        }),
    ),
    ("labelValue", format("LabelValue", 40, label_value)),
    ("uri", format("URI", 1103, uri)),
    ("uuid", format("uuid", 70, uuid)),
    ("byte", format("byte", 84, byte)),
    ("date", format("date", 71, date)),
    ("datetime", format("datetime", 71, date_time)),
];

const fn format(
    name: &'static str,
    max_regex_size: u64,
    validate: fn(&str) -> Vec<String>,
) -> NamedFormat {
    NamedFormat {
        name,
        max_regex_size,
        validate,
    }
}

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_MESSAGE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
     characters or '-', and must start and end with an alphanumeric character";
const SUBDOMAIN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const SUBDOMAIN_MESSAGE: &str = "a lowercase RFC 1123 subdomain must consist of lower case \
     alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const LABEL_1035_MESSAGE: &str = "a DNS-1035 label must consist of lower case alphanumeric \
     characters or '-', start with an alphabetic character, and end with an alphanumeric character";
const NAME: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const NAME_MESSAGE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must \
     start and end with an alphanumeric character";
const VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
const VALUE_MESSAGE: &str = "a valid label must be an empty string or consist of alphanumeric \
     characters, '-', '_' or '.', and must start and end with an alphanumeric character";

fn explain(message: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples
        .iter()
        .map(|example| format!("'{example}', "))
        .collect();
    format!(
        "{message} (e.g. {}regex used for validation is '{pattern}')",
        examples.join(" or ")
    )
}

fn too_long(limit: usize) -> String {
    format!("must be no more than {limit} characters")
}

/// Letters and digits of the given kind at both ends, dashes allowed in between.
fn is_label(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            inside(*first) && inside(*last) && bytes.iter().all(|b| inside(*b) || *b == b'-')
        }
        _ => false,
    }
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            first.is_ascii_alphanumeric()
                && last.is_ascii_alphanumeric()
                && bytes
                    .iter()
                    .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
        }
        _ => false,
    }
}

fn dns_label(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > 63 {
        problems.push(too_long(63));
    }
    if !is_label(text) {
        problems.push(if is_subdomain(text) {
            "must not contain dots".to_owned()
        } else {
            explain(LABEL_MESSAGE, LABEL, &["my-name", "123-abc"])
        });
    }
    problems
}

fn dns_subdomain(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > 253 {
        problems.push(too_long(253));
    }
    if !is_subdomain(text) {
        problems.push(explain(SUBDOMAIN_MESSAGE, SUBDOMAIN, &["example.com"]));
    }
    problems
}

fn dns_1035_label(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > 63 {
        problems.push(too_long(63));
    }
    if !is_label(text) || text.starts_with(|c: char| c.is_ascii_digit()) {
        problems.push(explain(
            LABEL_1035_MESSAGE,
            LABEL_1035,
            &["my-name", "abc-123"],
        ));
    }
    problems
}

/// A prefix may end in a dash, since a generated name continues it.
fn mask_dash(text: &str) -> String {
    match text.strip_suffix('-') {
        Some(rest) if text.len() > 1 => format!("{rest}a"),
        _ => text.to_owned(),
    }
}

fn qualified_name(text: &str) -> Vec<String> {
    let examples = ["MyName", "my.name", "123-abc"];
    let mut problems = Vec::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name = match parts.as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                problems.push("prefix part must be non-empty".to_owned());
            } else {
                let found = dns_subdomain(prefix);
                problems.extend(found.into_iter().map(|p| format!("prefix part {p}")));
            }
            *name
        }
        _ => {
            let message = format!("a valid label key {NAME_MESSAGE}");
            problems.push(format!(
                "{} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                explain(&message, NAME, &examples)
            ));
            return problems;
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        problems.push(format!("name part {}", too_long(63)));
    }
    if !is_name(name) {
        let found = explain(NAME_MESSAGE, NAME, &examples);
        problems.push(format!("name part {found}"));
    }
    problems
}

fn label_value(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > 63 {
        problems.push(too_long(63));
    }
    if !text.is_empty() && !is_name(text) {
        problems.push(explain(
            VALUE_MESSAGE,
            VALUE,
            &["MyValue", "my_value", "12345"],
        ));
    }
    problems
}

fn uri(text: &str) -> Vec<String> {
    match url::parse(text) {
        Ok(_) => Vec::new(),
        Err(error) => vec![error.to_string()],
    }
}

fn uuid(text: &str) -> Vec<String> {
    static PATTERN: LazyLock<Option<regex::Regex>> = LazyLock::new(|| {
        regex::Regex::new("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$")
            .ok()
    });
    if PATTERN
        .as_ref()
        .is_some_and(|pattern| pattern.is_match(text))
    {
        Vec::new()
    } else {
        vec!["does not match the UUID format".to_owned()]
    }
}

fn byte(text: &str) -> Vec<String> {
    if !text.is_empty() && base64::decode(text).is_some() {
        Vec::new()
    } else {
        vec!["invalid base64".to_owned()]
    }
}

fn date(text: &str) -> Vec<String> {
    if time::parse_date(text).is_some() {
        Vec::new()
    } else {
        vec!["invalid date".to_owned()]
    }
}

fn date_time(text: &str) -> Vec<String> {
    // Letters may be small here, unlike in `timestamp()`.
    if time::parse_rfc3339(&text.to_ascii_uppercase()).is_ok() {
        Vec::new()
    } else {
        vec!["invalid datetime".to_owned()]
    }
}

pub(super) fn declare(functions: &mut Functions) {
    functions.add(
        "format-named",
        "format.named(string) -> optional(kubernetes.NamedFormat)",
        |a| {
            let name = text(a, 0)?;
            let found = FORMATS.iter().find(|(known, _)| *known == name);
            Ok(match found {
                Some((_, format)) => Value::some(Value::Format(format)),
                None => Value::none(),
            })
        },
    );
    functions.add(
        "format-validate",
        "kubernetes.NamedFormat::validate(string) -> optional(list(string))",
        |a| {
            let Some(Value::Format(format)) = a.first() else {
                return Err(EvalError::no_such_overload());
            };
            let problems = (format.validate)(text(a, 1)?);
            Ok(if problems.is_empty() {
                Value::none()
            } else {
                Value::some(Value::list(problems.into_iter().map(Value::from).collect()))
            })
        },
    );
    let shorthands: [(&str, Plain); 13] = [
        ("dns1123Label", |_| Ok(Value::Format(&FORMATS[0].1))),
        ("dns1123Subdomain", |_| Ok(Value::Format(&FORMATS[1].1))),
        ("dns1035Label", |_| Ok(Value::Format(&FORMATS[2].1))),
        ("qualifiedName", |_| Ok(Value::Format(&FORMATS[3].1))),
        ("dns1123LabelPrefix", |_| Ok(Value::Format(&FORMATS[4].1))),
        ("dns1123SubdomainPrefix", |_| {
            Ok(Value::Format(&FORMATS[5].1))
        }),
        ("dns1035LabelPrefix", |_| Ok(Value::Format(&FORMATS[6].1))),
        ("labelValue", |_| Ok(Value::Format(&FORMATS[7].1))),
        ("uri", |_| Ok(Value::Format(&FORMATS[8].1))),
        ("uuid", |_| Ok(Value::Format(&FORMATS[9].1))),
        ("byte", |_| Ok(Value::Format(&FORMATS[10].1))),
        ("date", |_| Ok(Value::Format(&FORMATS[11].1))),
        ("datetime", |_| Ok(Value::Format(&FORMATS[12].1))),
    ];
    for (name, run) in shorthands {
        functions.add(
            &format!("format.{name}"),
            &format!("format.{name}() -> kubernetes.NamedFormat"),
            run,
        );
    }
}
