//! Checks of single values and of sizes.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};

use serde_json::{Number, Value};

use super::Validator;
use super::findings::{Detail, Findings, Place};
use crate::field::FieldErrorKind::{Invalid, NotSupported, TooLong, TooMany, TypeInvalid};
use crate::format::Format;
use crate::model::{Limits, Type};
use crate::number::{GoNumber, deep_equal, is_json_integer};
use crate::text;

impl Validator {
    pub(super) fn check_type(&self, value: &Value, place: &Place<'_>) -> Findings {
        let mut findings = Findings::default();
        let names = || {
            self.types
                .iter()
                .map(|kind| kind.name())
                .collect::<Vec<_>>()
                .join(",")
        };
        let Some((found, found_format)) = describe(value) else {
            if self.types.is_empty() || self.nullable {
                findings.matched();
            } else {
                wrong_type(&mut findings, place, &names(), "null");
            }
            return findings;
        };
        let float = match value {
            Value::Number(number) if found == Type::Number => number.as_f64(),
            _ => None,
        };
        let fits = self.types.contains(&found)
            || (float.is_some_and(is_json_integer) && self.types.contains(&Type::Integer))
            || (found == Type::Integer && self.types.contains(&Type::Number));
        let numeric = self
            .types
            .iter()
            .any(|kind| matches!(kind, Type::Number | Type::Integer));
        let texts = matches!(found, Type::String | Type::Array);
        match self.format.as_deref() {
            Some((_, format)) if !texts && !fits => {
                wrong_type(&mut findings, place, format, found_format);
            }
            // A format lets lists pass as well as strings, as it does in Kubernetes.
            Some(_) if texts && !numeric => findings.matched(),
            _ if fits => findings.matched(),
            _ => wrong_type(&mut findings, place, &names(), found.name()),
        }
        findings
    }

    pub(super) fn check_enumeration(&self, value: &Value, place: &Place<'_>) -> Findings {
        let mut findings = Findings::default();
        let allowed = &self.limits().one_of_values;
        if allowed.is_empty() || allowed.iter().any(|allowed| is_same(value, allowed)) {
            return findings;
        }
        let shown = |value: &Value| match value {
            Value::String(text) => text::quote(text),
            other => text::quote(&text::json(other)),
        };
        let listed: Vec<_> = allowed.iter().map(shown).collect();
        let detail = Detail::Text(format!("supported values: {}", listed.join(", ")));
        let fault = format!("should be one of [{}]", listed.join(" "));
        findings.fault_with(place, &fault, NotSupported, Some(value.clone()), detail);
        findings
    }

    pub(super) fn check_string(&self, value: &str, place: &Place<'_>) -> Findings {
        let mut findings = Findings::default();
        let limits = self.limits();
        let length = || value.chars().count() as u64;
        let given = || Some(Value::from(value));
        if let Some(maximum) = limits.max_length.filter(|maximum| length() > *maximum) {
            let unit = if maximum == 1 { "byte" } else { "bytes" };
            let detail = Detail::Text(format!("may not be more than {maximum} {unit}"));
            let fault = format!("should be at most {maximum} chars long");
            findings.fault_with(place, &fault, TooLong, None, detail);
        } else if let Some(minimum) = limits.min_length.filter(|minimum| length() < *minimum) {
            let fault = format!("should be at least {minimum} chars long");
            findings.fault(place, &fault, Invalid, given());
        } else if let (Some(compiled), Some(pattern)) = (&self.pattern, &limits.pattern) {
            match compiled.as_ref() {
                Ok(regex) if regex.is_match(value) => {}
                Ok(_) => {
                    let fault = format!("should match '{pattern}'");
                    findings.fault(place, &fault, Invalid, given());
                }
                Err(problem) => {
                    let fault =
                        format!("should match '{pattern}, but pattern is invalid: {problem}'");
                    findings.fault(place, &fault, Invalid, given());
                }
            }
        }
        findings
    }
}

