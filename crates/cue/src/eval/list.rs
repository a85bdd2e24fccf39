//! Lists: literals, comprehensions in them, lengths, slices.

use super::node::{ListShape, Matcher, Pattern};
use super::{CloseInfo, Conjunct, EnvId, ErrId, Evaluator, NodeId, Source};
use crate::diagnostic::Code;
use crate::ir::{ArcKind, Element, Expr, ExprId, MetaId};
use crate::label::Label;
use crate::value::Value;

impl Evaluator {
    /// Adds a list literal to a node. Comprehensions are asked first, so that a blocked one
    /// leaves nothing behind.
    pub(crate) fn run_list(
        &mut self,
        node: NodeId,
        expr: ExprId,
        env: EnvId,
        info: CloseInfo,
    ) -> Result<(), ErrId> {
        let program = self.program.clone();
        let Expr::List(elements) = program.expr(expr) else {
            return Ok(());
        };
        let elements = program.elements(elements);
        let mut yielded = Vec::new();
        for element in elements {
            if let Element::Comprehension(id) = element {
                yielded.push(self.yields(*id, env)?);
            }
        }
        let mut yielded = yielded.into_iter();
        let mut index = 0_usize;
        let mut ellipsis = None;
        for element in elements {
            match element {
                Element::Value(value) => {
                    self.insert_element(node, index, Source::Expr(*value), env, info);
                    index += 1;
                }
                Element::Comprehension(id) => {
                    let value = program.comprehension(*id).value_expr;
                    for env in yielded.next().unwrap_or_default() {
                        if !self.step() {
                            return Err(self.exhaust("steps"));
                        }
                        self.insert_element(node, index, Source::Expr(value), env, info);
                        index += 1;
                    }
                }
                Element::Ellipsis(value) => ellipsis = Some(*value),
            }
        }
        if let Some(value) = ellipsis {
            let info = info.keyed(u64::from(value.0)).optional();
            let pattern = Pattern {
                matcher: Matcher::From(index),
                conjunct: Conjunct::of(value, env, info),
                alias: false,
                meta: MetaId(0),
            };
            self.insert_pattern(node, pattern);
        }
        let pos = program.pos(expr);
        if let Some(error) = self.set_length(node, index, ellipsis.is_none()) {
            self.error_mut(error).related.push(pos);
            return Err(error);
        }
        self.progress += 1;
        Ok(())
    }

    fn insert_element(
        &mut self,
        node: NodeId,
        index: usize,
        source: Source,
        env: EnvId,
        info: CloseInfo,
    ) {
        let info = CloseInfo {
            from_embed: false,
            ..info
        }
        .keyed(index as u64);
        let conjunct = Conjunct { source, env, info };
        self.insert_arc(
            node,
            Label::index(index),
            ArcKind::Member,
            conjunct,
            MetaId(0),
        );
    }

    /// Adds a plain list to a node.
    pub(crate) fn insert_list(&mut self, node: NodeId, items: &[Value], info: CloseInfo) {
        for (index, item) in items.iter().enumerate() {
            if self.exhausted.is_some() {
                break;
            }
            self.insert_data(node, Label::index(index), index, item, info);
        }
        if let Some(error) = self.set_length(node, items.len(), true) {
            self.add_error(node, error);
        }
    }

    /// Combines the length of the node with that of another list.
    pub(crate) fn set_length(
        &mut self,
        node: NodeId,
        length: usize,
        closed: bool,
    ) -> Option<ErrId> {
        let known = self.node(node).list;
        let shape = match known {
            None => ListShape { length, closed },
            Some(known) => {
                let conflict = known.closed && length > known.length
                    || closed && known.length > length
                    || known.closed && closed && known.length != length;
                if conflict {
                    let (a, b) = (known.length, length);
                    let message = format!("incompatible list lengths ({a} and {b})");
                    let pos = self.node_pos(node);
                    let current = std::mem::replace(&mut self.current, node);
                    let error = self.error_at(Code::Eval, pos, message);
                    self.current = current;
                    return Some(error);
                }
                ListShape {
                    length: known.length.max(length),
                    closed: known.closed || closed,
                }
            }
        };
        self.node_mut(node).list = Some(shape);
        None
    }
}
