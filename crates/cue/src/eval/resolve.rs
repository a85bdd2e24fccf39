//! References: from a name to the node it denotes, and from a node to its value.

use super::depend::{Need, Reader};
use super::error::Message;
use super::task::TaskKind;
use super::{Base, Binding, EnvId, ErrId, Evaluator, NodeId, Status, Val};
use crate::diagnostic::Code;
use crate::ir::{ArcKind, Decl, Expr, ExprId, LetId};
use crate::label::Label;
use crate::token::Pos;
use crate::value::{Kind, Value};

impl Evaluator {
    /// The node, or the plain value, that a reference expression denotes.
    pub(crate) fn resolve(&mut self, expr: ExprId, env: EnvId) -> Result<Val, ErrId> {
        let pos = self.program.pos(expr);
        match self.program.expr(expr) {
            Expr::Field { up, label } => {
                let env = self.up(env, up);
                let node = self.envs[env.0 as usize].node;
                self.lookup(node, label, pos).map(Val::Node)
            }
            Expr::DynamicField { up, key } => {
                let env = self.up(env, up);
                let label = self.dynamic_label(key, env)?;
                let node = self.envs[env.0 as usize].node;
                self.lookup(node, label, pos).map(Val::Node)
            }
            Expr::Let { up, id } => {
                let env = self.up(env, up);
                Ok(Val::Node(self.let_node(env, id)))
            }
            Expr::ForValue { up } => {
                let env = self.up(env, up);
                match &self.envs[env.0 as usize].binding {
                    Binding::For { value, .. } => Ok(Val::Node(*value)),
                    _ => Err(self.error_at(Code::Eval, pos, "internal: not a loop variable")),
                }
            }
            Expr::ClauseLet { up } => {
                let env = self.up(env, up);
                match &self.envs[env.0 as usize].binding {
                    Binding::Let(node) => Ok(Val::Node(*node)),
                    _ => Err(self.error_at(Code::Eval, pos, "internal: not a let variable")),
                }
            }
            Expr::SelfValue { up } => {
                let env = self.up(env, up);
                Ok(Val::Node(self.envs[env.0 as usize].node))
            }
            Expr::Import(package) => Ok(Val::Node(self.package_node(package))),
            Expr::Selector { base, label } => {
                let node = self.struct_operand(expr, base, env)?;
                self.lookup(node, label, self.program.focus(expr))
                    .map(Val::Node)
            }
            Expr::Index { base, index } => self.index(expr, base, index, env),
            _ => self.eval(expr, env),
        }
    }

    pub(crate) fn let_node(&mut self, env: EnvId, id: LetId) -> NodeId {
        if let Some(node) = self.lets.get(&(env, id)) {
            return *node;
        }
        let saved = std::mem::replace(&mut self.current, self.envs[env.0 as usize].node);
        let expr = self.program.lets[id.0 as usize];
        let cycle = std::mem::take(&mut self.cycle);
        // Read by all who name it, and by nobody only because it was first to name it.
        let node = self.reading_as(Reader::Nobody, |this| this.anonymous(expr, env));
        self.node_mut(node).bound = true;
        self.cycle = cycle;
        self.current = saved;
        self.lets.insert((env, id), node);
        node
    }

    /// Evaluates the operand of a selector or index to something with fields.
    fn struct_operand(&mut self, whole: ExprId, base: ExprId, env: EnvId) -> Result<NodeId, ErrId> {
        let value = self.selected_from(base, env)?;
        let pos = self.program.pos(base);
        let node = match value {
            Val::Node(node) => node,
            Val::Atom(value) => {
                if matches!(value, Value::List(_) | Value::Struct(_)) {
                    return Ok(self.data_node(value));
                }
                let text = self.program.text(base).to_owned();
                let kind = value.kind();
                let message = format!("invalid operand {text} (found {kind}, want list or struct)");
                return Err(self.error_at(Code::Eval, pos, message));
            }
            Val::Function(_) => {
                let text = self.program.text(base).to_owned();
                let message = format!("invalid operand {text} (found func, want list or struct)");
                return Err(self.error_at(Code::Eval, pos, message));
            }
        };
        let node = self.default_node(node, pos)?;
        let slot = self.node(node);
        if slot.status == Status::Final {
            // Once a struct is known to be broken, so is every selection from it.
            if let Some(error) = slot.child_error
                && !self.error(error).code.is_temporary()
            {
                return Err(error);
            }
        }
        let slot = self.node(node);
        if matches!(slot.base, Base::Struct | Base::List) || slot.has_struct || slot.list.is_some()
        {
            return Ok(node);
        }
        if slot.status < Status::Settled && !slot.arcs.is_empty() {
            return Ok(node);
        }
        let kind = slot.scalar.kind;
        // Anyone who finds it wanting has to know when it becomes something else.
        self.note(node, Need::Members);
        let slot = self.node(node);
        let pending = slot.status < Status::Settled || self.may_learn(node);
        let slot = self.node(node);
        if slot.scalar.atom.is_some() || !kind.intersects(Kind(Kind::STRUCT.0 | Kind::LIST.0)) {
            let text = self.program.text(base).to_owned();
            let message = format!("invalid operand {text} (found {kind}, want list or struct)");
            return Err(self.error_at(Code::Eval, pos, message));
        }
        let whole_text = self.program.text(whole).to_owned();
        let text = self.program.text(base).to_owned();
        let message = format!("{whole_text} undefined as {text} is incomplete (type {kind})");
        let error = self.error_at(Code::Incomplete, pos, message);
        self.error_mut(error).pending = pending;
        Err(error)
    }

