//! The compiled form: immutable, shareable, addressed by small numbers.
//!
//! Names are resolved: a reference says how many environments to go up and which
//! label to take there. Struct literals are split into their kinds of member.

use std::sync::Arc;

use crate::ast::{BinaryOp, UnaryOp};
use crate::diagnostic::{Diagnostic, Location, Phase};
use crate::label::{Interner, Label};
use crate::token::{LineIndex, Pos, Span};
use crate::value::{Builtin, Kind, Value};

/// Index of an expression in `Program::exprs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(pub u32);

/// Index of a struct literal in `Program::structs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StructId(pub u32);

/// Index of a comprehension in `Program::comprehensions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ComprehensionId(pub u32);

/// Index of a package in `Program::packages`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PackageId(pub u32);

/// Index of documentation and attributes in `Program::metas`; zero means none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct MetaId(pub u32);

/// Index of a `let` in `Program::lets`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LetId(pub u32);

/// Index of a constant in `Program::constants`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConstId(pub(crate) u32);

/// Consecutive entries in one of the tables of a [`Program`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    start: u32,
    length: u32,
}

impl Run {
    /// Appends `entries` to `table` and returns where they are.
    pub(crate) fn append<T>(table: &mut Vec<T>, entries: impl IntoIterator<Item = T>) -> Self {
        let start = table.len();
        table.extend(entries);
        let number = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
        Self {
            start: number(start),
            length: number(table.len() - start),
        }
    }

    /// How many entries there are.
    pub(crate) fn len(self) -> usize {
        self.length as usize
    }

    fn of<T>(self, table: &[T]) -> &[T] {
        &table[self.start as usize..][..self.length as usize]
    }
}

/// A compiled package with everything it imports.
///
/// Expressions are small and copied freely; what has no fixed size is in tables of its own.
#[derive(Debug)]
pub struct Program {
    /// All expressions.
    pub(crate) exprs: Vec<Expr>,
    /// The literal values.
    pub(crate) constants: Vec<Value>,
    /// The bounds of predeclared ranges.
    pub(crate) bounds: Vec<(BoundOp, Value)>,
    /// The arguments of calls and the parts of interpolations.
    pub(crate) operands: Vec<ExprId>,
    /// The elements of list literals.
    pub(crate) elements: Vec<Element>,
    /// The alternatives of disjunctions.
    pub(crate) terms: Vec<Disjunct>,
    /// Where each expression stands.
    pub(crate) origins: Vec<Origin>,
    /// All struct literals.
    pub(crate) structs: Vec<StructLit>,
    /// All comprehensions.
    pub(crate) comprehensions: Vec<Comprehension>,
    /// The values bound by `let`.
    pub(crate) lets: Vec<ExprId>,
    /// Documentation and attributes of fields; the first entry is empty.
    pub(crate) metas: Vec<Meta>,
    /// The packages; the first is the main one.
    pub(crate) packages: Vec<PackageIr>,
    /// The labels known at compile time.
    pub(crate) labels: Arc<Interner>,
    /// The sources, for positions and excerpts.
    pub(crate) sources: Vec<Source>,
}

impl Program {
    pub(crate) fn expr(&self, id: ExprId) -> Expr {
        self.exprs[id.0 as usize]
    }

    /// Selections of fields that an imported package does not declare.
    pub(crate) fn undeclared_selections(&self) -> Vec<Diagnostic> {
        let selections = self.exprs.iter().zip(&self.origins);
        let undeclared = selections.filter_map(|(expr, origin)| {
            let Expr::Selector { base, label } = *expr else {
                return None;
            };
            let Expr::Import(package) = self.expr(base) else {
                return None;
            };
            if self.may_declare(package, label) {
                return None;
            }
            let message = format!("undefined field: {}", self.labels.show(label));
            let source = self.sources.get(usize::from(origin.file))?;
            let location = Location {
                file: source.name.clone(),
                at: source.lines.locate(origin.focus),
            };
            Some(Diagnostic::at(Phase::Build, message, Some(location)))
        });
        undeclared.collect()
    }

