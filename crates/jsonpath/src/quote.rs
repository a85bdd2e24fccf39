//! Quoted texts, with Go's escapes in either kind of quote.

/// The text between quotes, without its escapes; `None` if an escape means nothing.
pub(crate) fn unquote(quoted: &str) -> Option<String> {
    let quote = quoted.chars().next()?;
    let inner = quoted.get(1..quoted.len().checked_sub(1)?)?;
    if !inner.contains(['\\', quote]) {
        return Some(inner.to_owned());
    }
    // Escapes may name single bytes, so the text can be anything until it is complete.
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        if character == quote {
            return None;
        }
        if character == '\\' {
            rest = escape(rest, quote, &mut bytes)?;
        } else {
            bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Decodes what follows a backslash and returns the text after it.
fn escape<'text>(text: &'text str, quote: char, bytes: &mut Vec<u8>) -> Option<&'text str> {
    let character = text.chars().next()?;
    let rest = &text[character.len_utf8()..];
    let byte = match character {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        '\\' => b'\\',
        '\'' | '"' if character == quote => u8::try_from(character).ok()?,
        'x' => {
            bytes.push(u8::try_from(digits(rest, 2, 16)?).ok()?);
            return rest.get(2..);
        }
        '0'..='7' => {
            bytes.push(u8::try_from(digits(text, 3, 8)?).ok()?);
            return text.get(3..);
        }
        'u' | 'U' => {
            let length = if character == 'u' { 4 } else { 8 };
            let code = char::from_u32(digits(rest, length, 16)?)?;
            bytes.extend_from_slice(code.encode_utf8(&mut [0; 4]).as_bytes());
            return rest.get(length..);
        }
        _ => return None,
    };
    bytes.push(byte);
    Some(rest)
}

fn digits(text: &str, length: usize, radix: u32) -> Option<u32> {
    let digits = text.get(..length)?;
    // The standard parser would take a sign.
    if !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    u32::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(quoted: &str, expected: Option<&str>) {
        assert_eq!(unquote(quoted).as_deref(), expected, "{quoted}");
    }

    #[test]
    fn escapes_are_those_of_go() {
        check(r#""plain""#, Some("plain"));
        check(
            r#""a\tb\n\x41\101\u00e9\U0001F600\\""#,
            Some("a\tb\nAAé😀\\"),
        );
        check(r"'it\'s'", Some("it's"));
        check(r#"'say "x"'"#, Some("say \"x\""));
        check(r#"'\"'"#, None);
        check(r#""\q""#, None);
        check(r#""\x4""#, None);
        check(r#""\400""#, None);
        check(r#""\ud800""#, None);
        check(r#""\u+0e9""#, None);
        check(r#""\xc3\xa9""#, Some("é"));
    }
}
