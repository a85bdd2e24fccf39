//! Named string formats of Kubernetes: `format.dns1123Label().validate(name)`.

use std::sync::LazyLock;

use bellwether_go::base64::is_encoded;
use bellwether_go::url::Url;
use bellwether_json::name::{
    dns_1035_label_problems, dns_label_problems, dns_subdomain_problems, label_key_problems,
    label_value_problems, mask_trailing_dash,
};

use super::text;
use crate::declaration::{Functions, Plain};
use crate::error::EvalError;
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
    (
        "dns1123Label",
        format("DNS1123Label", 30, dns_label_problems),
    ),
    (
        "dns1123Subdomain",
        format("DNS1123Subdomain", 60, dns_subdomain_problems),
    ),
    (
        "dns1035Label",
        format("DNS1035Label", 30, dns_1035_label_problems),
    ),
    (
        "qualifiedName",
        format("QualifiedName", 60, label_key_problems),
    ),
    (
        "dns1123LabelPrefix",
        format("DNS1123LabelPrefix", 30, |text| {
            dns_label_problems(&mask_trailing_dash(text))
        }),
    ),
    (
        "dns1123SubdomainPrefix",
        format("DNS1123SubdomainPrefix", 60, |text| {
            dns_subdomain_problems(&mask_trailing_dash(text))
        }),
    ),
    (
        "dns1035LabelPrefix",
        format("DNS1035LabelPrefix", 30, |text| {
            dns_1035_label_problems(&mask_trailing_dash(text))
        }),
    ),
    ("labelValue", format("LabelValue", 40, label_value_problems)),
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

fn uri(text: &str) -> Vec<String> {
    match Url::parse_request(text) {
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
    if is_encoded(text) {
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