    /// Whether a package has a field of that name, or fields that only an evaluation shows.
    fn may_declare(&self, package: PackageId, label: Label) -> bool {
        let files = &self.packages[package.0 as usize].files;
        let mut decls = files
            .iter()
            .flat_map(|file| &self.structs[file.0 as usize].decls);
        decls.any(|decl| match decl {
            Decl::Field { label: known, .. } => *known == label,
            Decl::Ellipsis => false,
            _ => true,
        })
    }

    pub(crate) fn constant(&self, id: ConstId) -> &Value {
        &self.constants[id.0 as usize]
    }

    pub(crate) fn bounds(&self, run: Run) -> &[(BoundOp, Value)] {
        run.of(&self.bounds)
    }

    pub(crate) fn operands(&self, run: Run) -> &[ExprId] {
        run.of(&self.operands)
    }

    pub(crate) fn elements(&self, run: Run) -> &[Element] {
        run.of(&self.elements)
    }

    pub(crate) fn terms(&self, run: Run) -> &[Disjunct] {
        run.of(&self.terms)
    }

    pub(crate) fn structure(&self, id: StructId) -> &StructLit {
        &self.structs[id.0 as usize]
    }

    pub(crate) fn comprehension(&self, id: ComprehensionId) -> &Comprehension {
        &self.comprehensions[id.0 as usize]
    }

    pub(crate) fn pos(&self, id: ExprId) -> Pos {
        self.origins[id.0 as usize].pos()
    }

    /// Where a message about what an expression selects points.
    pub(crate) fn focus(&self, id: ExprId) -> Pos {
        let origin = self.origins[id.0 as usize];
        Pos {
            offset: origin.focus,
            ..origin.pos()
        }
    }

    /// The text of an expression as it was written.
    pub(crate) fn text(&self, id: ExprId) -> &str {
        let origin = self.origins[id.0 as usize];
        let source = self.sources.get(usize::from(origin.file));
        source.map_or("", |source| origin.span.text(&source.text))
    }
}

/// A source file, kept for positions and excerpts.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file name.
    pub name: Arc<str>,
    /// The text.
    pub text: Arc<str>,
    /// The line starts.
    pub lines: LineIndex,
}

/// Where an expression stands.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Origin {
    pub(crate) file: u16,
    pub(crate) span: Span,
    /// Where messages point: the start, or the selected name in `a.b`.
    pub(crate) focus: u32,
}

impl Origin {
    pub(crate) fn pos(self) -> Pos {
        Pos {
            file: crate::token::FileId(self.file),
            offset: self.span.start,
        }
    }
}

/// A compiled package.
#[derive(Debug, Clone)]
pub(crate) struct PackageIr {
    /// One struct literal per file.
    pub(crate) files: Vec<StructId>,
}

/// What is written around a field besides its value.
#[derive(Debug, Clone, Default)]
pub struct Meta {
    /// The comment lines that document the field, `//` included.
    pub docs: Vec<Arc<str>>,
    /// The attributes as written.
    pub attributes: Vec<crate::ast::Attribute>,
}

/// Whether a field exists, must be given, or only constrains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArcKind {
    /// `a:`
    Member,
    /// `a!:`
    Required,
    /// `a?:`
    Optional,
}

/// A struct literal.
#[derive(Debug, Clone)]
pub(crate) struct StructLit {
    pub(crate) decls: Vec<Decl>,
    /// Whether this is the body of a file, which is no boundary of closedness.
    pub(crate) is_file: bool,
    pub(crate) has_embedding: bool,
    pub(crate) has_ellipsis: bool,
    pub(crate) pos: Pos,
}

