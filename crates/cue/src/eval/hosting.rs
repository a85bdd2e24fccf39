//! What builtins may ask the evaluation, and the validators that need to ask a lot.

use std::sync::Arc;

use super::call::contains_opaque;
use super::{Base, CloseInfo, Conjunct, ErrId, Evaluator, NodeId, Source, Strictness, Val};
use crate::diagnostic::Code;
use crate::ir::{ArcKind, Callee, Predeclared};
use crate::label::Label;
use crate::number::Number;
use crate::token::Pos;
use crate::value::{Failure, Host, Value};

impl Evaluator {
    /// `matchN` and `matchIf`.
    pub(super) fn match_schemas(
        &mut self,
        node: NodeId,
        callee: Callee,
        arguments: &[Val],
        pos: Pos,
    ) -> Result<(), ErrId> {
        // The value without its constraints: a validator must not meet itself again.
        let handle = self.bare(node, 0);
        let text = self.show_node(node);
        if let Callee::Predeclared(Predeclared::MatchIf) = callee {
            return self.match_if(&handle, &text, arguments, pos);
        }
        let list = match arguments.get(1) {
            Some(Val::Node(list)) => *list,
            _ => NodeId::NONE,
        };
        if !list.is_none() {
            self.settle(list, true);
        }
        let items = if list.is_none() {
            None
        } else {
            self.list_items(&Val::Node(self.deref(list)))
        };
        let Some(items) = items else {
            return Err(self.error_at(Code::Eval, pos, "matchN: second argument must be a list"));
        };
        let (mut matched, mut undecided) = (0_i64, false);
        for item in &items {
            match self.mismatch(&handle, item, Strictness::Final) {
                None => matched += 1,
                Some((_, passing)) => undecided |= passing,
            }
        }
        let count = Value::Number(Number::from(matched));
        let wanted = self.schema(arguments, 0);
        if self.matches(&count, &wanted).is_ok() {
            return Ok(());
        }
        let wanted = Host::show(self, &wanted);
        let message = format!(
            "invalid value {text} (does not satisfy matchN): {matched} matched, expected {wanted}"
        );
        let code = if undecided {
            Code::Incomplete
        } else {
            Code::Eval
        };
        Err(self.error_at(code, pos, message))
    }

    /// `matchIf(condition, then, else)`
    fn match_if(
        &mut self,
        handle: &Value,
        text: &str,
        arguments: &[Val],
        pos: Pos,
    ) -> Result<(), ErrId> {
        let condition = self.schema(arguments, 0);
        let holds = self
            .mismatch(handle, &condition, Strictness::Final)
            .is_none();
        let chosen = self.schema(arguments, if holds { 1 } else { 2 });
        match self.mismatch(handle, &chosen, Strictness::Final) {
            None => Ok(()),
            Some((detail, _)) => {
                let message = format!("invalid value {text} (does not satisfy matchIf): {detail}");
                Err(self.error_at(Code::Eval, pos, message))
            }
        }
    }

    /// An argument that is a schema, as builtins see it.
    fn schema(&mut self, arguments: &[Val], index: usize) -> Value {
        match arguments.get(index) {
            Some(Val::Node(schema)) => self.opaque(*schema),
            Some(Val::Atom(value)) => value.clone(),
            _ => Value::Null,
        }
    }

    /// The value of a node as plain data; what is not concrete stays a handle.
    fn bare(&mut self, node: NodeId, depth: u32) -> Value {
        let original = node;
        let Ok(node) = self.default_node(node, Pos::NONE) else {
            return self.opaque(original);
        };
        let slot = self.node(node);
        if let Some(atom) = &slot.scalar.atom {
            return atom.clone();
        }
        if depth > 100 || slot.error.is_some() {
            return self.opaque(node);
        }
        if let Some(lazy) = &slot.lazy {
            return lazy.value.clone();
        }
        match slot.base {
            Base::Struct => {
                let mut fields = Vec::new();
                for (label, arc) in self.ordered_arcs(node) {
                    if label.is_regular() && self.node(arc).arc == ArcKind::Member {
                        fields.push((self.labels.text(label), self.bare(arc, depth + 1)));
                    }
                }
                Value::Struct(fields.into())
            }
            Base::List => {
                let arcs = self.ordered_arcs(node);
                Value::list(
                    arcs.into_iter()
                        .map(|(_, arc)| self.bare(arc, depth + 1))
                        .collect::<Vec<_>>(),
                )
            }
            _ => self.opaque(node),
        }
    }

    fn node_for(&mut self, value: &Value) -> NodeId {
        match value {
            Value::Opaque(handle) => self
                .opaque
                .get(handle.0 as usize)
                .copied()
                .unwrap_or(self.root),
            composite if contains_opaque(composite) => match self.returned(composite.clone()) {
                Val::Node(node) => node,
                Val::Atom(_) | Val::Function(_) => self.root,
            },
            plain => self.data_node(plain.clone()),
        }
    }

    /// A fresh node that unifies the given ones.
    pub(super) fn unified(&mut self, parts: &[NodeId]) -> NodeId {
        let node = self.detached();
        let slot = self.node_mut(node);
        slot.no_sharing = true;
        for (index, part) in parts.iter().enumerate() {
            let info = CloseInfo::default().keyed(index as u64);
            let conjunct = Conjunct {
                source: Source::Node(*part),
                env: super::NO_ENV,
                info,
            };
            self.node_mut(node).conjuncts.push(conjunct);
        }
        self.finalize(node);
        node
    }

