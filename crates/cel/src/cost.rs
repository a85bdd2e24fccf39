//! What evaluation costs, and the budget it is charged to.
//!
//! One unit is about the time of a simple operation. The numbers are those of cel-go and of the
//! Kubernetes libraries, so that limits mean the same here.

pub(crate) mod estimate;
mod estimate_call;

use crate::ast::operator;
use crate::library::format::NamedFormat;
use crate::value::Value;

/// Cost of reading a variable or selecting a field.
pub(crate) const SELECT_COST: u64 = 1;
/// Cost of making a list.
pub(crate) const LIST_COST: u64 = 10;
/// Cost of making a map.
pub(crate) const MAP_COST: u64 = 30;
/// Cost of making an object.
pub(crate) const STRUCT_COST: u64 = 40;
/// Cost of passing over one character.
pub(crate) const TRAVERSAL: f64 = 0.1;
/// Cost of one character of a regular expression.
pub(crate) const REGEX: f64 = 0.25;

/// Cost of asking an authorizer: one expression can do so twice.
pub(crate) const CHECK_COST: u64 = 350_000;
/// Cost of one requirement of a selector: an object and a list.
pub(crate) const REQUIREMENT_COST: u64 = LIST_COST + STRUCT_COST;
/// Requirements that one character of a selector may make.
pub(crate) const REQUIREMENTS: f64 = 0.5;

/// A limit on evaluation, shared by as many evaluations as it lasts for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    per_call: u64,
    remaining: u64,
    spent: u64,
}

impl Budget {
    /// What Kubernetes lets one evaluation cost.
    pub const PER_CALL_LIMIT: u64 = 1_000_000;

    /// What Kubernetes lets all rules on one object cost together.
    pub const RUNTIME_BUDGET: u64 = 10_000_000;

    /// A budget of `total`, of which one evaluation may take at most `per_call`.
    pub fn new(per_call: u64, total: u64) -> Budget {
        Budget {
            per_call,
            remaining: total,
            spent: 0,
        }
    }

    /// The limits Kubernetes sets for the rules on one object.
    pub fn kubernetes() -> Budget {
        Budget::new(Budget::PER_CALL_LIMIT, Budget::RUNTIME_BUDGET)
    }

    /// No limit. For expressions of your own making.
    pub fn unlimited() -> Budget {
        Budget::new(u64::MAX, u64::MAX)
    }

    /// What is left.
    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    /// What all evaluations so far cost together.
    pub fn spent(&self) -> u64 {
        self.spent
    }

    pub(crate) fn per_call(&self) -> u64 {
        self.per_call
    }

    /// Takes the cost of one evaluation; false if it exceeds what was left.
    pub(crate) fn take(&mut self, cost: u64) -> bool {
        self.spent = self.spent.saturating_add(cost);
        let enough = cost <= self.remaining;
        self.remaining = self.remaining.saturating_sub(cost);
        enough
    }
}

/// How a call is charged; decided while planning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum CallCost {
    Fixed(u64),
    /// One pass over the given argument, times a factor.
    Pass(usize, f64),
    /// Two passes over the result.
    Result,
    /// A visit to everything in the first argument.
    Visit,
    /// Searching with a pattern.
    Regex,
    /// The product of two passes.
    Product,
    /// A pass over both arguments.
    Sum,
    /// A pass over the shorter argument.
    Shorter,
    /// The number of elements of the second argument.
    Elements,
    ContainsIp {
        text: bool,
    },
    ContainsCidr {
        text: bool,
    },
    /// Validating against a named format.
    Format,
    /// Comparing every element of one list with every element of another, times a factor.
    Sets(f64),
    /// Making a list as long as the result.
    NewList,
    /// Making a list by descending as deep as the second argument says.
    Flatten,
    /// Comparing every element of the given argument with every other.
    SelfCompare(usize),
    /// Reading the second argument as a selector.
    Selector,
}

