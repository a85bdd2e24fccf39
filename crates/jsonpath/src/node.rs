//! The pieces of a parsed template.

use serde_json::Value;

/// A step of a path, or a piece of text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    /// What stands between two braces: steps, each applied to the results of the one before.
    List(Vec<Node>),
    /// Text outside of braces or in quotes.
    Text(Value),
    /// A number or boolean, once for each input.
    Literal(Value),
    /// `.name`
    Field(String),
    /// `[1]`, `[1:2:3]`, `[*]`
    Array(Slice),
    /// `[?(...)]`
    Filter(Box<Filter>),
    /// `.*`
    Wildcard,
    /// `..`
    Recursive,
    /// `[a,b]`
    Union(Vec<Vec<Node>>),
    /// `range`
    Range,
    /// `end`
    End,
    /// Any other word, which is an error once it is evaluated.
    Unrecognized(String),
}

/// The bounds in brackets, as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) start: Option<i64>,
    pub(crate) end: End,
    pub(crate) step: Option<i64>,
}

/// Where a slice ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// At the end of the list.
    Open,
    /// After the one item at the start: the brackets hold an index.
    AfterStart,
    /// Before this index.
    Before(i64),
}

/// The condition in `[?(...)]`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Filter {
    pub(crate) left: Vec<Node>,
    pub(crate) test: Test,
}

/// What a filter asks of its left side.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Test {
    /// That there is something.
    Exists,
    /// How it compares with the right side.
    Compare(Operator, Vec<Node>),
}

/// The comparisons of filters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operator {
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    GreaterOrEqual,
    Greater,
    /// An error once it is evaluated.
    Unrecognized(String),
}
