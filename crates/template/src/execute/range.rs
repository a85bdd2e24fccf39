//! `range`.

use bellwether_go::print;
use bellwether_go::value::{Type, Value};

use super::{Cell, Done, Flow, Run};
use crate::ast::Branch;

impl<'t> Run<'t, '_> {
    pub(super) fn range(&mut self, branch: &'t Branch, dot: &Cell) -> Done<Flow> {
        let start = self.variables.len();
        let collection = self.pipeline(&branch.pipe, dot)?;
        let mark = self.variables.len();
        let ran = match &collection.value {
            Value::Int(kind, count) => {
                self.one_variable(branch, &collection.value)?;
                self.count(branch, mark, (*count).max(0).unsigned_abs(), |index| {
                    Value::Int(*kind, i64::try_from(index).unwrap_or(i64::MAX))
                })?
            }
            Value::Uint(kind, count) => {
                self.one_variable(branch, &collection.value)?;
                self.count(branch, mark, *count, |index| Value::Uint(*kind, index))?
            }
            Value::List(list) => {
                let is_boxed = matches!(list.element(), Type::Interface);
                for (index, item) in list.iter().enumerate() {
                    let index = Value::int(i64::try_from(index).unwrap_or(i64::MAX));
                    let item = Cell {
                        value: item.clone(),
                        is_boxed,
                    };
                    if self.iteration(branch, mark, index, &item)? == Flow::Break {
                        break;
                    }
                }
                !list.is_empty()
            }
            Value::Map(map) => {
                let entries = map.entries();
                let is_boxed = matches!(map.element(), Type::Interface);
                for (key, value) in entries.iter() {
                    let item = Cell {
                        value: value.clone(),
                        is_boxed,
                    };
                    let key = Value::String(key.clone());
                    if self.iteration(branch, mark, key, &item)? == Flow::Break {
                        break;
                    }
                }
                !entries.is_empty()
            }
            Value::Invalid | Value::Nil => false,
            other => {
                return self.error(format!("range can't iterate over {}", print::text(other)));
            }
        };
        let flow = match &branch.otherwise {
            Some(nodes) if !ran => self.nodes(nodes, dot)?,
            _ => Flow::Next,
        };
        self.variables.truncate(start);
        Ok(flow)
    }

    fn one_variable(&self, branch: &Branch, value: &Value) -> Done<()> {
        if branch.pipe.declared.len() > 1 {
            let shown = print::text(value);
            return self.error(format!(
                "can't use {shown} to iterate over more than one variable"
            ));
        }
        Ok(())
    }

    fn count(
        &mut self,
        branch: &'t Branch,
        mark: usize,
        count: u64,
        item: impl Fn(u64) -> Value,
    ) -> Done<bool> {
        for index in 0..count {
            let item = Cell::new(item(index));
            if self.iteration(branch, mark, Value::Invalid, &item)? == Flow::Break {
                break;
            }
        }
        Ok(count > 0)
    }

    fn iteration(
        &mut self,
        branch: &'t Branch,
        mark: usize,
        index: Value,
        item: &Cell,
    ) -> Done<Flow> {
        self.step()?;
        let pipe = &branch.pipe;
        match pipe.declared.as_slice() {
            [] => {}
            [one] if pipe.is_assign => self.assign(one, item.clone())?,
            [first, second, ..] if pipe.is_assign => {
                self.assign(first, Cell::new(index))?;
                self.assign(second, item.clone())?;
            }
            [_] => self.variables[mark - 1].cell = item.clone(),
            [_, _, ..] => {
                self.variables[mark - 1].cell = item.clone();
                self.variables[mark - 2].cell = Cell::new(index);
            }
        }
        let flow = self.nodes(&branch.body, item);
        self.variables.truncate(mark);
        flow
    }
}