    /// Evaluates what is selected from. A selection is proof that the value has structure, even
    /// if it is reached through a cycle.
    fn selected_from(&mut self, base: ExprId, env: EnvId) -> Result<Val, ErrId> {
        let expr = self.program.expr(base);
        if !expr.is_reference() {
            return self.eval(base, env);
        }
        let node = match self.nested(|this| this.resolve(base, env))?? {
            Val::Node(node) => node,
            value => return Ok(value),
        };
        let bound = matches!(expr, Expr::Let { .. } | Expr::ClauseLet { .. });
        self.note(node, Need::Nature);
        let inner = self.deref(node);
        if (!self.cycle.is_cyclic || bound) && self.node(inner).status < Status::Settled {
            self.node_mut(inner).has_non_cycle = true;
        }
        self.value_of(node, base)
    }

    /// Finds the field `label` of a node.
    pub(crate) fn lookup(&mut self, node: NodeId, label: Label, pos: Pos) -> Result<NodeId, ErrId> {
        let mut node = self.deref(node);
        if self
            .arc(node, label)
            .is_none_or(|arc| self.node(arc).arc != ArcKind::Member)
            || self.node(node).status < Status::Settled
        {
            match self.nested(|this| this.attempt(node)) {
                Ok(()) => node = self.deref(node),
                Err(error) => return Err(error),
            }
        }
        if let Base::Disjunction(_) = self.node(node).base {
            node = self.default_node(node, pos)?;
        }
        let Some(arc) = self.arc(node, label) else {
            self.note(node, Need::Members);
            return Err(self.undefined(node, label, pos));
        };
        match self.node(arc).arc {
            ArcKind::Member | ArcKind::Required => Ok(arc),
            ArcKind::Optional => {
                self.note(node, Need::Members);
                self.note(arc, Need::Conjuncts);
                let error = self.error_at(Code::Incomplete, pos, Message::OptionalField(label));
                self.error_mut(error).pending = self.may_gain(node, label);
                Err(error)
            }
        }
    }

    /// Runs what can be run of a node, so that its fields are known as far as possible.
    fn attempt(&mut self, node: NodeId) {
        self.attempt_ancestors(node);
        if self.node(node).disjunctions.is_empty() && self.node(node).status == Status::New
            || self.node(node).status == Status::Started
        {
            self.start(node);
            self.settle(node, false);
        } else {
            self.settle(node, false);
        }
    }

    /// Conjuncts of a node come from tasks of its ancestors too.
    fn attempt_ancestors(&mut self, node: NodeId) {
        let parent = self.node(node).parent;
        if parent.is_none() || self.node(node).anonymous {
            return;
        }
        let parent = self.deref(parent);
        if self.node(parent).status >= Status::Settled {
            return;
        }
        let _ = self.nested(|this| {
            this.attempt_ancestors(parent);
            this.start(parent);
            if this.node(parent).running == 0 {
                this.run_tasks(parent);
            }
        });
    }

