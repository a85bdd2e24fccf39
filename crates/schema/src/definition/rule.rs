//! What can be said of a rule without compiling it.

use crate::document::Document;
use crate::field::{FieldError, FieldPath};
use crate::field_path::{self, Brackets};
use crate::model::Rule;
use crate::structural;

/// The reasons that a rule may give.
const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// What is wrong with the parts of a rule, which is one of `document`'s.
pub(super) fn check(rule: &Rule, document: &Document, path: &FieldPath<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    errors.extend(check_texts(rule, path));
    if let Some(expression) = given(rule.message_expression.as_ref())
        && expression.trim().is_empty()
    {
        let detail = "messageExpression must be non-empty if specified";
        errors.push(FieldError::required(
            &path.child("messageExpression"),
            detail,
        ));
    }
    let reason = rule.reason.as_deref();
    if let Some(reason) = reason.filter(|reason| !REASONS.contains(reason)) {
        errors.push(FieldError::not_supported(
            &path.child("reason"),
            reason,
            &REASONS,
        ));
    }
    if let Some(target) = given(rule.field_path.as_ref()) {
        errors.extend(check_target(target, document, &path.child("fieldPath")));
    }
    errors
}

fn given(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}

fn has_line_breaks(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

/// The first problem of rule and message.
fn check_texts(rule: &Rule, path: &FieldPath<'_>) -> Option<FieldError> {
    let message = given(rule.message.as_ref());
    let trimmed = message.unwrap_or_default().trim();
    let message_path = path.child("message");
    if rule.rule.trim().is_empty() {
        return Some(FieldError::required(
            &path.child("rule"),
            "rule is not specified",
        ));
    }
    match message {
        Some(message) if trimmed.is_empty() => {
            let detail = "must be non-empty if specified";
            Some(FieldError::invalid(&message_path, message, detail))
        }
        Some(message) if has_line_breaks(trimmed) => {
            let detail = "must not contain line breaks";
            Some(FieldError::invalid(&message_path, message, detail))
        }
        None if has_line_breaks(rule.rule.trim()) => {
            let detail = "message must be specified if rule contains line breaks";
            Some(FieldError::required(&message_path, detail))
        }
        _ => None,
    }
}

/// The field to blame has to exist.
fn check_target(target: &str, document: &Document, path: &FieldPath<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut refuse = |detail: &str| errors.push(FieldError::invalid(path, target, detail));
    if target.trim().is_empty() {
        refuse("must be non-empty if specified");
    }
    if has_line_breaks(target) {
        refuse("must not contain line breaks");
    }
    let is_supported = structural::unsupported(document).is_none();
    let schema = document.to_schema();
    if is_supported && field_path::resolve(target, &schema, Brackets::Allowed).is_err() {
        refuse("must be a valid path");
    }
    errors
}
