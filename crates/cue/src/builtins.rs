//! The builtin packages: what `import "strings"` and its siblings bring.
//!
//! [`package`] finds a package by its import path. Each package is one module with a table of
//! functions; a function takes plain values and returns one, and sees nothing of the evaluation
//! except through [`Host`](crate::value::Host). Functions that the language predeclares (`len`, `and`, …) are
//! part of the evaluator instead.

mod argument;
mod base64;
mod bits;
mod crypto;
mod csv;
mod hex;
mod html;
mod json;
mod list;
mod math;
mod net;
mod path;
mod regexp;
mod strconv;
mod strings;
mod structure;
mod tabwriter;
mod template;
mod time;
mod toml;
mod uuid;
mod yaml;

#[cfg(test)]
mod tests;

use crate::value::{Builtin, Function, Kind, Package, Param};

pub(crate) use self::base64::encode_standard as encode_base64;
pub use self::json::{
    parse as parse_json, write as write_json, write_indented as write_json_indented,
};
pub(crate) use self::json::{write_string as write_json_string, write_value as write_json_value};
pub use self::yaml::{parse as parse_yaml, parse_stream as parse_yaml_stream, write as write_yaml};

/// Every package, sorted by path.
static PACKAGES: &[&Package] = &[
    &crypto::ED25519,
    &crypto::HMAC,
    &crypto::MD5,
    &crypto::SHA1,
    &crypto::SHA256,
    &crypto::SHA512,
    &base64::PACKAGE,
    &csv::PACKAGE,
    &hex::PACKAGE,
    &json::PACKAGE,
    &toml::PACKAGE,
    &yaml::PACKAGE,
    &html::PACKAGE,
    &list::PACKAGE,
    &math::PACKAGE,
    &bits::PACKAGE,
    &net::PACKAGE,
    &path::PACKAGE,
    &regexp::PACKAGE,
    &strconv::PACKAGE,
    &strings::PACKAGE,
    &structure::PACKAGE,
    &tabwriter::PACKAGE,
    &template::PACKAGE,
    &time::PACKAGE,
    &uuid::PACKAGE,
];

/// The builtin package of an import path.
pub fn package(path: &str) -> Option<&'static Package> {
    PACKAGES
        .iter()
        .copied()
        .find(|package| package.path == path)
}

/// The import paths of all builtin packages, for messages and hints.
pub fn paths() -> impl Iterator<Item = &'static str> {
    PACKAGES.iter().map(|package| package.path)
}

/// Shorthands for the tables of the packages.
const STRING: Param = Param::of(Kind::STRING);
const INT: Param = Param::of(Kind::INT);
const NUMBER: Param = Param::of(Kind::NUMBER);
const BYTES: Param = Param::of(Kind(Kind::BYTES.0 | Kind::STRING.0));
const LIST: Param = Param::shallow(Kind::LIST);
const ANY: Param = Param::of(Kind::TOP);

/// A row of a package's table.
const fn function(
    name: &'static str,
    params: &'static [Param],
    result: Kind,
    call: Function,
) -> Builtin {
    Builtin {
        name,
        params,
        result,
        call,
    }
}
