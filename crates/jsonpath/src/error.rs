//! What can be wrong with a template, or with a value it is applied to.

/// Why a template cannot be read, or finds nothing it could return. Texts are those of client-go.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An action without its closing brace.
    #[error("unclosed action")]
    UnclosedAction,
    /// A character that cannot stand in an action.
    #[error("unrecognized character in action: {}", code_point(*.0))]
    UnrecognizedCharacter(char),
    /// Brackets that are not closed.
    #[error("unterminated array")]
    UnterminatedArray,
    /// A filter that is not closed.
    #[error("unterminated filter")]
    UnterminatedFilter,
    /// A filter without the bracket after its parenthesis.
    #[error("unclosed array expect ]")]
    UnclosedFilter,
    /// A quoted text without its closing quote.
    #[error("unterminated quoted string")]
    UnterminatedQuote,
    /// A quoted text with an escape that means nothing.
    #[error("unquote string {0} error invalid syntax")]
    InvalidQuote(String),
    /// Something in brackets that is neither an index, nor a slice, nor a quoted key.
    #[error("invalid array index {0}")]
    InvalidIndex(String),
    /// An index that is a lone minus sign or too large.
    #[error("array index {0} is not a number")]
    IndexNotANumber(String),
    /// A number with two points or no digits.
    #[error("cannot parse number {0}")]
    InvalidNumber(String),
    /// `....`
    #[error("invalid multiple recursive descent")]
    MultipleRecursiveDescent,
    /// Filters and unions inside each other beyond any use.
    #[error("filters and unions are nested too deeply")]
    NestedTooDeeply,
    /// A word that is neither `range` nor `end`.
    #[error("unrecognized identifier {0}")]
    UnrecognizedIdentifier(String),
    /// `{end}` without `{range}`.
    #[error("not in range, nothing to end")]
    NothingToEnd,
    /// A field that no input has.
    #[error("{0} is not found")]
    NotFound(String),
    /// Brackets on something that is not a list.
    #[error("{0} is not array or slice")]
    NotAList(&'static str),
    /// A filter on something that is not a list.
    #[error("{0} is not array or slice and cannot be filtered")]
    NotFilterable(String),
    /// An index outside of a list.
    #[error("array index out of bounds: index {index}, length {length}")]
    OutOfBounds {
        /// The index after counting from the end, if it was negative.
        index: i64,
        /// How many items the list has.
        length: usize,
    },
    /// A slice that ends before it starts.
    #[error("starting index {start} is greater than ending index {end}")]
    SliceReversed {
        /// First index of the slice.
        start: i64,
        /// Index after the last.
        end: i64,
    },
    /// A slice that would not advance.
    #[error("step must be > 0")]
    StepNotPositive,
    /// A side of a comparison that is several values.
    #[error("can only compare one element at a time")]
    ComparesMany,
    /// An operator made of operator characters, but none that is known.
    #[error("unrecognized filter operator {0}")]
    UnrecognizedOperator(String),
    /// A comparison of, say, a string with a number.
    #[error("incompatible types for comparison")]
    IncompatibleTypes,
    /// A comparison of null, a list, an object, or an order of booleans.
    #[error("invalid type for comparison")]
    NotComparable,
    /// More values than the evaluation may touch.
    #[error("the path selects too many values: more than {0} were visited")]
    BudgetExceeded(usize),
    /// A path that has none of the accepted forms.
    #[error(
        "unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{{name1.name2}}' or '{{.name1.name2}}'"
    )]
    NotAPath,
    /// A path where only `.name` steps are allowed; the text says what is wrong with it.
    #[error("{0}")]
    NotSimple(String),
}

/// Go's `%#U`.
fn code_point(character: char) -> String {
    let code = u32::from(character);
    if character.is_control() {
        return format!("U+{code:04X}");
    }
    format!("U+{code:04X} '{character}'")
}
