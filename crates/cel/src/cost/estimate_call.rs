//! Estimated costs of calls, function by function.

use super::estimate::{CostEstimate, Estimator, Size, Step, UNKNOWN};
use super::{
    CHECK_COST, LIST_COST, REGEX, REQUIREMENT_COST, REQUIREMENTS, TRAVERSAL, is_unit_cost,
};
use crate::ast::{Expr, ExprKind, Literal, operator};
use crate::types::{AbstractType, Type};

/// A call as one of its overloads sees it.
pub(crate) struct Invocation<'s> {
    pub(crate) expr: &'s Expr,
    pub(crate) function: &'s str,
    pub(crate) overload: &'s str,
    pub(crate) target: Option<&'s Expr>,
    pub(crate) arguments: &'s [Expr],
    pub(crate) costs: &'s [CostEstimate],
}

/// The cost of a call and the size of its result, where something is known about it.
type Estimate = (CostEstimate, Option<Size>);

/// Longest pattern behind a named format, for estimates.
const FORMAT_PATTERN_SIZE: f64 = 128.0;

/// Longest name of a format.
const FORMAT_NAME_SIZE: u64 = 64;

impl Estimator<'_> {
    pub(crate) fn overload_cost(&mut self, invocation: &Invocation<'_>) -> Estimate {
        let arguments = invocation
            .costs
            .iter()
            .fold(CostEstimate::default(), |sum, cost| sum.plus(*cost));
        if let Some((cost, size)) = self
            .list_cost(invocation)
            .or_else(|| self.kubernetes_cost(invocation))
        {
            return (cost.plus(arguments), size);
        }
        if let Some(estimate) = self.branching_cost(invocation) {
            return estimate;
        }
        let (cost, size) = self
            .standard_cost(invocation)
            .or_else(|| self.conversion_cost(invocation))
            .unwrap_or((CostEstimate::fixed(1), None));
        (cost.plus(arguments), size)
    }

    /// Operators that do not evaluate all their operands.
    fn branching_cost(&mut self, invocation: &Invocation<'_>) -> Option<Estimate> {
        match (invocation.function, invocation.costs, invocation.arguments) {
            (operator::LOGICAL_AND | operator::LOGICAL_OR, [left, right], _) => {
                let cost = CostEstimate {
                    min: left.min,
                    max: left.plus(*right).max,
                };
                Some((cost, None))
            }
            (operator::CONDITIONAL, [condition, yes, no], [_, yes_expr, no_expr]) => {
                let size = self
                    .size_or_unknown(yes_expr)
                    .union(self.size_or_unknown(no_expr));
                let entry = match (self.entry_size(yes_expr), self.entry_size(no_expr)) {
                    (Some(yes), Some(no)) => Some(yes.union(no)),
                    _ => None,
                };
                self.set_entry_size(invocation.expr.id, entry);
                Some((condition.plus(yes.union(*no)), Some(size)))
            }
            _ => None,
        }
    }

    /// Conversions, whose results have other sizes than their arguments.
    fn conversion_cost(&mut self, invocation: &Invocation<'_>) -> Option<Estimate> {
        match (invocation.overload, invocation.target, invocation.arguments) {
            ("string_to_bytes", _, [argument]) => {
                let size = self.size_or_unknown(argument);
                let result = Size {
                    min: size.min,
                    max: size.max.wrapping_mul(4),
                };
                Some((size.scaled(TRAVERSAL), Some(result)))
            }
            ("bytes_to_string", _, [argument]) => {
                let size = self.size_or_unknown(argument);
                let result = Size {
                    min: size.min / 4,
                    max: size.max,
                };
                Some((size.scaled(TRAVERSAL), Some(result)))
            }
            ("strings_quote", _, [argument]) => {
                let size = self.size_or_unknown(argument);
                let result = Size {
                    min: size.min + 2,
                    max: size.max.wrapping_mul(2).wrapping_add(2),
                };
                Some((size.scaled(TRAVERSAL), Some(result)))
            }
            _ => None,
        }
    }

    fn standard_cost(&mut self, invocation: &Invocation<'_>) -> Option<Estimate> {
        let one = Size::fixed(1);
        match (invocation.overload, invocation.target, invocation.arguments) {
            ("string_format", Some(target), _) => {
                Some((self.size_or_unknown(target).scaled(TRAVERSAL), None))
            }
            ("starts_with_string" | "ends_with_string", _, [argument]) => {
                Some((self.size_or_unknown(argument).scaled(TRAVERSAL), None))
            }
            ("in_list", _, [_, list]) => Some((self.size_or_unknown(list).scaled(1.0), None)),
            ("matches_string", Some(target), [pattern]) => {
                let text = self.size_or_unknown(target).plus(one).scaled(TRAVERSAL);
                let pattern = self.size_or_unknown(pattern).scaled(REGEX);
                Some((text.times(pattern), None))
            }
            ("contains_string", Some(target), [part]) => {
                let text = self.size_or_unknown(target).scaled(TRAVERSAL);
                let part = self.size_or_unknown(part).scaled(TRAVERSAL);
                Some((text.times(part), None))
            }
            ("add_string" | "add_bytes" | "add_list", _, [left, right]) => {
                Some(self.addition_cost(invocation, left, right))
            }
            (
                "less_string"
                | "greater_string"
                | "less_equals_string"
                | "greater_equals_string"
                | "less_bytes"
                | "greater_bytes"
                | "less_equals_bytes"
                | "greater_equals_bytes"
                | "equals"
                | "not_equals",
                _,
                [left, right],
            ) => {
                let shorter = self
                    .size_or_unknown(left)
                    .max
                    .min(self.size_or_unknown(right).max);
                let cost = CostEstimate {
                    min: u64::from(shorter > 0),
                    max: shorter,
                };
                Some((cost.scaled(TRAVERSAL), None))
            }
            _ => None,
        }
    }

    fn addition_cost(
        &mut self,
        invocation: &Invocation<'_>,
        left: &Expr,
        right: &Expr,
    ) -> Estimate {
        let size = self.size_or_unknown(left).plus(self.size_or_unknown(right));
        if let (Some(first), Some(second)) = (self.entry_size(left), self.entry_size(right)) {
            self.set_entry_size(invocation.expr.id, Some(first.union(second)));
        }
        let cost = if invocation.overload == "add_list" {
            CostEstimate::fixed(1)
        } else {
            size.scaled(TRAVERSAL)
        };
        (cost, Some(size))
    }

    /// Functions of the lists and sets libraries.
    fn list_cost(&mut self, invocation: &Invocation<'_>) -> Option<Estimate> {
        let compare = match invocation.overload {
            "list_sets_contains_list" | "list_sets_intersects_list" => 1.0,
            "list_sets_equivalent_list" => 2.0,
            _ => return self.new_list_cost(invocation),
        };
        let [left, right] = invocation.arguments else {
            return None;
        };
        let product = self
            .size_or_unknown(left)
            .times(self.size_or_unknown(right));
        let cost = product.scaled(compare).plus(CostEstimate::fixed(1));
        Some((cost, None))
    }

    /// Functions that make a list: the call, the list, and the work for its elements.
    fn new_list_cost(&mut self, invocation: &Invocation<'_>) -> Option<Estimate> {
        let (work, factor) = match (invocation.overload, invocation.target, invocation.arguments) {
            ("list_slice", Some(target), [start, end]) => {
                let limit = self.size_or_unknown(target).max;
                let start = literal_int(start).unwrap_or(0);
                let end = literal_int(end).unwrap_or(limit);
                (Size::fixed(end.wrapping_sub(start)), 1.0)
            }
            ("lists_range", None, [count]) => {
                (Size::fixed(literal_int(count).unwrap_or(u64::MAX)), 1.0)
            }
            ("list_reverse" | "list_flatten", Some(target), []) => {
                (self.size_or_unknown(target), 1.0)
            }
            ("list_flatten_int", Some(target), [depth]) => {
                #[expect(clippy::cast_precision_loss, reason = "an estimate")]
                let depth = literal_int(depth).unwrap_or(u64::MAX) as f64;
                (self.size_or_unknown(target), depth)
            }
            ("list_distinct", Some(target), []) => {
                let size = self.size_or_unknown(target);
                (size.times(size), 2.0)
            }
            (overload, Some(target), arguments) => {
                let keys = arguments.first().unwrap_or(target);
                let of = overload.strip_prefix("list_")?;
                let of = of
                    .strip_suffix("_sort")
                    .or_else(|| of.strip_suffix("_sortByAssociatedKeys"))?;
                let size = self.size_or_unknown(keys);
                let text = matches!(of, "string" | "bytes");
                let factor = if text { 2.0 + TRAVERSAL } else { 2.0 };
                (size.times(size), factor)
            }
            _ => return None,
        };
        let base = CostEstimate::fixed(1 + LIST_COST);
        Some((work.scaled(factor).plus(base), Some(work)))
    }

    /// Functions of the Kubernetes libraries, and those whose cost Kubernetes defines again.
    fn kubernetes_cost(&mut self, invocation: &Invocation<'_>) -> Option<Estimate> {
        if is_unit_cost(invocation.function) && invocation.function != operator::NOT_STRICTLY_FALSE
        {
            return Some((CostEstimate::fixed(1), None));
        }
        match (invocation.function, invocation.target, invocation.arguments) {
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(target), _) => {
                Some((self.visit_cost(target), None))
            }
            ("url", _, [argument]) => {
                let size = self.size_or_unknown(argument);
                Some((size.scaled(TRAVERSAL), Some(size)))
            }
            ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(target), _) => {
                let size = self.size_or_unknown(target);
                Some((size.scaled(TRAVERSAL), Some(size)))
            }
            ("replace", Some(target), [from, to, ..]) => Some(self.replace_cost(target, from, to)),
            ("split", Some(target), arguments) => {
                let size = self.size_or_unknown(target);
                let limit = match arguments.get(1).map(|limit| &limit.kind) {
                    // A negative limit means no limit; Kubernetes reads it as a huge number.
                    Some(ExprKind::Literal(Literal::Int(limit))) => limit.cast_unsigned(),
                    _ => size.max,
                };
                let result = Size { min: 0, max: limit };
                Some((size.scaled(2.0 * TRAVERSAL), Some(result)))
            }
            ("join", Some(target), arguments) => Some(self.join_cost(target, arguments.first())),
            ("find" | "findAll", Some(target), [pattern, ..]) => {
                let size = self.size_or_unknown(target);
                let text = size.plus(Size::fixed(1)).scaled(TRAVERSAL);
                let pattern = self.size_or_unknown(pattern).scaled(REGEX);
                let result = Size {
                    min: 0,
                    max: size.max,
                };
                Some((text.times(pattern), Some(result)))
            }
            (operator::EQUALS, _, [left, right]) => self.equality_cost(left, right),
            ("check", _, _) => Some((CostEstimate::fixed(CHECK_COST), None)),
            ("fieldSelector" | "labelSelector", _, [selector]) => {
                let size = self.size_or_unknown(selector);
                let requirements = size.scaled(REQUIREMENTS);
                let requirements = requirements.times(CostEstimate::fixed(REQUIREMENT_COST));
                let cost = CostEstimate::fixed(LIST_COST).plus(size.scaled(TRAVERSAL));
                Some((cost.plus(requirements), None))
            }
            _ => self.reading_cost(invocation),
        }
    }

    /// Functions that read a text as something else, and those on networks and formats.
    fn reading_cost(&mut self, invocation: &Invocation<'_>) -> Option<Estimate> {
        match (invocation.function, invocation.target, invocation.arguments) {
            ("ip", _, _) if invocation.overload == "cidr_ip" => {
                Some((CostEstimate::fixed(1), None))
            }
            (
                "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver"
                | "isSemver",
                _,
                [argument, ..],
            ) => Some((self.size_or_unknown(argument).scaled(TRAVERSAL), None)),
            ("ip.isCanonical", _, [argument, ..]) => {
                Some((self.size_or_unknown(argument).scaled(2.0 * TRAVERSAL), None))
            }
            ("containsIP" | "containsCIDR", _, [argument, ..]) => {
                Some((self.contains_cost(invocation, argument), None))
            }
            ("validate", _, [argument, ..]) => {
                let pass = self.size_or_unknown(argument).scaled(TRAVERSAL);
                Some((pass.scaled(FORMAT_PATTERN_SIZE * REGEX), None))
            }
            _ => None,
        }
    }

    /// A visit to every element of a list, or a pass over a text.
    fn visit_cost(&mut self, target: &Expr) -> CostEstimate {
        let count = self.size_or_unknown(target);
        let Type::List(element) = self.type_of(target).clone() else {
            return count.scaled(TRAVERSAL);
        };
        let mut each = CostEstimate::fixed(1);
        if matches!(*element, Type::String | Type::Bytes) {
            each = each.plus(self.element_size(target).scaled(TRAVERSAL));
        }
        count.times(each)
    }

    /// The declared size of the elements of a list.
    fn element_size(&self, list: &Expr) -> Size {
        let mut path = self.path(list);
        if path.is_empty() {
            return UNKNOWN;
        }
        path.push(Step::Items);
        self.declared_size(&path).unwrap_or(UNKNOWN)
    }

    fn join_cost(&mut self, target: &Expr, separator: Option<&Expr>) -> Estimate {
        let count = self.size_or_unknown(target);
        let mut size = Size::default();
        if matches!(self.type_of(target), Type::List(_)) {
            size = count.times(self.element_size(target));
        }
        if let Some(separator) = separator {
            let separators = Size {
                min: count.min.saturating_sub(1),
                max: count.max.saturating_sub(1),
            };
            size = size.plus(self.size_or_unknown(separator).times(separators));
        }
        (size.scaled(TRAVERSAL), Some(size))
    }

    fn replace_cost(&mut self, target: &Expr, from: &Expr, to: &Expr) -> Estimate {
        let size = self.size_or_unknown(target);
        let from = self.size_or_unknown(from);
        let to = self.size_or_unknown(to);
        let (mut count, mut kept) = (Size::default(), Size::default());
        if from.min == 0 {
            count.max = size.max.saturating_add(1);
            kept.max = size.max;
        } else if to.max <= from.min {
            kept.max = size.max;
        } else {
            count.max = size.max.div_ceil(from.min);
        }
        if from.max == 0 {
            count.min = size.min.saturating_add(1);
            kept.min = size.min;
        } else if from.max <= to.min {
            kept.min = size.min;
        } else {
            count.min = size.min.div_ceil(from.max);
        }
        let result = count.times(to).plus(kept);
        (size.scaled(2.0 * TRAVERSAL), Some(result))
    }

    fn contains_cost(&mut self, invocation: &Invocation<'_>, argument: &Expr) -> CostEstimate {
        let address = Size { min: 4, max: 16 };
        let mut cost = address.plus(address).scaled(TRAVERSAL);
        if invocation.function == "containsCIDR" {
            cost = cost
                .plus(address.scaled(TRAVERSAL))
                .plus(CostEstimate::fixed(1));
        }
        if matches!(
            invocation.overload,
            "cidr_contains_ip_string" | "cidr_contains_cidr_string"
        ) {
            cost = cost.plus(self.size_or_unknown(argument).scaled(TRAVERSAL));
        }
        cost
    }

    fn equality_cost(&mut self, left: &Expr, right: &Expr) -> Option<Estimate> {
        let Type::Abstract(kind) = *self.type_of(left) else {
            return None;
        };
        if *self.type_of(right) != Type::Abstract(kind) {
            return None;
        }
        let max = match kind {
            AbstractType::Format => FORMAT_NAME_SIZE,
            AbstractType::Url => self.size(right).unwrap_or(Size::fixed(1)).max,
            _ => return Some((CostEstimate::fixed(1), None)),
        };
        Some((CostEstimate { min: 1, max }.scaled(TRAVERSAL), None))
    }
}

/// The value of an integer literal; negative ones count as zero.
fn literal_int(expr: &Expr) -> Option<u64> {
    match expr.kind {
        ExprKind::Literal(Literal::Int(value)) => Some(u64::try_from(value).unwrap_or(0)),
        _ => None,
    }
}
