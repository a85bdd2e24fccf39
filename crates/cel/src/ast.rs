//! The expression tree after parsing and macro expansion.

use crate::source::Position;

/// Identifies a node; types, overloads and positions are kept in tables indexed by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ExprId(pub(crate) u32);

impl ExprId {
    /// The index of the node's entry in a table.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A constant written in the source.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
}

/// A node and its identity.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Expr {
    pub(crate) id: ExprId,
    pub(crate) kind: ExprKind,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ExprKind {
    /// Stands where a syntax error was; never reaches the checker.
    Unspecified,
    Literal(Literal),
    Ident(String),
    Select(Box<Select>),
    Call(Box<Call>),
    List(Vec<Element>),
    Map(Vec<Entry>),
    /// `Name{field: value}`.
    Struct(String, Vec<Field>),
    Comprehension(Box<Comprehension>),
}

/// `operand.field`, or `has(operand.field)` when `test_only`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Select {
    pub(crate) operand: Expr,
    pub(crate) field: String,
    pub(crate) test_only: bool,
}

/// `function(arguments)` or `target.function(arguments)`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) target: Option<Expr>,
    pub(crate) function: String,
    pub(crate) arguments: Vec<Expr>,
}

/// An element of a list literal; `[?x]` is optional.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Element {
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// An entry of a map literal; `{?k: v}` is optional.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: Expr,
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// A field of a struct literal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) value: Expr,
}

/// A fold: `accumulator` starts as `init` and becomes `step` for every element of `range` while
/// `condition` holds; the value of the whole is `result`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Comprehension {
    pub(crate) range: Expr,
    pub(crate) variable: String,
    pub(crate) second_variable: Option<String>,
    pub(crate) accumulator: String,
    pub(crate) init: Expr,
    pub(crate) condition: Expr,
    pub(crate) step: Expr,
    pub(crate) result: Expr,
}

impl Comprehension {
    /// Whether this is `cel.bind` in disguise: a fold over nothing that only names a value.
    pub(crate) fn is_bind(&self) -> bool {
        matches!(&self.range.kind, ExprKind::List(elements) if elements.is_empty())
            && matches!(self.condition.kind, ExprKind::Literal(Literal::Bool(false)))
    }
}

/// Hands out node identities and remembers where each node stands.
#[derive(Debug, Default)]
pub(crate) struct Positions {
    table: Vec<Position>,
}

impl Positions {
    /// A fresh identity for a node at `position`.
    pub(crate) fn add(&mut self, position: Position) -> ExprId {
        let id = ExprId(u32::try_from(self.table.len()).unwrap_or(u32::MAX));
        self.table.push(position);
        id
    }

    pub(crate) fn get(&self, id: ExprId) -> Position {
        self.table
            .get(id.index())
            .copied()
            .unwrap_or(Position::NONE)
    }

    /// How many identities were handed out.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }
}

/// The dotted name `a.b.c` an expression spells, if it is one.
pub(crate) fn qualified_name(expr: &Expr) -> Option<String> {
    match &expr.kind {
        ExprKind::Ident(name) => Some(name.clone()),
        ExprKind::Select(select) if !select.test_only => {
            let mut name = qualified_name(&select.operand)?;
            name.push('.');
            name.push_str(&select.field);
            Some(name)
        }
        _ => None,
    }
}

/// Function names of the operators.
pub(crate) mod operator {
    pub(crate) const CONDITIONAL: &str = "_?_:_";
    pub(crate) const LOGICAL_AND: &str = "_&&_";
    pub(crate) const LOGICAL_OR: &str = "_||_";
    pub(crate) const LOGICAL_NOT: &str = "!_";
    pub(crate) const NOT_STRICTLY_FALSE: &str = "@not_strictly_false";
    pub(crate) const EQUALS: &str = "_==_";
    pub(crate) const NOT_EQUALS: &str = "_!=_";
    pub(crate) const LESS: &str = "_<_";
    pub(crate) const LESS_EQUALS: &str = "_<=_";
    pub(crate) const GREATER: &str = "_>_";
    pub(crate) const GREATER_EQUALS: &str = "_>=_";
    pub(crate) const ADD: &str = "_+_";
    pub(crate) const SUBTRACT: &str = "_-_";
    pub(crate) const MULTIPLY: &str = "_*_";
    pub(crate) const DIVIDE: &str = "_/_";
    pub(crate) const MODULO: &str = "_%_";
    pub(crate) const NEGATE: &str = "-_";
    pub(crate) const INDEX: &str = "_[_]";
    pub(crate) const OPT_INDEX: &str = "_[?_]";
    pub(crate) const OPT_SELECT: &str = "_?._";
    pub(crate) const IN: &str = "@in";
}