    /// Why data does not match a schema, and whether more data could change that.
    fn mismatch(
        &mut self,
        data: &Value,
        schema: &Value,
        strictness: Strictness,
    ) -> Option<(String, bool)> {
        let (data, schema) = (self.node_for(data), self.node_for(schema));
        let unified = self.unified(&[data, schema]);
        let value = self.deref(unified);
        let slot = self.node(value);
        if let Some(error) = slot.error.or(slot.child_error)
            && (strictness > Strictness::Plain || !self.error(error).code.is_temporary())
        {
            let passing = self.error(error).code.is_temporary();
            return Some((self.message(error), passing));
        }
        if strictness == Strictness::Plain {
            return None;
        }
        let first = self.validate(unified, strictness).into_iter().next()?;
        Some((first.message, first.code.is_temporary()))
    }
}

impl Host for Evaluator {
    fn matches(&mut self, data: &Value, schema: &Value) -> Result<(), String> {
        match self.mismatch(data, schema, Strictness::Concrete) {
            Some((message, _)) => Err(message),
            None => Ok(()),
        }
    }

    fn matches_partially(&mut self, data: &Value, schema: &Value) -> Result<(), String> {
        match self.mismatch(data, schema, Strictness::Plain) {
            Some((message, _)) => Err(message),
            None => Ok(()),
        }
    }

    fn apply(
        &mut self,
        template: &Value,
        fields: &[(&str, &Value)],
        result: &str,
    ) -> Result<Value, Failure> {
        let template = self.node_for(template);
        let node = self.detached();
        let slot = self.node_mut(node);
        slot.no_sharing = true;
        let info = CloseInfo::default();
        slot.conjuncts.push(Conjunct {
            source: Source::Node(template),
            env: super::NO_ENV,
            info,
        });
        self.start(node);
        for (index, (label, value)) in fields.iter().enumerate() {
            let part = self.node_for(value);
            let label = self.labels.string(label);
            let info = CloseInfo::default().keyed(index as u64);
            let conjunct = Conjunct {
                source: Source::Node(part),
                env: super::NO_ENV,
                info,
            };
            self.insert_arc(node, label, ArcKind::Member, conjunct, crate::ir::MetaId(0));
        }
        self.finalize(node);
        let node = self.deref(node);
        let label = self.labels.string(result);
        let failed = |this: &Self, error: ErrId| Failure::Error(this.message(error));
        if let Some(error) = self.node(node).error.or(self.node(node).child_error) {
            return Err(failed(self, error));
        }
        let Some(field) = self.arc(node, label) else {
            return Err(Failure::error(format!("undefined field: {result}")));
        };
        match self.default_node(field, Pos::NONE) {
            Ok(field) => match self.plain(field) {
                Ok(value) => Ok(value),
                Err(error) => Err(failed(self, error)),
            },
            Err(error) => Err(failed(self, error)),
        }
    }

    fn output_limit(&self) -> usize {
        self.budget.output
    }

    fn work(&mut self, steps: usize) -> Result<(), Failure> {
        if self.spend(steps) {
            Ok(())
        } else {
            Err(Failure::error("evaluation limit exceeded: steps"))
        }
    }

    fn elements(&mut self, list: &Value) -> Option<Vec<Value>> {
        if let Value::List(items) = list {
            return Some(items.to_vec());
        }
        let node = self.node_for(list);
        self.settle(node, false);
        let node = self.default_node(node, Pos::NONE).ok()?;
        let length = self.node(node).list?.length;
        self.expand(node);
        let elements: Vec<NodeId> = (0..length)
            .filter_map(|index| self.node(node).find(Label::index(index)))
            .collect();
        let mut values = Vec::with_capacity(elements.len());
        for element in elements {
            self.settle(element, false);
            let atom = self.atom(&Val::Node(element));
            values.push(atom.unwrap_or_else(|| self.opaque(element)));
        }
        Some(values)
    }

    fn fields(&mut self, structure: &Value) -> Option<Vec<(Arc<str>, Value)>> {
        if let Value::Struct(fields) = structure {
            return Some(fields.to_vec());
        }
        let node = self.node_for(structure);
        self.settle(node, false);
        let node = self.default_node(node, Pos::NONE).ok()?;
        if !self.node(node).has_struct {
            return None;
        }
        let mut fields = Vec::new();
        for (label, arc) in self.ordered_arcs(node) {
            if label.is_regular() && self.node(arc).arc == ArcKind::Member {
                fields.push((self.labels.text(label), self.opaque(arc)));
            }
        }
        Some(fields)
    }

    fn concrete(&mut self, value: &Value) -> Result<Value, Failure> {
        let Value::Opaque(_) = value else {
            return Ok(value.clone());
        };
        let node = self.node_for(value);
        match self.plain(node) {
            Ok(value) => Ok(value),
            Err(error) => {
                let message = self.message(error);
                if self.error(error).code.is_temporary() {
                    Err(Failure::Incomplete(message))
                } else {
                    Err(Failure::Error(message))
                }
            }
        }
    }

    fn is_open(&mut self, value: &Value) -> bool {
        let Value::Opaque(_) = value else {
            return false;
        };
        let node = self.node_for(value);
        self.settle(node, false);
        let node = self.deref(node);
        if let Some(list) = self.node(node).list {
            return !list.closed;
        }
        let optional = self
            .node(node)
            .arcs
            .iter()
            .any(|(_, arc)| self.node(*arc).arc == ArcKind::Optional);
        optional || self.is_open_struct(node)
    }

    fn show(&mut self, value: &Value) -> String {
        match value {
            Value::Opaque(_) => {
                let node = self.node_for(value);
                self.show_node(node)
            }
            plain => self.show_value(plain),
        }
    }
}
