//! What a program needs in order to run: whether it is linked statically.

/// The type of a header that names an interpreter.
const INTERPRETER: usize = 3;

/// Returns the interpreter that an ELF program of 64 bits asks for: nothing if it is linked statically.
pub(crate) fn interpreter(program: &[u8]) -> anyhow::Result<Option<String>> {
    let damaged = || anyhow::anyhow!("this is no ELF program of 64 bits, little-endian");
    anyhow::ensure!(program.starts_with(b"\x7fELF\x02\x01"), damaged());
    let number = |at: usize, length: usize| -> Option<usize> {
        let bytes = program.get(at..at.checked_add(length)?)?;
        let value = bytes
            .iter()
            .rev()
            .fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        usize::try_from(value).ok()
    };
    let table = number(32, 8).ok_or_else(damaged)?;
    let (size, count) = (
        number(54, 2).ok_or_else(damaged)?,
        number(56, 2).ok_or_else(damaged)?,
    );
    for index in 0..count {
        let at = index
            .checked_mul(size)
            .and_then(|offset| offset.checked_add(table));
        let at = at.ok_or_else(damaged)?;
        if number(at, 4).ok_or_else(damaged)? != INTERPRETER {
            continue;
        }
        let field = |offset: usize| number(at.checked_add(offset)?, 8);
        let (from, length) = (
            field(8).ok_or_else(damaged)?,
            field(32).ok_or_else(damaged)?,
        );
        let end = from.checked_add(length).ok_or_else(damaged)?;
        let name = program.get(from..end).ok_or_else(damaged)?;
        let name = String::from_utf8_lossy(name);
        return Ok(Some(name.trim_end_matches('\0').to_owned()));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program with one header of that type, which names an interpreter.
    fn program(kind: u32) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01".to_vec();
        bytes.resize(64, 0);
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = 1;
        bytes.extend(kind.to_le_bytes());
        bytes.resize(64 + 56, 0);
        bytes[64 + 8] = 120;
        bytes[64 + 32] = 8;
        bytes.extend(b"/lib/ld\0");
        bytes
    }

    #[test]
    fn a_program_says_what_it_is_loaded_by() {
        assert_eq!(
            interpreter(&program(3)).unwrap().as_deref(),
            Some("/lib/ld")
        );
        assert_eq!(interpreter(&program(1)).unwrap(), None);
        assert!(interpreter(b"#!/bin/sh").is_err());
        for length in 6..program(3).len() {
            // Nothing panics, whatever is missing.
            let _ = interpreter(&program(3)[..length]);
        }
    }
}
