//! Why a body cannot be read.

use std::fmt::Write;

use crate::wire::WireType;

/// Why a request body cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The body is something else than Kubernetes protobuf.
    #[error("the body does not start with the prefix of Kubernetes protobuf, \"k8s\\0\"")]
    NotProtobuf,
    /// The envelope itself is damaged.
    #[error("the envelope of the protobuf body is malformed: {0}")]
    Envelope(Reason),
    /// The envelope lacks `apiVersion` or `kind`.
    #[error("the protobuf body does not say its apiVersion and kind")]
    Untyped,
    /// The envelope announces content that is compressed, or not protobuf.
    #[error("the {property} {value:?} of the protobuf body is not supported")]
    UnsupportedContent {
        /// `contentType` or `contentEncoding`.
        property: &'static str,
        /// What the envelope says.
        value: String,
    },
    /// A kind without a protobuf form, or one that cannot be sent to a server.
    #[error("the kind {kind:?} of {api_version:?} has no known protobuf form")]
    UnknownKind {
        /// The API version that the envelope names.
        api_version: String,
        /// The kind that the envelope names.
        kind: String,
    },
    /// The object is damaged.
    #[error("{kind} in protobuf is malformed at {path}: {reason}")]
    Malformed {
        /// The kind of the object.
        kind: String,
        /// Where in its JSON form, such as `spec.template.spec.containers`.
        path: String,
        /// What is wrong there.
        reason: Reason,
    },
}

/// What is wrong at one place of a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The bytes end within a value.
    #[error("it ends too early")]
    Truncated,
    /// A number of more than 64 bits.
    #[error("a number is longer than 64 bits")]
    Overflow,
    /// A tag with an impossible field number or wire type, or the end of a group that never began.
    #[error("a tag is invalid")]
    InvalidTag,
    /// A field that is encoded as another type.
    #[error("field {number} has the wire type {found} instead of {expected}")]
    WrongWireType {
        /// The number of the field in its message.
        number: u32,
        /// How it is encoded.
        found: WireType,
        /// How its type is encoded.
        expected: WireType,
    },
    /// Objects and lists within each other beyond [`crate::MAX_DEPTH`].
    #[error("it is nested too deeply")]
    TooDeep,
    /// More than [`crate::MAX_VALUES`] values.
    #[error("the object has too many values")]
    TooManyValues,
    /// A time before the year 1 or after the year 9999.
    #[error("the time is out of range")]
    TimeOutOfRange,
    /// A floating point number that JSON cannot express.
    #[error("the number is infinite or not a number")]
    NotFinite,
    /// A number-or-string that says to be neither.
    #[error("type {0} is neither a number (0) nor a string (1)")]
    NeitherNumberNorString(i64),
    /// JSON within the message that cannot be read.
    #[error("the embedded JSON cannot be read: {0}")]
    EmbeddedJson(String),
}

/// A reason on its way up, collecting the path from its end. Boxed, since it passes through the
/// frames of a deep recursion.
#[derive(Debug)]
pub(crate) struct Fault(Box<Inner>);

#[derive(Debug)]
struct Inner {
    reason: Reason,
    /// Innermost first.
    path: Vec<String>,
}

impl Fault {
    /// The fault as seen from the object that has it in this field or under this key.
    pub(crate) fn within(mut self, name: &str) -> Self {
        self.0.path.push(name.to_owned());
        self
    }

    pub(crate) fn into_error(self, kind: &str) -> DecodeError {
        let Inner {
            reason,
            path: names,
        } = *self.0;
        let mut path = String::new();
        for name in names.iter().rev() {
            // Writing to a string cannot fail.
            let _ = if name.contains(['.', '[', ' ']) {
                write!(path, "[{name:?}]")
            } else if path.is_empty() {
                write!(path, "{name}")
            } else {
                write!(path, ".{name}")
            };
        }
        if path.is_empty() {
            path.push_str("its top level");
        }
        DecodeError::Malformed {
            kind: kind.to_owned(),
            path,
            reason,
        }
    }
}

impl From<Reason> for Fault {
    fn from(reason: Reason) -> Self {
        Self(Box::new(Inner {
            reason,
            path: Vec::new(),
        }))
    }
}
