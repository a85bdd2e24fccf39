//! The functions of sprig 3.3, as tables.
//!
//! The time, randomness and names of hosts come from the [`crate::World`]; there is no environment.

pub(crate) mod argument;
mod cases;
mod crypto;
mod dates;
mod decimal;
mod defaults;
mod dicts;
mod encode;
mod lists;
mod numbers;
mod paths;
mod random;
mod regex;
mod semver;
mod strings;
mod time;
mod urls;

#[cfg(test)]
mod tests;

pub use encode::decode_base64;
pub use time::time_of;

use crate::function::Entry;

/// All functions of sprig.
pub const TABLES: &[&[Entry]] = &[
    crypto::TABLE,
    dates::TABLE,
    defaults::TABLE,
    dicts::TABLE,
    encode::TABLE,
    lists::TABLE,
    numbers::TABLE,
    paths::TABLE,
    random::TABLE,
    regex::TABLE,
    semver::TABLE,
    strings::TABLE,
    urls::TABLE,
];
