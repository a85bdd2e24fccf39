//! What an expression can cost at most, before it is ever evaluated.
//!
//! Sizes come from schemas (`maxLength`, `maxItems`, `maxProperties`) or, where those are
//! silent, from the largest request Kubernetes accepts; folds multiply. The rules are those of
//! cel-go's estimator with the size estimator of Kubernetes.

use std::collections::HashMap;

use super::estimate_call;
use super::{LIST_COST, MAP_COST, SELECT_COST, STRUCT_COST};
use crate::ast::{Call, Comprehension, Expr, ExprId, ExprKind, Literal};
use crate::check::{CallStyle, Reference};
use crate::program::Inner;
use crate::schema::DeclType;
use crate::types::Type;

/// Bounds of a cost. A maximum of [`u64::MAX`] means that nothing bounds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CostEstimate {
    /// At least this much.
    pub min: u64,
    /// At most this much.
    pub max: u64,
}

impl CostEstimate {
    /// What Kubernetes lets one rule cost, estimated, counting every place it applies to.
    pub const RULE_LIMIT: u64 = 10_000_000;

    /// What Kubernetes lets all rules of one custom resource definition cost together.
    pub const DEFINITION_LIMIT: u64 = 100_000_000;

    pub(crate) const fn fixed(cost: u64) -> CostEstimate {
        CostEstimate {
            min: cost,
            max: cost,
        }
    }

    pub(crate) fn plus(self, other: CostEstimate) -> CostEstimate {
        CostEstimate {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }

    pub(crate) fn times(self, other: CostEstimate) -> CostEstimate {
        CostEstimate {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }

    pub(crate) fn scaled(self, factor: f64) -> CostEstimate {
        CostEstimate {
            min: scaled(self.min, factor),
            max: scaled(self.max, factor),
        }
    }

    pub(crate) fn union(self, other: CostEstimate) -> CostEstimate {
        CostEstimate {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }
}

/// `value * factor` rounded up; the conversion to an integer saturates.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "an estimate, and casting saturates"
)]
fn scaled(value: u64, factor: f64) -> u64 {
    (value as f64 * factor).ceil() as u64
}

/// Bounds of a size, in the same arithmetic.
pub(crate) type Size = CostEstimate;

/// A size nothing is known about.
pub(crate) const UNKNOWN: Size = Size {
    min: 0,
    max: u64::MAX,
};

/// Sizes of the keys and values of a container made by the expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntrySize {
    pub(crate) is_list: bool,
    pub(crate) key: Size,
    pub(crate) value: Size,
}

impl EntrySize {
    pub(crate) fn union(self, other: EntrySize) -> EntrySize {
        EntrySize {
            is_list: self.is_list,
            key: self.key.union(other.key),
            value: self.value.union(other.value),
        }
    }
}

/// One step from a variable into its declared type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Variable(String),
    Field(String),
    Items,
    Values,
    Keys,
    Indices,
}

/// Estimates the cost of a compiled expression.
pub(crate) fn estimate(program: &Inner) -> CostEstimate {
    let mut estimator = Estimator {
        program,
        locals: Vec::new(),
        paths: HashMap::new(),
        sizes: HashMap::new(),
        entry_sizes: HashMap::new(),
    };
    estimator.cost(&program.expr)
}

pub(crate) struct Estimator<'e> {
    program: &'e Inner,
    locals: Vec<Local>,
    paths: HashMap<ExprId, Vec<Step>>,
    sizes: HashMap<ExprId, Size>,
    entry_sizes: HashMap<ExprId, EntrySize>,
}

struct Local {
    name: String,
    path: Vec<Step>,
    size: Option<Size>,
    entry_size: Option<EntrySize>,
}