    fn undefined(&mut self, node: NodeId, label: Label, pos: Pos) -> ErrId {
        if let Some(error) = self.node(node).error
            && !self.error(error).code.is_temporary()
        {
            return error;
        }
        let pending = self.may_gain(node, label);
        if let Some(index) = label.as_index() {
            let list = self.node(node).list;
            let closed = list.is_none_or(|list| list.closed);
            let code = if closed && !pending {
                Code::Eval
            } else {
                Code::Incomplete
            };
            let length = list.map_or(0, |list| list.length);
            let message = format!("index out of range [{index}] with length {length}");
            let error = self.error_at(code, pos, message);
            self.error_mut(error).pending = pending;
            return error;
        }
        let slot = self.node(node);
        let closed = !pending
            && label.is_regular()
            && (slot.list.is_some()
                || (slot.closed_recursive || slot.closed_once && !slot.anonymous)
                    && !self.allows_any(node, label));
        let code = if closed { Code::Eval } else { Code::Incomplete };
        let error = self.error_at(code, pos, Message::UndefinedField(label));
        self.error_mut(error).pending = pending;
        error
    }

    fn allows_any(&mut self, node: NodeId, label: Label) -> bool {
        if self.is_open_struct(node) {
            return true;
        }
        let patterns = self.node(node).patterns.len();
        (0..patterns).any(|index| {
            let pattern = self.node(node).patterns[index];
            match pattern.matcher {
                super::node::Matcher::AnyString => true,
                super::node::Matcher::From(_) => false,
                super::node::Matcher::Value(value) => self.label_matches(label, value),
            }
        })
    }

    /// Whether tasks that are not finished could still add `label` to `node`.
    pub(crate) fn may_gain(&self, node: NodeId, label: Label) -> bool {
        let mut node = node;
        let mut label = label;
        loop {
            let slot = self.node(node);
            if slot.status < Status::Settled && self.tasks_may_add(node, label) {
                return true;
            }
            if slot.parent.is_none() || slot.anonymous {
                return false;
            }
            label = slot.label;
            node = self.deref(slot.parent);
        }
    }

    /// Whether tasks that are not finished could still say more about what `node` is.
    pub(crate) fn may_learn(&self, node: NodeId) -> bool {
        let slot = self.node(node);
        !slot.anonymous
            && !slot.parent.is_none()
            && self.may_gain(self.deref(slot.parent), slot.label)
    }

    fn tasks_may_add(&self, node: NodeId, label: Label) -> bool {
        let slot = self.node(node);
        if slot.status == Status::New {
            return !slot.conjuncts.is_empty();
        }
        slot.tasks.iter().any(|task| {
            if task.done {
                return false;
            }
            let open = task.running || task.error.is_none_or(|error| self.error(error).pending);
            if !open {
                return false;
            }
            match task.kind {
                TaskKind::Comprehension(id) => {
                    let value = self.program.comprehension(id).value;
                    self.literal_may_add(value, label)
                }
                TaskKind::Pattern(..) => false,
                TaskKind::List(_) => label.is_index(),
                TaskKind::Dynamic(..) => label.is_regular(),
                TaskKind::Reference(_) | TaskKind::Expr(_) => true,
            }
        })
    }

    fn literal_may_add(&self, literal: crate::ir::StructId, label: Label) -> bool {
        self.program
            .structure(literal)
            .decls
            .iter()
            .any(|decl| match decl {
                Decl::Field {
                    label: own, kind, ..
                } => *own == label && *kind == ArcKind::Member,
                Decl::Dynamic { .. } => label.is_regular(),
                Decl::Comprehension(inner) => {
                    self.literal_may_add(self.program.comprehension(*inner).value, label)
                }
                Decl::Embed(_) => true,
                Decl::Pattern { .. } | Decl::Ellipsis => false,
            })
    }

