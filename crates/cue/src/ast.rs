//! The syntax tree: what was written, with positions, comments and attributes.
//!
//! The tree is plain owned data. Text that the formatter must reproduce exactly
//! (numbers, strings, attributes, comments) is addressed by [`Span`] into
//! [`File::source`]; what the compiler needs is decoded beside it.

use std::sync::Arc;

use crate::token::{LineIndex, Span};

/// One parsed source file.
#[derive(Debug, Clone)]
pub struct File {
    /// Name used in positions.
    pub name: Arc<str>,
    /// The text all spans refer to.
    pub source: Arc<str>,
    /// Where the lines of `source` start.
    pub lines: LineIndex,
    /// The `package` clause, when there is one.
    pub package: Option<PackageClause>,
    /// Import declarations in source order; each holds one or more specs.
    pub imports: Vec<ImportDecl>,
    /// Attributes written before the package clause, such as `@if(prod)`.
    pub attributes: Vec<Attribute>,
    /// Everything after the imports.
    pub decls: Vec<Decl>,
    /// Comment groups after the last declaration.
    pub end_comments: Vec<CommentGroup>,
}

/// `package name`.
#[derive(Debug, Clone)]
pub struct PackageClause {
    /// Comments around the clause; the leading ones are the package documentation.
    pub comments: Comments,
    /// The whole clause.
    pub span: Span,
    /// The package name.
    pub name: Ident,
}

/// `import "path"` or `import ( … )`.
#[derive(Debug, Clone)]
pub struct ImportDecl {
    /// Comments around the declaration.
    pub comments: Comments,
    /// The whole declaration.
    pub span: Span,
    /// Whether it was written with parentheses.
    pub grouped: bool,
    /// The imported packages.
    pub specs: Vec<ImportSpec>,
    /// Comment groups before the closing parenthesis.
    pub end_comments: Vec<CommentGroup>,
}

/// One imported package.
#[derive(Debug, Clone)]
pub struct ImportSpec {
    /// Comments around the spec.
    pub comments: Comments,
    /// The whole spec.
    pub span: Span,
    /// The local name, when one is given.
    pub name: Option<Ident>,
    /// The decoded import path, possibly with a `:name` qualifier.
    pub path: Arc<str>,
    /// The quoted path as written.
    pub path_span: Span,
}

/// A comment line, `//` included.
#[derive(Debug, Clone)]
pub struct Comment {
    /// Where it stands.
    pub span: Span,
    /// The text from `//` to the end of the line, without trailing blanks.
    pub text: Arc<str>,
}

/// Comment lines with no blank line between them.
#[derive(Debug, Clone, Default)]
pub struct CommentGroup {
    /// The lines in order.
    pub comments: Vec<Comment>,
}

/// The comments that belong to a declaration or list element.
#[derive(Debug, Clone, Default)]
pub struct Comments {
    /// Groups above; the last one is documentation when no blank line separates it.
    pub leading: Vec<CommentGroup>,
    /// Whether the last leading group stands directly above.
    pub leading_attached: bool,
    /// A comment on the same line, after the declaration, or between its parts.
    pub trailing: Vec<CommentGroup>,
}

impl Comments {
    /// Whether there is no comment at all.
    pub fn is_empty(&self) -> bool {
        self.leading.is_empty() && self.trailing.is_empty()
    }

    /// The groups that document a field: the one directly above and those on its line.
    pub fn docs(&self) -> impl Iterator<Item = &CommentGroup> {
        let above = if self.leading_attached {
            self.leading.last()
        } else {
            None
        };
        above.into_iter().chain(&self.trailing)
    }
}

/// An identifier with its place.
#[derive(Debug, Clone)]
pub struct Ident {
    /// Where it stands.
    pub span: Span,
    /// Its text.
    pub name: Arc<str>,
}

/// `@name(body)`.
#[derive(Debug, Clone)]
pub struct Attribute {
    /// Where it stands, `@` included.
    pub span: Span,
    /// The whole text, `@` included.
    pub text: Arc<str>,
}

impl Attribute {
    /// The name between `@` and the parenthesis.
    pub fn name(&self) -> &str {
        let text = self.text.strip_prefix('@').unwrap_or(&self.text);
        text.split_once('(').map_or(text, |(name, _)| name)
    }

    /// The text between the outer parentheses.
    pub fn body(&self) -> &str {
        let inner = self.text.split_once('(').map_or("", |(_, rest)| rest);
        inner.strip_suffix(')').unwrap_or(inner)
    }
}