/// A member of a struct literal. `let` declarations are not members: references
/// to them carry their [`LetId`].
#[derive(Debug, Clone, Copy)]
pub(crate) enum Decl {
    Field {
        label: Label,
        kind: ArcKind,
        value: ExprId,
        meta: MetaId,
    },
    Dynamic {
        key: ExprId,
        kind: ArcKind,
        value: ExprId,
        meta: MetaId,
    },
    Pattern {
        pattern: ExprId,
        value: ExprId,
        alias: bool,
        meta: MetaId,
    },
    Embed(ExprId),
    Comprehension(ComprehensionId),
    Ellipsis,
}

/// `for`/`if`/`let` clauses and the struct they yield.
#[derive(Debug, Clone)]
pub(crate) struct Comprehension {
    pub(crate) clauses: Vec<Clause>,
    pub(crate) value: StructId,
    /// The value as an expression, for list elements.
    pub(crate) value_expr: ExprId,
}

/// A clause; `For` and `Let` open an environment.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Clause {
    For { source: ExprId },
    If { condition: ExprId },
    Let { value: ExprId },
}

/// The functions known without an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Predeclared {
    Len,
    Close,
    And,
    Or,
    Div,
    Mod,
    Quo,
    Rem,
    Error,
    MatchN,
    MatchIf,
}

impl Predeclared {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Len => "len",
            Self::Close => "close",
            Self::And => "and",
            Self::Or => "or",
            Self::Div => "div",
            Self::Mod => "mod",
            Self::Quo => "quo",
            Self::Rem => "rem",
            Self::Error => "error",
            Self::MatchN => "matchN",
            Self::MatchIf => "matchIf",
        }
    }
}

/// A callable.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Callee {
    Predeclared(Predeclared),
    Builtin(&'static str, &'static Builtin),
}

/// A comparison used as a constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum BoundOp {
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Match,
    NotMatch,
}

impl BoundOp {
    pub(crate) fn text(self) -> &'static str {
        match self {
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

/// A list element.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Element {
    Value(ExprId),
    Comprehension(ComprehensionId),
    /// `...T`, of which `T` is `_` where none is written.
    Ellipsis(ExprId),
}

/// One alternative of a disjunction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Disjunct {
    pub(crate) value: ExprId,
    pub(crate) default: bool,
}

/// A resolved expression. `up` counts the environments between the expression and
/// the one that binds the name.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expr {
    Bottom,
    Top,
    Type(Kind),
    Value(ConstId),
    /// A predeclared range such as `uint8`: kind and bounds.
    Range(Kind, Run),
    Bound(BoundOp, ExprId),
    Field {
        up: u32,
        label: Label,
    },
    DynamicField {
        up: u32,
        key: ExprId,
    },
    Let {
        up: u32,
        id: LetId,
    },
    ForKey {
        up: u32,
    },
    ForValue {
        up: u32,
    },
    ClauseLet {
        up: u32,
    },
    PatternLabel {
        up: u32,
    },
    SelfValue {
        up: u32,
    },
    Import(PackageId),
    Function(Callee),
    Selector {
        base: ExprId,
        label: Label,
    },
    Index {
        base: ExprId,
        index: ExprId,
    },
    Slice {
        base: ExprId,
        low: Option<ExprId>,
        high: Option<ExprId>,
    },
    Unary(UnaryOp, ExprId),
    Binary {
        op: BinaryOp,
        left: ExprId,
        right: ExprId,
    },
    Call {
        function: ExprId,
        arguments: Run,
    },
    Interpolation {
        bytes: bool,
        parts: Run,
    },
    Struct(StructId),
    List(Run),
    Disjunction {
        terms: Run,
        marked: bool,
    },
    And(ExprId, ExprId),
    /// Opens an environment that knows the node the expression is a conjunct of.
    WithSelf(ExprId),
}

impl Expr {
    /// Whether the expression denotes a node somewhere else.
    pub(crate) fn is_reference(self) -> bool {
        matches!(
            self,
            Self::Field { .. }
                | Self::DynamicField { .. }
                | Self::Let { .. }
                | Self::ForValue { .. }
                | Self::ClauseLet { .. }
                | Self::SelfValue { .. }
                | Self::Import(_)
                | Self::Selector { .. }
                | Self::Index { .. }
        )
    }
}