impl CallCost {
    /// The rule for a function and, where known, overload.
    pub(crate) fn of(function: &str, overload: Option<&str>) -> CallCost {
        match function {
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => CallCost::Visit,
            "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "cidr" | "isIP"
            | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
                CallCost::Pass(0, TRAVERSAL)
            }
            "replace" | "split" | "ip.isCanonical" => CallCost::Pass(0, 2.0 * TRAVERSAL),
            "ip" if overload != Some("cidr_ip") => CallCost::Pass(0, TRAVERSAL),
            // Every character may become a value.
            "parseJSON" => CallCost::Pass(0, 1.0),
            "join" => CallCost::Result,
            "find" | "findAll" => CallCost::Regex,
            "containsIP" => CallCost::ContainsIp {
                text: overload == Some("cidr_contains_ip_string"),
            },
            "containsCIDR" => CallCost::ContainsCidr {
                text: overload == Some("cidr_contains_cidr_string"),
            },
            "validate" => CallCost::Format,
            "check" => CallCost::Fixed(CHECK_COST),
            "fieldSelector" | "labelSelector" => CallCost::Selector,
            _ => CallCost::of_overload(overload.unwrap_or("")),
        }
    }

    fn of_overload(overload: &str) -> CallCost {
        match overload {
            "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string"
            | "strings_quote" | "string_format" => CallCost::Pass(0, TRAVERSAL),
            "in_list" => CallCost::Elements,
            "less_string"
            | "greater_string"
            | "less_equals_string"
            | "greater_equals_string"
            | "less_bytes"
            | "greater_bytes"
            | "less_equals_bytes"
            | "greater_equals_bytes" => CallCost::Shorter,
            "add_string" | "add_bytes" => CallCost::Sum,
            "matches_string" => CallCost::Regex,
            "contains_string" => CallCost::Product,
            "list_sets_contains_list" | "list_sets_intersects_list" => CallCost::Sets(1.0),
            "list_sets_equivalent_list" => CallCost::Sets(2.0),
            "list_slice" | "lists_range" | "list_reverse" => CallCost::NewList,
            "list_flatten" | "list_flatten_int" => CallCost::Flatten,
            "list_distinct" => CallCost::SelfCompare(0),
            _ if overload.ends_with("_sortByAssociatedKeys") => CallCost::SelfCompare(1),
            _ if overload.starts_with("list_") && overload.ends_with("_sort") => {
                CallCost::SelfCompare(0)
            }
            _ => CallCost::Fixed(1),
        }
    }

    /// What the call cost with these arguments and this result.
    pub(crate) fn runtime(self, arguments: &[Value<'_>], result: Option<&Value<'_>>) -> u64 {
        let size = |index: usize| arguments.get(index).map_or(1, actual_size);
        match self {
            CallCost::Fixed(cost) => cost,
            CallCost::Pass(index, factor) => scaled(size(index), factor),
            CallCost::Result => scaled(result.map_or(1, actual_size), 2.0 * TRAVERSAL),
            CallCost::Visit => arguments.first().map_or(0, visit_cost),
            CallCost::Regex => {
                let text = scaled(size(0) + 1, TRAVERSAL);
                text.saturating_mul(scaled(size(1), REGEX))
            }
            CallCost::Product => {
                scaled(size(0), TRAVERSAL).saturating_mul(scaled(size(1), TRAVERSAL))
            }
            CallCost::Sum => scaled(size(0) + size(1), TRAVERSAL),
            CallCost::Shorter => scaled(size(0).min(size(1)), TRAVERSAL),
            CallCost::Elements => size(1),
            CallCost::ContainsIp { text } => {
                let network = scaled(size(0) + size(0), TRAVERSAL);
                network + if text { scaled(size(1), TRAVERSAL) } else { 0 }
            }
            CallCost::ContainsCidr { text } => {
                let network = scaled(size(0) + size(0), TRAVERSAL);
                let other = if text { scaled(size(1), TRAVERSAL) } else { 0 };
                network + scaled(size(0), TRAVERSAL) + 1 + other
            }
            CallCost::Format => match arguments.first() {
                Some(Value::Format(NamedFormat { max_regex_size, .. })) => {
                    scaled(size(1) + 1, TRAVERSAL).saturating_mul(scaled(*max_regex_size, REGEX))
                }
                _ => 1,
            },
            CallCost::Sets(factor) => 1 + whole(size(0).saturating_mul(size(1)), factor),
            CallCost::NewList => new_list(result.map_or(1, actual_size), 1.0),
            CallCost::Flatten => match arguments.get(1) {
                #[expect(clippy::cast_precision_loss, reason = "depths are small")]
                Some(Value::Int(depth)) => new_list(size(0), *depth as f64),
                _ => new_list(size(0), 1.0),
            },
            CallCost::SelfCompare(index) => {
                let first = match arguments.get(index) {
                    Some(Value::List(list)) => list.get(0),
                    _ => None,
                };
                let factor = match first {
                    Some(Ok(Value::String(_) | Value::Bytes(_))) => 2.0 + TRAVERSAL,
                    _ => 2.0,
                };
                new_list(size(index).saturating_mul(size(index)), factor)
            }
            CallCost::Selector => {
                let requirements = scaled(size(1), REQUIREMENTS);
                (LIST_COST + scaled(size(1), TRAVERSAL))
                    .saturating_add(requirements.saturating_mul(REQUIREMENT_COST))
            }
        }
    }
}