/// The type of a value, and the format that Go's decoder gives it; `None` for null.
fn describe(value: &Value) -> Option<(Type, &'static str)> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(_) => (Type::Boolean, ""),
        Value::String(_) => (Type::String, ""),
        Value::Array(_) => (Type::Array, ""),
        Value::Object(_) => (Type::Object, ""),
        Value::Number(number) => match GoNumber::new(number) {
            GoNumber::Integer(_) => (Type::Integer, "int64"),
            GoNumber::Float(_) => (Type::Number, "float64"),
        },
    })
}

fn wrong_type(findings: &mut Findings, place: &Place<'_>, expected: &str, found: &str) {
    let fault = format!("must be of type {expected}: {}", text::quote(found));
    findings.fault(place, &fault, TypeInvalid, Some(found.into()));
}

/// Equality for enumerations, where a number is first converted to the type of the allowed one.
#[expect(clippy::float_cmp, reason = "as Go compares")]
fn is_same(value: &Value, allowed: &Value) -> bool {
    match (value, allowed) {
        // A null among the allowed values is never met.
        (_, Value::Null) => false,
        (Value::Number(value), Value::Number(allowed)) => {
            match (GoNumber::new(value), GoNumber::new(allowed)) {
                (GoNumber::Float(value), allowed @ GoNumber::Integer(_)) => {
                    value.trunc() == allowed.as_float()
                }
                (value @ GoNumber::Integer(_), GoNumber::Float(allowed)) => {
                    value.as_float() == allowed
                }
                (value, allowed) => value == allowed,
            }
        }
        _ => deep_equal(value, allowed),
    }
}

pub(super) fn check_format(format: Format, name: &str, value: &str, place: &Place<'_>) -> Findings {
    let mut findings = Findings::default();
    if !format.accepts(value) {
        let fault = format!("must be of type {name}: {}", text::quote(value));
        findings.fault(place, &fault, TypeInvalid, Some(value.into()));
    }
    findings
}

pub(super) fn check_number(limits: &Limits, number: &Number, place: &Place<'_>) -> Findings {
    let mut findings = Findings::default();
    let value = GoNumber::new(number);
    let given = || Some(Value::Number(number.clone()));
    if let Some(factor) = limits.multiple_of {
        check_multiple(value, factor, place, &mut findings);
    }
    if let Some(minimum) = limits.minimum {
        let (bound, low) = compare(value, minimum, |value, bound| {
            value < bound || (limits.exclusive_minimum && value <= bound)
        });
        if low {
            let or_equal = if limits.exclusive_minimum {
                ""
            } else {
                " or equal to"
            };
            let relation = if or_equal.is_empty() {
                "greater than"
            } else {
                "greater than or equal to"
            };
            findings.fault(
                place,
                &format!("should be {relation} {bound}"),
                Invalid,
                given(),
            );
        }
    }
    if let Some(maximum) = limits.maximum {
        let (bound, high) = compare(value, maximum, |value, bound| {
            value > bound || (limits.exclusive_maximum && value >= bound)
        });
        if high {
            let relation = if limits.exclusive_maximum {
                "less than"
            } else {
                "less than or equal to"
            };
            findings.fault(
                place,
                &format!("should be {relation} {bound}"),
                Invalid,
                given(),
            );
        }
    }
    findings.matched();
    findings
}

/// Compares with a bound, which is cut to an integer first where the value is one; also returns the
/// bound as it is printed.
#[expect(clippy::cast_possible_truncation, reason = "as Go converts")]
fn compare(
    value: GoNumber,
    bound: f64,
    outside: impl Fn(Ordered, Ordered) -> bool,
) -> (String, bool) {
    match value {
        GoNumber::Integer(value) => {
            let bound = bound as i64;
            (
                bound.to_string(),
                outside(Ordered::Integer(value), Ordered::Integer(bound)),
            )
        }
        GoNumber::Float(value) => (
            text::float(bound),
            outside(Ordered::Float(value), Ordered::Float(bound)),
        ),
    }
}

