//! The functions expressions can call, by library.

pub(crate) mod authorization;
pub(crate) mod base64;
pub(crate) mod cidr;
pub(crate) mod format;
pub(crate) mod format_string;
mod ip;
mod lists;
mod math;
mod optional;
pub(crate) mod quantity;
pub(crate) mod regex;
pub(crate) mod semver;
mod sets;
mod standard;
mod strings;
mod timestamps;
pub(crate) mod url;

use std::sync::{Arc, LazyLock};

use crate::declaration::{Functions, Outcome};
use crate::error::EvalError;
use crate::value::{List, Value};

/// A set of functions and macros beyond the standard library, which is always there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Library {
    /// `charAt`, `split`, `format` and other operations on text.
    Strings,
    /// `reverse` on text, which is newer than the strings library of Kubernetes.
    StringReverse,
    /// `slice`, `flatten`, `sort`, `distinct` and other operations on lists.
    Lists,
    /// `isSorted`, `sum`, `min`, `max`, `indexOf`, `lastIndexOf`.
    KubernetesLists,
    /// `find` and `findAll`.
    Regex,
    /// `url` and what can be asked of one.
    Urls,
    /// `quantity` and its arithmetic.
    Quantity,
    /// `ip` and what can be asked of one.
    Ip,
    /// `cidr` and what can be asked of one.
    Cidr,
    /// `semver` and its comparisons.
    Semver,
    /// `format.named` and `validate`.
    Format,
    /// `sets.contains`, `sets.equivalent`, `sets.intersects`.
    Sets,
    /// `math.greatest` and other functions on numbers.
    Math,
    /// `base64.encode` and `base64.decode`.
    Encoders,
    /// `optional.of`, `.?`, `[?]`, `orValue`, `optMap`.
    Optional,
    /// `all(i, v, ...)`, `transformList`, `transformMap` and the like.
    TwoVariableComprehensions,
    /// `cel.bind`.
    Bindings,
    /// `authorizer.group('').resource('pods').check('get').allowed()` and the like. The variables are
    /// declared by who has an authorizer: see [`crate::Authorizer`].
    Authorization,
}

/// Some of the libraries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LibrarySet(u32);

impl LibrarySet {
    /// Only the standard library.
    pub const STANDARD: LibrarySet = LibrarySet(0);

    /// Everything there is.
    pub const ALL: LibrarySet = LibrarySet((1 << (Library::Authorization as u32 + 1)) - 1);

    /// What a Kubernetes API server of version 1.35 knows.
    pub const KUBERNETES: LibrarySet = LibrarySet::ALL
        .without(Library::Math)
        .without(Library::Encoders)
        .without(Library::StringReverse)
        .without(Library::Bindings);

    /// The set and one more.
    #[must_use]
    pub const fn with(self, library: Library) -> LibrarySet {
        LibrarySet(self.0 | 1 << library as u32)
    }

    /// The set but for one.
    #[must_use]
    pub const fn without(self, library: Library) -> LibrarySet {
        LibrarySet(self.0 & !(1 << library as u32))
    }

    /// Whether the library is in the set.
    pub const fn contains(self, library: Library) -> bool {
        self.0 & (1 << library as u32) != 0
    }
}

type Declare = fn(&mut Functions);

/// Every library and what declares it; the order decides which overload is tried first.
const DECLARATIONS: &[(Library, Declare)] = &[
    (Library::Urls, url::declare),
    (Library::Regex, regex::declare),
    (Library::KubernetesLists, lists::declare_kubernetes),
    (Library::Optional, optional::declare),
    (Library::Quantity, quantity::declare),
    (Library::Strings, strings::declare),
    (Library::StringReverse, strings::declare_reverse),
    (Library::Sets, sets::declare),
    (Library::Ip, ip::declare),
    (Library::Cidr, cidr::declare),
    (Library::Format, format::declare),
    (
        Library::TwoVariableComprehensions,
        optional::declare_map_insert,
    ),
    (Library::Semver, semver::declare),
    (Library::Lists, lists::declare),
    (Library::Authorization, authorization::declare),
    (Library::Math, math::declare),
    (Library::Encoders, base64::declare),
];

static ALL: LazyLock<Arc<Functions>> = LazyLock::new(|| Arc::new(build(LibrarySet::ALL)));

static KUBERNETES: LazyLock<Arc<Functions>> =
    LazyLock::new(|| Arc::new(build(LibrarySet::KUBERNETES)));

/// The functions of the standard library and of `libraries`.
pub(crate) fn functions(libraries: LibrarySet) -> Arc<Functions> {
    match libraries {
        LibrarySet::ALL => ALL.clone(),
        LibrarySet::KUBERNETES => KUBERNETES.clone(),
        other => Arc::new(build(other)),
    }
}

fn build(libraries: LibrarySet) -> Functions {
    let mut functions = Functions::default();
    standard::declare(&mut functions);
    timestamps::declare(&mut functions);
    for (library, declare) in DECLARATIONS {
        if libraries.contains(*library) {
            declare(&mut functions);
        }
    }
    functions
}

/// Longest text an expression may make, in bytes: the size of the largest request several times
/// over. Costs do not bound what `replace` makes.
const MAX_TEXT_BYTES: usize = 16 * 1024 * 1024;

/// Refuses to make a text longer than evaluation should ever need.
fn check_text_size(bytes: usize) -> Result<(), EvalError> {
    if bytes > MAX_TEXT_BYTES {
        return Err(EvalError::CallLimitExceeded);
    }
    Ok(())
}

/// The text among arguments that the signature says is text.
fn text<'v>(arguments: &'v [Value<'_>], index: usize) -> Result<&'v str, EvalError> {
    match arguments.get(index) {
        Some(Value::String(text)) => Ok(text),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// The integer among arguments that the signature says is one.
fn int(arguments: &[Value<'_>], index: usize) -> Result<i64, EvalError> {
    match arguments.get(index) {
        Some(Value::Int(value)) => Ok(*value),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// The list among arguments that the signature says is one.
fn list<'v, 'a>(arguments: &'v [Value<'a>], index: usize) -> Result<&'v List<'a>, EvalError> {
    match arguments.get(index) {
        Some(Value::List(list)) => Ok(list),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// The first argument, unchanged.
fn identity<'a>(arguments: &[Value<'a>]) -> Outcome<'a> {
    arguments
        .first()
        .cloned()
        .ok_or_else(EvalError::no_such_overload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_library_can_be_declared() {
        // A malformed signature would panic here.
        let all = build(LibrarySet::ALL);
        assert!(all.get("math.@max").is_some());
        assert!(build(LibrarySet::KUBERNETES).get("math.@max").is_none());
        assert!(build(LibrarySet::STANDARD).get("charAt").is_none());
    }

    #[test]
    fn sets_hold_what_they_are_given() {
        let set = LibrarySet::STANDARD.with(Library::Math);
        assert!(set.contains(Library::Math));
        assert!(!set.contains(Library::Strings));
        assert!(!set.without(Library::Math).contains(Library::Math));
        assert!(LibrarySet::ALL.contains(Library::Bindings));
        assert!(LibrarySet::ALL.contains(Library::Strings));
    }
}