/// The cost of `==`; a failed operand counts as one.
pub(crate) fn equality(left: Option<&Value<'_>>, right: Option<&Value<'_>>) -> u64 {
    if let Some(
        Value::Quantity(_)
        | Value::Ip(_)
        | Value::Cidr(_)
        | Value::Format(_)
        | Value::Url(_)
        | Value::Semver(_)
        | Value::Authorization(_),
    ) = left
    {
        return 1;
    }
    let left = left.map_or(1, actual_size);
    let right = right.map_or(1, actual_size);
    scaled(left.min(right), TRAVERSAL)
}

/// `size * factor`, rounded up.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "sizes are far below 2^53, and casting saturates"
)]
pub(crate) fn scaled(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

/// `size * factor`, rounded down.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "sizes are far below 2^53, and casting saturates"
)]
fn whole(size: u64, factor: f64) -> u64 {
    (size as f64 * factor) as u64
}

/// The cost of a call that makes a list with this much work.
fn new_list(size: u64, factor: f64) -> u64 {
    whole(size, factor)
        .saturating_add(1)
        .saturating_add(LIST_COST)
}

/// The size a value is charged for.
pub(crate) fn actual_size(value: &Value<'_>) -> u64 {
    match value {
        Value::Optional(Some(value)) => actual_size(value),
        Value::Ip(address) => {
            if address.is_ipv4() {
                4
            } else {
                16
            }
        }
        Value::Cidr(cidr) => cidr.size(),
        other => other.size().map_or(1, |size| size as u64),
    }
}

/// The cost of visiting a value and everything in it.
fn visit_cost(value: &Value<'_>) -> u64 {
    match value {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "rounded down, unlike everything else"
        )]
        Value::String(text) => (text.len() as f64 * TRAVERSAL) as u64,
        Value::Bytes(bytes) => bytes.len() as u64 / 10,
        Value::List(list) => list
            .iter()
            .map(|item| item.map_or(1, |item| visit_cost(&item)))
            .sum(),
        Value::Map(map) => map
            .keys()
            .iter()
            .map(|key| {
                let value = match map.find(key) {
                    Ok(Some(Ok(value))) => visit_cost(&value),
                    _ => 1,
                };
                visit_cost(key) + value
            })
            .sum(),
        _ => 1,
    }
}

/// The functions Kubernetes charges one unit for whatever they are applied to.
pub(crate) fn is_unit_cost(function: &str) -> bool {
    matches!(
        function,
        "masked"
            | "prefixLength"
            | "family"
            | "isUnspecified"
            | "isLoopback"
            | "isLinkLocalMulticast"
            | "isLinkLocalUnicast"
            | "isGlobalUnicast"
            | "format.named"
            | "sign"
            | "asInteger"
            | "isInteger"
            | "asApproximateFloat"
            | "isGreaterThan"
            | "isLessThan"
            | "compareTo"
            | "add"
            | "sub"
            | "major"
            | "minor"
            | "patch"
            | "getScheme"
            | "getHostname"
            | "getHost"
            | "getPort"
            | "getEscapedPath"
            | "getQuery"
            | "serviceAccount"
            | "path"
            | "group"
            | "resource"
            | "subresource"
            | "namespace"
            | "name"
            | "allowed"
            | "reason"
            | "error"
            | "errored"
    ) || function == operator::NOT_STRICTLY_FALSE
}

#[cfg(test)]
mod tests;
