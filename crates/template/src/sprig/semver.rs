//! Semantic versions and constraints on them.

use bellwether_go::semver::{Constraints, Version};
use bellwether_go::value::{Type, Value};

use super::argument::string;
use crate::function::{Entry, function};

const STRING: Type = Type::String;

pub(super) const TABLE: &[Entry] = &[
    function("semver", &[STRING], |_, a| {
        Ok(Value::object(Version::parse(&string(a, 0))?))
    }),
    function("semverCompare", &[STRING, STRING], |call, a| {
        call.steps(string(a, 0).len())?;
        let constraints = Constraints::parse(&string(a, 0))?;
        let version = Version::parse(&string(a, 1))?;
        Ok(Value::Bool(constraints.check(&version)))
    }),
];