/// A member of a struct literal or of a file.
#[derive(Debug, Clone)]
pub struct Decl {
    /// Where it stands, without comments.
    pub span: Span,
    /// The comments around it.
    pub comments: Comments,
    /// What it is.
    pub kind: DeclKind,
}

/// The kinds of struct member.
#[derive(Debug, Clone)]
pub enum DeclKind {
    /// `label: value`
    Field(Field),
    /// `let name = value`
    Let(LetDecl),
    /// A value standing alone.
    Embed(Expr),
    /// `...` or `...T`
    Ellipsis(Option<Expr>),
    /// `if … { }` or `for … { }`
    Comprehension(Comprehension),
    /// An attribute of the enclosing struct.
    Attribute(Attribute),
    /// Something the parser could not read; an error was reported.
    Bad,
}

/// A field declaration.
#[derive(Debug, Clone)]
pub struct Field {
    /// The alias in `X=label: value`.
    pub alias: Option<Ident>,
    /// The label.
    pub label: Label,
    /// `?`, `!` or nothing.
    pub constraint: Constraint,
    /// The value. In `a: b: 1` it is a struct literal without braces.
    pub value: Expr,
    /// Attributes after the value.
    pub attributes: Vec<Attribute>,
}

/// What marks a field as optional or required.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Constraint {
    /// An ordinary field.
    #[default]
    None,
    /// `?`
    Optional,
    /// `!`
    Required,
}

/// A label with its place.
#[derive(Debug, Clone)]
pub struct Label {
    /// Where it stands.
    pub span: Span,
    /// What it is.
    pub kind: LabelKind,
}

/// The kinds of label.
#[derive(Debug, Clone)]
pub enum LabelKind {
    /// `name`, `#name`, `_name`, `_#name`
    Ident(Arc<str>),
    /// `"name"`
    String(Arc<str>),
    /// `"\(x)-name"`
    Interpolation(Interpolation),
    /// `(expression)`
    Dynamic(Box<Expr>),
    /// `[pattern]` or `[alias=pattern]`
    Pattern {
        /// The name the label is bound to in the value.
        alias: Option<Ident>,
        /// What the label must match.
        pattern: Box<Expr>,
    },
}

/// `let name = value`.
#[derive(Debug, Clone)]
pub struct LetDecl {
    /// The bound name.
    pub name: Ident,
    /// The value.
    pub value: Expr,
}

/// `clause clause … { }`.
#[derive(Debug, Clone)]
pub struct Comprehension {
    /// At least one clause.
    pub clauses: Vec<Clause>,
    /// The yielded struct.
    pub value: Box<Expr>,
}

/// One clause of a comprehension.
#[derive(Debug, Clone)]
pub struct Clause {
    /// Where it stands.
    pub span: Span,
    /// What it is.
    pub kind: ClauseKind,
}

/// The kinds of clause.
#[derive(Debug, Clone)]
pub enum ClauseKind {
    /// `for key, value in source`
    For {
        /// The key variable.
        key: Option<Ident>,
        /// The value variable.
        value: Ident,
        /// What is ranged over.
        source: Expr,
    },
    /// `if condition`
    If(Expr),
    /// `let name = value`
    Let {
        /// The bound name.
        name: Ident,
        /// The value.
        value: Expr,
    },
}

/// An expression with its place.
#[derive(Debug, Clone)]
pub struct Expr {
    /// Where it stands.
    pub span: Span,
    /// What it is.
    pub kind: ExprKind,
}

