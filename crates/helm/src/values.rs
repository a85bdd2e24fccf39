//! Values: how defaults, files and flags come together.

use serde_json::{Map, Number, Value};

use crate::chart::Chart;
use crate::error::{Error, Result};

type Table = Map<String, Value>;

const GLOBAL: &str = "global";

/// Makes floating point numbers of all numbers: Go reads files of values so, while flags give
/// integers.
pub(crate) fn as_floats(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(float) = number.as_f64().and_then(Number::from_f64) {
                *number = float;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(as_floats),
        Value::Object(members) => members.values_mut().for_each(as_floats),
        _ => {}
    }
}

/// Lays one file of values over others: tables merge, all else is replaced.
pub(crate) fn overlay(base: &mut Table, over: Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Object(base)), Value::Object(over)) => overlay(base, over),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

/// Fills in the defaults of a chart and of those inside of it.
#[derive(Debug, Default)]
pub(crate) struct Coalescer {
    /// True if nulls stay, for a later round to see them.
    pub(crate) keep_nulls: bool,
    pub(crate) warnings: Vec<String>,
}

impl Coalescer {
    /// Completes values by the defaults of a chart.
    pub(crate) fn coalesce(&mut self, chart: &Chart, values: Table) -> Result<Table> {
        self.chart(chart, values, "")
    }

    fn chart(&mut self, chart: &Chart, mut values: Table, prefix: &str) -> Result<Table> {
        self.defaults(chart, &mut values, prefix);
        let inner = joined(prefix, chart.name());
        for dependency in &chart.dependencies {
            let name = dependency.name();
            let mut own = match values.remove(name) {
                None => Table::new(),
                Some(Value::Object(own)) => own,
                Some(other) => {
                    let message = format!("type mismatch on {name}: {}", go_text(&other));
                    return Err(Error::values(message));
                }
            };
            self.globals(&mut own, &values, &inner);
            let own = self.chart(dependency, own, &inner)?;
            values.insert(name.to_owned(), Value::Object(own));
        }
        Ok(values)
    }

    fn defaults(&mut self, chart: &Chart, values: &mut Table, prefix: &str) {
        let prefix = joined(prefix, chart.name());
        for (key, default) in &chart.values {
            match values.get_mut(key) {
                None => {
                    values.insert(key.clone(), default.clone());
                }
                Some(Value::Null) if !self.keep_nulls => {
                    values.remove(key);
                }
                Some(Value::Object(own)) => match default {
                    Value::Object(defaults) => {
                        // Nulls for a subchart are its own affair.
                        let is_subchart =
                            chart.dependencies.iter().any(|inner| inner.name() == key);
                        let keep = self.keep_nulls || is_subchart;
                        self.tables(own, defaults.clone(), &joined(&prefix, key), keep);
                    }
                    Value::Null => {}
                    _ => self.warnings.push(format!(
                        "warning: skipped value for {prefix}.{key}: Not a table."
                    )),
                },
                Some(_) => {}
            }
        }
    }

    /// Hands the globals of a chart to one inside of it.
    fn globals(&mut self, inner: &mut Table, outer: &Table, prefix: &str) {
        let mut own = match inner.get(GLOBAL) {
            None => Table::new(),
            Some(Value::Object(own)) => own.clone(),
            Some(_) => {
                self.warnings.push(
                    "warning: skipping globals because destination global is not a table."
                        .to_owned(),
                );
                return;
            }
        };
        let none = Table::new();
        let handed = match outer.get(GLOBAL) {
            None => &none,
            Some(Value::Object(handed)) => handed,
            Some(_) => {
                let message = "warning: skipping globals because source global is not a table.";
                self.warnings.push(message.to_owned());
                return;
            }
        };
        for (key, value) in handed {
            match (value, own.get_mut(key)) {
                (Value::Object(handed), Some(Value::Object(known))) => {
                    let mut merged = handed.clone();
                    let known = std::mem::take(known);
                    self.tables(&mut merged, known, &joined(prefix, key), true);
                    own.insert(key.clone(), Value::Object(merged));
                }
                (Value::Object(_), Some(_)) => self.warnings.push(format!(
                    "Conflict: cannot merge map onto non-map for {key:?}. Skipping."
                )),
                (_, Some(Value::Object(_))) => {
                    self.warnings.push(format!("key {key} is table. Skipping"));
                }
                _ => {
                    own.insert(key.clone(), value.clone());
                }
            }
        }
        inner.insert(GLOBAL.to_owned(), Value::Object(own));
    }

    /// Completes a table by another one.
    pub(crate) fn tables(
        &mut self,
        target: &mut Table,
        mut source: Table,
        prefix: &str,
        keep_nulls: bool,
    ) {
        let not_null: std::collections::BTreeSet<String> = source
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, _)| key.clone())
            .collect();
        for (key, value) in target.iter() {
            if value.is_null() {
                source.insert(key.clone(), Value::Null);
            }
        }
        for (key, value) in source {
            let full = || joined(prefix, &key);
            match (target.get_mut(&key), value) {
                (Some(Value::Null), _) if !keep_nulls && not_null.contains(&key) => {
                    target.remove(&key);
                }
                (None, value) => {
                    target.insert(key, value);
                }
                (Some(Value::Object(own)), Value::Object(defaults)) => {
                    let prefix = full();
                    self.tables(own, defaults, &prefix, keep_nulls);
                }
                (Some(_), Value::Object(defaults)) => self.warnings.push(format!(
                    "warning: cannot overwrite table with non table for {} ({})",
                    full(),
                    go_text(&Value::Object(defaults))
                )),
                (Some(Value::Object(_)), value) if !value.is_null() => {
                    self.warnings.push(format!(
                        "warning: destination for {} is a table. Ignoring non-table value ({})",
                        full(),
                        go_text(&value)
                    ));
                }
                _ => {}
            }
        }
    }
}

fn joined(prefix: &str, key: &str) -> String {
    if prefix.is_empty() {
        return key.to_owned();
    }
    format!("{prefix}.{key}")
}

fn go_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The table at a path such as `kid.nested`.
pub(crate) fn table<'v>(values: &'v Table, path: &str) -> Option<&'v Table> {
    let mut table = values;
    for part in path.split('.') {
        table = table.get(part)?.as_object()?;
    }
    Some(table)
}

/// The value at a path, unless it is a table.
pub(crate) fn scalar<'v>(values: &'v Table, path: &str) -> Option<&'v Value> {
    let (table, key) = match path.rsplit_once('.') {
        Some((outer, key)) => (self::table(values, outer)?, key),
        None => (values, path),
    };
    table.get(key).filter(|value| !value.is_object())
}
