//! Values in messages as Go prints them.
//!
//! Where Kubernetes complains about a whole struct, it prints its internal form: other names than
//! the API's, in the order of declaration, with `null` for what is absent. The few messages that
//! people see are reproduced; the rest shows the value as the user wrote it.

use bellwether_schema::{FieldError, FieldErrorKind, FieldPath};
use serde_json::Value;

use crate::value::at;

/// How a field of a struct is printed.
#[derive(Clone, Copy)]
pub(crate) struct Printed {
    /// The name in Go.
    name: &'static str,
    /// The name in the API.
    field: &'static str,
    /// What is printed where there is nothing.
    absent: &'static str,
}

/// A field that is printed as `null` where it is absent.
pub(crate) const fn pointer(name: &'static str, field: &'static str) -> Printed {
    Printed {
        name,
        field,
        absent: "null",
    }
}

/// A text that is printed as `""` where it is absent.
pub(crate) const fn words(name: &'static str, field: &'static str) -> Printed {
    Printed {
        name,
        field,
        absent: "\"\"",
    }
}

/// A number that is printed as `0` where it is absent.
pub(crate) const fn number(name: &'static str, field: &'static str) -> Printed {
    Printed {
        name,
        field,
        absent: "0",
    }
}

/// A struct with these fields.
pub(crate) fn structure(value: &Value, fields: &[Printed]) -> String {
    let fields: Vec<_> = fields
        .iter()
        .map(|field| {
            let value = at(value, &[field.field]);
            let value = if value.is_null() {
                field.absent.to_owned()
            } else {
                value.to_string()
            };
            format!("\"{}\":{value}", field.name)
        })
        .collect();
    format!("{{{}}}", fields.join(","))
}

/// An error about a value that is already printed.
pub(crate) fn error(
    kind: FieldErrorKind,
    path: &FieldPath<'_>,
    value: &str,
    detail: &str,
) -> FieldError {
    let detail = if detail.is_empty() {
        value.to_owned()
    } else {
        format!("{value}: {detail}")
    };
    FieldError::new(kind, path, None, detail)
}

/// The strategy by which a workload is updated.
pub(crate) const STRATEGY: &[Printed] = &[
    words("Type", "type"),
    pointer("RollingUpdate", "rollingUpdate"),
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_struct_prints_in_order_with_its_own_names() {
        let value = json!({"type": "Odd", "extra": 1});
        assert_eq!(
            structure(&value, STRATEGY),
            r#"{"Type":"Odd","RollingUpdate":null}"#
        );
        let path = FieldPath::new("spec");
        let error = error(FieldErrorKind::Invalid, &path, "{}", "is odd");
        assert_eq!(error.to_string(), "spec: Invalid value: {}: is odd");
    }
}