/// The kinds of expression.
#[derive(Debug, Clone)]
pub enum ExprKind {
    /// `_|_`
    Bottom,
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number; its text is the span.
    Number,
    /// A string without interpolation, decoded.
    String(Arc<str>),
    /// A bytes literal without interpolation, decoded.
    Bytes(Arc<[u8]>),
    /// A string or bytes literal with interpolations.
    Interpolation(Interpolation),
    /// An identifier, `_` included.
    Ident(Arc<str>),
    /// `{ … }`, or the body of a chained field without braces.
    Struct(StructLit),
    /// `[ … ]`
    List(ListLit),
    /// `-x`, `!x`, `>x`, `*x`, …
    Unary {
        /// The operator.
        op: UnaryOp,
        /// The operand.
        operand: Box<Expr>,
    },
    /// `x op y`
    Binary {
        /// The operator.
        op: BinaryOp,
        /// Where the operator stands.
        op_span: Span,
        /// The left operand.
        left: Box<Expr>,
        /// The right operand.
        right: Box<Expr>,
    },
    /// `x.name` or `x."name"`
    Selector {
        /// What is selected from.
        base: Box<Expr>,
        /// The selected label.
        label: Arc<str>,
        /// Where the label stands.
        label_span: Span,
        /// Whether the label was quoted.
        quoted: bool,
    },
    /// `x[index]`
    Index {
        /// What is indexed.
        base: Box<Expr>,
        /// The index.
        index: Box<Expr>,
    },
    /// `x[low:high]`
    Slice {
        /// What is sliced.
        base: Box<Expr>,
        /// The lower bound.
        low: Option<Box<Expr>>,
        /// The upper bound.
        high: Option<Box<Expr>>,
    },
    /// `f(x, y)`
    Call {
        /// What is called.
        function: Box<Expr>,
        /// The arguments.
        arguments: Vec<Expr>,
    },
    /// `(x)`
    Paren(Box<Expr>),
    /// `X=expr` as a field value or list element.
    Alias {
        /// The bound name.
        name: Ident,
        /// The value.
        value: Box<Expr>,
    },
    /// Something the parser could not read; an error was reported.
    Bad,
}

/// A string or bytes literal with interpolations.
#[derive(Debug, Clone)]
pub struct Interpolation {
    /// Whether it makes bytes.
    pub bytes: bool,
    /// Text and expressions alternately; starts and ends with text.
    pub parts: Vec<InterpolationPart>,
}

/// A piece of an interpolated literal.
#[derive(Debug, Clone)]
pub enum InterpolationPart {
    /// Decoded text, and where it was written (delimiters included).
    Text(Arc<[u8]>, Span),
    /// An interpolated expression.
    Expr(Expr),
}

/// A struct literal.
#[derive(Debug, Clone)]
pub struct StructLit {
    /// Whether it was written with braces; false for the chained `a: b: 1`.
    pub braces: bool,
    /// The members in source order.
    pub decls: Vec<Decl>,
    /// Comment groups before the closing brace.
    pub end_comments: Vec<CommentGroup>,
}

/// A list literal.
#[derive(Debug, Clone)]
pub struct ListLit {
    /// The elements in source order; an ellipsis comes last.
    pub elements: Vec<Element>,
    /// Comment groups before the closing bracket.
    pub end_comments: Vec<CommentGroup>,
}

/// A list element.
#[derive(Debug, Clone)]
pub struct Element {
    /// Where it stands, without comments.
    pub span: Span,
    /// The comments around it.
    pub comments: Comments,
    /// What it is.
    pub kind: ElementKind,
}

/// The kinds of list element.
#[derive(Debug, Clone)]
pub enum ElementKind {
    /// One value.
    Value(Expr),
    /// `for … { }` or `if … { }`
    Comprehension(Comprehension),
    /// `...` or `...T`
    Ellipsis(Option<Expr>),
}

/// Prefix operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `!`
    Not,
    /// `*`, the default mark.
    Default,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `=~`
    Match,
    /// `!~`
    NotMatch,
}

impl UnaryOp {
    /// The operator as written.
    pub fn text(self) -> &'static str {
        match self {
            Self::Plus => "+",
            Self::Minus => "-",
            Self::Not => "!",
            Self::Default => "*",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
            Self::Match => "=~",
            Self::NotMatch => "!~",
        }
    }
}

/// Infix operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `|`
    Or,
    /// `&`
    And,
    /// `||`
    LogicalOr,
    /// `&&`
    LogicalAnd,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `=~`
    Match,
    /// `!~`
    NotMatch,
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
}

impl BinaryOp {
    /// The operator as written.
    pub fn text(self) -> &'static str {
        match self {
            Self::Or => "|",
            Self::And => "&",
            Self::LogicalOr => "||",
            Self::LogicalAnd => "&&",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
            Self::Match => "=~",
            Self::NotMatch => "!~",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
        }
    }

    /// How tightly the operator binds; a higher number binds tighter.
    pub fn precedence(self) -> u8 {
        match self {
            Self::Or => 1,
            Self::And => 2,
            Self::LogicalOr => 3,
            Self::LogicalAnd => 4,
            Self::Equal
            | Self::NotEqual
            | Self::Less
            | Self::LessEqual
            | Self::Greater
            | Self::GreaterEqual
            | Self::Match
            | Self::NotMatch => 5,
            Self::Add | Self::Subtract => 6,
            Self::Multiply | Self::Divide => 7,
        }
    }
}