    /// `base[index]`
    fn index(
        &mut self,
        expr: ExprId,
        base: ExprId,
        index: ExprId,
        env: EnvId,
    ) -> Result<Val, ErrId> {
        let node = self.struct_operand(expr, base, env)?;
        let pos = self.program.pos(index);
        let value = self.eval_default(index, env)?;
        let is_list = self.node(node).list.is_some();
        let label = match self.atom(&value) {
            Some(Value::String(text)) if is_list => {
                let text = crate::label::quote(&text);
                let message = format!("invalid list index {text} (type string)");
                return Err(self.error_at(Code::Eval, pos, message));
            }
            Some(Value::String(text)) => self.labels.string(&text),
            Some(Value::Number(number)) => {
                let Some(position) = number.to_i64() else {
                    let message = format!(
                        "invalid list index {number} (type {})",
                        Value::Number(number.clone()).kind()
                    );
                    return Err(self.error_at(Code::Eval, pos, message));
                };
                let Ok(position) = usize::try_from(position) else {
                    let message =
                        format!("invalid list index {position} (index must be non-negative)");
                    return Err(self.error_at(Code::Eval, pos, message));
                };
                Label::index(position)
            }
            Some(other) => {
                let (text, kind) = (self.show_value(&other), other.kind());
                let message = format!("invalid struct selector {text} (type {kind})");
                return Err(self.error_at(Code::Eval, pos, message));
            }
            None => {
                let (text, kind) = (self.program.text(index).to_owned(), self.kind_of(&value));
                if kind == Kind::STRING || Kind::NUMBER.contains(kind) {
                    let value = self.show(&value);
                    let message =
                        format!("invalid non-ground value {value} (must be concrete {kind})");
                    return Err(self.error_at(Code::Incomplete, pos, message));
                }
                let message = format!("invalid index {text} (invalid type {kind})");
                return Err(self.error_at(Code::Eval, self.program.pos(expr), message));
            }
        };
        self.lookup(node, label, pos).map(Val::Node)
    }

    /// The node after structure sharing and defaults; an unresolved disjunction is an error.
    pub(crate) fn default_node(&mut self, node: NodeId, pos: Pos) -> Result<NodeId, ErrId> {
        let mut node = self.deref(node);
        loop {
            let Base::Disjunction(disjunction) = self.node(node).base.clone() else {
                return Ok(node);
            };
            if disjunction.defaults != 1 {
                let text = self.show_node(node);
                let kind = self.node_kind(node);
                let message = format!("unresolved disjunction {text} (type {kind})");
                return Err(self.error_at(Code::Incomplete, pos, message));
            }
            node = self.deref(disjunction.values[0]);
        }
    }

    /// Evaluates the node a reference denotes far enough to use its value.
    pub(crate) fn value_of(&mut self, node: NodeId, expr: ExprId) -> Result<Val, ErrId> {
        let pos = self.program.pos(expr);
        let quick = self.deref(node);
        if self.node(quick).status >= Status::Settled {
            return self.settled_value(quick);
        }
        let () = self.nested(|this| this.attempt(node))?;
        let node = self.deref(node);
        if self.node(node).status >= Status::Settled {
            return self.settled_value(node);
        }
        if !self.is_around(node, self.current) {
            self.circular = true;
        }
        // Not finished: good enough if the value cannot change any more.
        let slot = self.node(node);
        if slot.scalar.atom.is_some() && slot.error.is_none() {
            return Ok(Val::Node(node));
        }
        if slot.has_struct || slot.list.is_some() && !slot.arcs.is_empty() {
            return Ok(Val::Node(node));
        }
        if let Some(error) = self.blocking_error(node)
            && !self.node(node).settling
            && self.node(node).running == 0
        {
            return Err(error);
        }
        let text = self.program.text(expr).to_owned();
        Err(self.pending_error(Code::Cycle, pos, format!("cycle with field: {text}")))
    }

    /// Records that a value is needed as a whole.
    pub(crate) fn note_whole(&mut self, node: NodeId) {
        self.note(node, Need::Whole);
        // A value that needs one around it gets by with less while that one is made for the first
        // time; later, it would find it complete.
        if self.refill.is_some() && self.is_around(self.deref(node), self.current) {
            self.circular = true;
        }
    }

    /// Whether a node is another one or stands above it.
    fn is_around(&self, outer: NodeId, inner: NodeId) -> bool {
        let mut cursor = inner;
        while !cursor.is_none() {
            if self.deref(cursor) == outer || cursor == outer {
                return true;
            }
            cursor = self.node(cursor).parent;
        }
        false
    }

    fn settled_value(&mut self, node: NodeId) -> Result<Val, ErrId> {
        if let Some(error) = self.node(node).error {
            let incomplete_struct =
                self.error(error).code.is_temporary() && self.node(node).is_struct;
            if !incomplete_struct {
                return Err(error);
            }
        }
        match self.node(node).function {
            Some(callee) => Ok(Val::Function(callee)),
            None => Ok(Val::Node(node)),
        }
    }

    /// The error that keeps a node from having a value: its own or that of a blocked task.
    pub(crate) fn blocking_error(&self, node: NodeId) -> Option<ErrId> {
        let slot = self.node(node);
        slot.error.or_else(|| {
            slot.tasks
                .iter()
                .find_map(|task| task.error.filter(|_| !task.done))
        })
    }
}
