//! Randomness, from where the caller takes it.

use bellwether_go::value::{Type, Value};

use super::argument::{int, string};
use super::encode::hex;
use crate::call::{Call, Failure};
use crate::function::{Entry, function};

const INT: Type = Type::INT;

type Done = Result<Value, Failure>;

pub(super) const TABLE: &[Entry] = &[
    function("randAlphaNum", &[INT], |call, a| {
        characters(call, int(a, 0), |c| c.is_ascii_alphanumeric())
    }),
    function("randAlpha", &[INT], |call, a| {
        characters(call, int(a, 0), |c| c.is_ascii_alphabetic())
    }),
    function("randNumeric", &[INT], |call, a| {
        characters(call, int(a, 0), |c| c.is_ascii_digit())
    }),
    function("randAscii", &[INT], |call, a| {
        characters(call, int(a, 0), |c| (' '..='~').contains(&c))
    }),
    function("randBytes", &[INT], |call, a| {
        let Ok(count) = usize::try_from(int(a, 0)) else {
            return Err("runtime error: makeslice: len out of range".into());
        };
        call.bytes(count.saturating_mul(3))?;
        let mut bytes = vec![0; count];
        (call.world().random)(&mut bytes);
        call.text(bellwether_go::base64::encode(&bytes))
    }),
    function("randInt", &[INT, INT], |call, a| {
        let (low, high) = (int(a, 0), int(a, 1));
        let size = i128::from(high) - i128::from(low);
        let Some(size) = u64::try_from(size).ok().filter(|size| *size > 0) else {
            return Err("invalid argument to Intn".into());
        };
        let offset = below(call, size);
        Ok(Value::int(low.wrapping_add_unsigned(offset)))
    }),
    function("shuffle", &[Type::String], |call, a| {
        let mut characters: Vec<char> = string(a, 0).chars().collect();
        call.steps(characters.len())?;
        for index in (1..characters.len()).rev() {
            let bound = u64::try_from(index + 1).unwrap_or(u64::MAX);
            let other = usize::try_from(below(call, bound)).unwrap_or(0);
            characters.swap(index, other);
        }
        call.text(characters.into_iter().collect::<String>())
    }),
    function("uuidv4", &[], |call, _| {
        let mut bytes = [0; 16];
        (call.world().random)(&mut bytes);
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let hex = hex(&bytes);
        let groups = [
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..],
        ];
        call.text(groups.join("-"))
    }),
];

/// A number below a bound, all of them equally likely.
fn below(call: &Call<'_>, bound: u64) -> u64 {
    let limit = u64::MAX - u64::MAX % bound;
    // Half of all numbers are below the limit at worst.
    for _ in 0..128 {
        let mut bytes = [0; 8];
        (call.world().random)(&mut bytes);
        let number = u64::from_le_bytes(bytes);
        if number < limit {
            return number % bound;
        }
    }
    0
}

fn characters(call: &mut Call<'_>, count: i64, accepts: fn(char) -> bool) -> Done {
    let Ok(count) = usize::try_from(count) else {
        return call.text("");
    };
    call.bytes(count.saturating_mul(2))?;
    call.steps(count)?;
    let alphabet: Vec<char> = (' '..='~').filter(|c| accepts(*c)).collect();
    let size = u64::try_from(alphabet.len()).unwrap_or(1);
    let mut text = String::with_capacity(count);
    for _ in 0..count {
        let index = usize::try_from(below(call, size)).unwrap_or(0);
        text.push(alphabet[index]);
    }
    call.text(text)
}