impl Estimator<'_> {
    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.iter().rev().find(|local| local.name == name)
    }

    pub(crate) fn type_of(&self, expr: &Expr) -> &Type {
        self.program.checked.type_of(expr.id)
    }

    fn cost(&mut self, expr: &Expr) -> CostEstimate {
        if let Some(Reference::Global(index)) = self.program.checked.reference(expr.id) {
            let name = self.program.globals.variables[*index].name.to_string();
            self.paths.insert(expr.id, vec![Step::Variable(name)]);
            return CostEstimate::fixed(SELECT_COST);
        }
        match &expr.kind {
            ExprKind::Unspecified | ExprKind::Literal(_) => CostEstimate::default(),
            ExprKind::Ident(name) => {
                let path = match self.local(name) {
                    Some(local) => local.path.clone(),
                    None => vec![Step::Variable(name.clone())],
                };
                self.paths.insert(expr.id, path);
                CostEstimate::fixed(SELECT_COST)
            }
            ExprKind::Select(_) => self.select_cost(expr),
            ExprKind::Call(call) => self.call_cost(expr, call),
            ExprKind::List(_) | ExprKind::Map(_) => self.aggregate_cost(expr),
            ExprKind::Struct(_, fields) => fields
                .iter()
                .map(|field| self.cost(&field.value))
                .fold(CostEstimate::fixed(STRUCT_COST), CostEstimate::plus),
            ExprKind::Comprehension(fold) if fold.is_bind() => self.bind_cost(expr, fold),
            ExprKind::Comprehension(fold) => self.fold_cost(expr, fold),
        }
    }

    fn select_cost(&mut self, expr: &Expr) -> CostEstimate {
        if let Some(Reference::Type(of)) = self.program.checked.reference(expr.id) {
            let name = of.runtime_name().to_owned();
            self.paths.insert(expr.id, vec![Step::Variable(name)]);
            return CostEstimate::fixed(SELECT_COST);
        }
        let ExprKind::Select(select) = &expr.kind else {
            return CostEstimate::default();
        };
        let operand = self.cost(&select.operand);
        if select.test_only {
            // Kubernetes does not charge for presence tests.
            return operand;
        }
        let own = match self.type_of(&select.operand) {
            Type::Map(_) | Type::Object(_) | Type::Parameter(_) => SELECT_COST,
            Type::Abstract(kind) if kind.is_message() => SELECT_COST,
            _ => 0,
        };
        let mut path = self.path(&select.operand);
        path.push(Step::Field(select.field.clone()));
        self.paths.insert(expr.id, path);
        operand.plus(CostEstimate::fixed(own))
    }

    fn aggregate_cost(&mut self, expr: &Expr) -> CostEstimate {
        let empty = Size {
            min: u64::MAX,
            max: 0,
        };
        let (mut sum, mut key, mut value) = (CostEstimate::default(), empty, empty);
        let (is_list, base, count) = match &expr.kind {
            ExprKind::List(elements) => {
                for element in elements {
                    sum = sum.plus(self.cost(&element.value));
                    value = value.union(self.size_or_unknown(&element.value));
                }
                key = Size::fixed(1);
                (true, LIST_COST, elements.len())
            }
            ExprKind::Map(entries) => {
                for entry in entries {
                    sum = sum.plus(self.cost(&entry.key));
                    sum = sum.plus(self.cost(&entry.value));
                    key = key.union(self.size_or_unknown(&entry.key));
                    value = value.union(self.size_or_unknown(&entry.value));
                }
                (false, MAP_COST, entries.len())
            }
            _ => return sum,
        };
        if count == 0 {
            value.min = 0;
            key.min = u64::from(is_list);
        }
        let sizes = EntrySize {
            is_list,
            key,
            value,
        };
        self.entry_sizes.insert(expr.id, sizes);
        sum.plus(CostEstimate::fixed(base))
    }

    fn bind_cost(&mut self, expr: &Expr, fold: &Comprehension) -> CostEstimate {
        let mut sum = self.cost(&fold.range);
        sum = sum.plus(self.cost(&fold.init));
        self.push_value(&fold.accumulator, &fold.init);
        sum = sum.plus(self.cost(&fold.result));
        self.locals.pop();
        self.copy_sizes(expr.id, &fold.result);
        sum
    }

    fn fold_cost(&mut self, expr: &Expr, fold: &Comprehension) -> CostEstimate {
        let mut sum = self.cost(&fold.range);
        sum = sum.plus(self.cost(&fold.init));
        let outside = self.locals.len();
        self.push_value(&fold.accumulator, &fold.init);
        self.push_iteration(fold);
        let condition = self.cost(&fold.condition);
        let step = self.cost(&fold.step);
        self.locals.truncate(outside + 1);
        sum = sum.plus(self.cost(&fold.result));
        self.locals.truncate(outside);
        let count = self.size_or_unknown(&fold.range);
        sum = sum.plus(count.times(step.plus(condition)));
        match &fold.init.kind {
            ExprKind::Literal(_) => {
                if let Some(size) = self.size(&fold.init) {
                    self.sizes.insert(expr.id, size);
                }
            }
            ExprKind::List(_) | ExprKind::Map(_) => {
                self.sizes.insert(expr.id, count);
                if let Some(entry) = self.entry_size(&fold.step) {
                    self.entry_sizes.insert(expr.id, entry);
                }
            }
            _ => {}
        }
        sum
    }

    fn push_value(&mut self, name: &str, of: &Expr) {
        let local = Local {
            name: name.to_owned(),
            path: self.path(of),
            size: self.size(of),
            entry_size: self.entry_size(of),
        };
        self.locals.push(local);
    }

    fn push_iteration(&mut self, fold: &Comprehension) {
        let entry = self.entry_size(&fold.range);
        let is_list = entry.map_or_else(
            || matches!(self.type_of(&fold.range), Type::List(_)),
            |entry| entry.is_list,
        );
        let path = self.path(&fold.range);
        let key_size = entry.map(|entry| entry.key);
        let value_size = entry.map(|entry| entry.value);
        let mut push = |name: &str, step: Step, size: Option<Size>| {
            let mut path = path.clone();
            path.push(step);
            self.locals.push(Local {
                name: name.to_owned(),
                path,
                size,
                entry_size: None,
            });
        };
        match &fold.second_variable {
            None if is_list => push(&fold.variable, Step::Items, value_size),
            None => push(&fold.variable, Step::Keys, key_size),
            Some(second) => {
                let (first, other) = if is_list {
                    (Step::Indices, Step::Items)
                } else {
                    (Step::Keys, Step::Values)
                };
                push(&fold.variable, first, key_size);
                push(second, other, value_size);
            }
        }
    }

    fn call_cost(&mut self, expr: &Expr, call: &Call) -> CostEstimate {
        let reference = self.program.checked.reference(expr.id);
        let Some(Reference::Call(function, fitting, style)) = reference else {
            return self.optional_select_cost(expr, call);
        };
        if &*function.name == "dyn"
            && let [argument] = call.arguments.as_slice()
        {
            let cost = self.cost(argument);
            self.copy_sizes(expr.id, argument);
            return CostEstimate::fixed(1).plus(cost);
        }
        let target = match style {
            CallStyle::Ordinary => call.target.as_ref(),
            CallStyle::Namespaced => None,
        };
        let costs: Vec<CostEstimate> = call
            .arguments
            .iter()
            .map(|argument| self.cost(argument))
            .collect();
        let target_cost = target.map_or(CostEstimate::default(), |target| self.cost(target));
        let mut total = CostEstimate {
            min: u64::MAX,
            max: 0,
        };
        let mut result_size: Option<Size> = None;
        for index in fitting {
            let Some(overload) = function.overloads.get(*index) else {
                continue;
            };
            let invocation = estimate_call::Invocation {
                expr,
                function: &function.name,
                overload: &overload.id,
                target,
                arguments: &call.arguments,
                costs: &costs,
            };
            let (cost, size) = self.overload_cost(&invocation);
            total = total.union(cost);
            result_size = match (result_size, size) {
                (Some(known), Some(size)) => Some(known.union(size)),
                (known, size) => known.or(size),
            };
            self.index_path(expr, &overload.id, &call.arguments, &mut result_size);
            result_size = result_size.or_else(|| self.size(expr));
        }
        if let Some(size) = result_size {
            self.sizes.insert(expr.id, size);
        }
        target_cost.plus(total)
    }

    /// `a.?b` has no overload to look at: cel-go charges nothing for it.
    fn optional_select_cost(&mut self, _expr: &Expr, call: &Call) -> CostEstimate {
        let mut sum = CostEstimate::default();
        for argument in &call.arguments {
            sum = sum.plus(self.cost(argument));
        }
        sum.plus(CostEstimate::fixed(1))
    }

    /// Indexing leads from a container to what it holds.
    fn index_path(
        &mut self,
        expr: &Expr,
        overload: &str,
        arguments: &[Expr],
        result_size: &mut Option<Size>,
    ) {
        let step = match overload {
            "index_list" => Step::Items,
            "index_map" => Step::Values,
            _ => return,
        };
        let Some(container) = arguments.first() else {
            return;
        };
        *result_size = self.entry_size(container).map(|entry| entry.value);
        let mut path = self.path(container);
        path.push(step);
        self.paths.insert(expr.id, path);
    }

    // Sizes.

    pub(crate) fn path(&self, expr: &Expr) -> Vec<Step> {
        if let ExprKind::Ident(name) = &expr.kind
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths.get(&expr.id).cloned().unwrap_or_default()
    }

    pub(crate) fn size(&mut self, expr: &Expr) -> Option<Size> {
        if let Some(size) = self.sizes.get(&expr.id) {
            return Some(*size);
        }
        if let Some(size) = literal_size(expr) {
            return Some(size);
        }
        let path = self.path(expr);
        if let Some(size) = self.declared_size(&path) {
            self.sizes.insert(expr.id, size);
            return Some(size);
        }
        if self.type_of(expr).is_scalar() {
            return Some(Size::fixed(1));
        }
        match &expr.kind {
            ExprKind::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        }
    }

    pub(crate) fn size_or_unknown(&mut self, expr: &Expr) -> Size {
        self.size(expr).unwrap_or(UNKNOWN)
    }

    /// The size the schema allows at the end of a path. Like Kubernetes, which knows only one
    /// schema and does not look at what a path starts from, a path that starts anywhere else is
    /// followed from the first variable that has a schema.
    pub(crate) fn declared_size(&self, path: &[Step]) -> Option<Size> {
        let (start, rest) = path.split_first()?;
        let globals = &self.program.globals.variables;
        let own = globals
            .iter()
            .find(|global| matches!(start, Step::Variable(name) if **name == *global.name));
        let root = own
            .and_then(|global| global.decl.as_ref())
            .or_else(|| globals.iter().find_map(|global| global.decl.as_ref()))?;
        let mut decl: &DeclType = root;
        for step in rest {
            decl = descend(decl, step)?;
        }
        Some(Size {
            min: 0,
            max: decl.max_elements(),
        })
    }

    pub(crate) fn entry_size(&self, expr: &Expr) -> Option<EntrySize> {
        if let Some(size) = self.entry_sizes.get(&expr.id) {
            return Some(*size);
        }
        match &expr.kind {
            ExprKind::Ident(name) => self.local(name).and_then(|local| local.entry_size),
            _ => None,
        }
    }

    pub(crate) fn set_entry_size(&mut self, id: ExprId, size: Option<EntrySize>) {
        if let Some(size) = size {
            self.entry_sizes.insert(id, size);
        }
    }

    fn copy_sizes(&mut self, to: ExprId, from: &Expr) {
        if let Some(size) = self.size(from) {
            self.sizes.insert(to, size);
        }
        let entry = self.entry_size(from);
        self.set_entry_size(to, entry);
    }
}

fn descend<'d>(decl: &'d DeclType, step: &Step) -> Option<&'d DeclType> {
    match (decl, step) {
        (DeclType::List(list), Step::Items | Step::Values) => Some(&list.items),
        (DeclType::Map(map), Step::Items | Step::Values) => Some(&map.values),
        // Keys are texts nothing is declared about.
        (DeclType::Map(_), Step::Keys) => Some(&KEY),
        (DeclType::Object(object), Step::Field(name)) => {
            object.fields.get(&*crate::escaping::unescape(name)?)
        }
        _ => None,
    }
}

/// The type of the keys of a declared map. Kubernetes gives it no maximal length, so keys count
/// as empty.
static KEY: DeclType = DeclType::Bool(crate::schema::Scalar { nullable: false });

fn literal_size(expr: &Expr) -> Option<Size> {
    let size = match &expr.kind {
        ExprKind::Literal(Literal::String(text)) => crate::value::character_count(text),
        ExprKind::Literal(Literal::Bytes(bytes)) => bytes.len(),
        ExprKind::Literal(_) => 1,
        ExprKind::List(elements) => elements.len(),
        ExprKind::Map(entries) => entries.len(),
        _ => return None,
    };
    Some(Size::fixed(size as u64))
}