/// Two numbers of the same sort, so that one closure compares both sorts.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Ordered {
    Integer(i64),
    Float(f64),
}

#[expect(clippy::cast_possible_truncation, reason = "as Go converts")]
fn check_multiple(value: GoNumber, factor: f64, place: &Place<'_>, findings: &mut Findings) {
    match value {
        GoNumber::Integer(value) => {
            let factor = factor as i64;
            if factor <= 0 {
                findings.bad_factor(place, factor.into(), &factor.to_string());
            } else if value % factor != 0 {
                let fault = format!("should be a multiple of {factor}");
                findings.fault(place, &fault, Invalid, Some(value.into()));
            }
        }
        GoNumber::Float(value) => {
            let printed = text::float(factor);
            if factor <= 0.0 {
                findings.bad_factor(place, factor.into(), &printed);
                return;
            }
            let multiple = if factor < 1.0 {
                1.0 / factor * value
            } else {
                value / factor
            };
            if !is_json_integer(multiple) {
                let fault = format!("should be a multiple of {printed}");
                findings.fault(place, &fault, Invalid, Some(value.into()));
            }
        }
    }
}

/// A value that is the same as another if it is after decoding, as [`deep_equal`] has it.
struct AsDecoded<'a>(&'a Value);

impl PartialEq for AsDecoded<'_> {
    fn eq(&self, other: &Self) -> bool {
        deep_equal(self.0, other.0)
    }
}

impl Eq for AsDecoded<'_> {}

impl Hash for AsDecoded<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self.0 {
            Value::Number(number) => match GoNumber::new(number) {
                GoNumber::Integer(integer) => integer.hash(state),
                // There are two zeros, which are the same.
                GoNumber::Float(float) => (float + 0.0).to_bits().hash(state),
            },
            Value::Array(items) => items.iter().for_each(|item| AsDecoded(item).hash(state)),
            Value::Object(fields) => fields.iter().for_each(|(name, field)| {
                name.hash(state);
                AsDecoded(field).hash(state);
            }),
            other => other.hash(state),
        }
    }
}

pub(super) fn check_item_count(
    limits: &Limits,
    items: &[Value],
    place: &Place<'_>,
    findings: &mut Findings,
) {
    let count = items.len() as u64;
    if let Some(minimum) = limits.min_items.filter(|minimum| count < *minimum) {
        let fault = format!("should have at least {minimum} items");
        findings.fault(place, &fault, Invalid, Some(count.into()));
    }
    if let Some(maximum) = limits.max_items.filter(|maximum| count > *maximum) {
        let fault = format!("should have at most {maximum} items");
        findings.fault_with(
            place,
            &fault,
            TooMany,
            Some(count.into()),
            too_many(maximum),
        );
    }
    let mut seen = HashSet::new();
    if limits.unique_items && !items.iter().all(|item| seen.insert(AsDecoded(item))) {
        findings.fault(
            place,
            "shouldn't contain duplicates",
            Invalid,
            Some("".into()),
        );
    }
}

pub(super) fn check_field_count(
    limits: &Limits,
    count: usize,
    place: &Place<'_>,
    findings: &mut Findings,
) {
    let count = count as u64;
    if let Some(minimum) = limits.min_properties.filter(|minimum| count < *minimum) {
        let fault = format!("should have at least {minimum} properties");
        findings.fault(place, &fault, Invalid, Some(count.into()));
    }
    if let Some(maximum) = limits.max_properties.filter(|maximum| count > *maximum) {
        let fault = format!("should have at most {maximum} properties");
        findings.fault_with(
            place,
            &fault,
            TooMany,
            Some(count.into()),
            too_many(maximum),
        );
    }
}

fn too_many(maximum: u64) -> Detail {
    let unit = if maximum == 1 { "item" } else { "items" };
    Detail::Text(format!("must have at most {maximum} {unit}"))
}
