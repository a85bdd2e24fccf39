//! URLs: percent encoding, and the checks a URL must pass.

use std::fmt::Write as _;

/// The part of a URL that decides which characters are escaped.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Part {
    /// One element of a path.
    PathSegment,
    /// A key or value of a query; blanks become `+`.
    Query,
}

/// Escapes every character that has a meaning in the part.
pub(super) fn escape(text: &str, part: Part) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        let plain = byte.is_ascii_alphanumeric()
            || b"-_.~".contains(&byte)
            || (part == Part::PathSegment && b"$&+=:@".contains(&byte));
        if plain {
            escaped.push(char::from(byte));
        } else if byte == b' ' && part == Part::Query {
            escaped.push('+');
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

/// Undoes [`escape`].
pub(super) fn unescape(text: &str, part: Part) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        match first {
            b'%' => {
                bytes.push(percent(tail)?);
                rest = &tail[2..];
            }
            b'+' if part == Part::Query => bytes.push(b' '),
            byte => bytes.push(*byte),
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The byte written by the two digits after a percent sign.
fn percent(after: &[u8]) -> Result<u8, String> {
    let digits = after
        .get(..2)
        .and_then(|digits| std::str::from_utf8(digits).ok());
    let byte = digits
        .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
        .and_then(|digits| u8::from_str_radix(digits, 16).ok());
    byte.ok_or_else(|| {
        let shown = String::from_utf8_lossy(&after[..after.len().min(2)]);
        format!("invalid URL escape \"%{shown}\"")
    })
}

/// The scheme of a URL, if it has one; an error when a colon starts it.
pub(super) fn scheme(text: &str) -> Result<Option<&str>, String> {
    for (position, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if position > 0 => {}
            b':' if position == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok(Some(&text[..position])),
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// Checks that text is a URL or a relative reference.
pub(super) fn check(text: &str) -> Result<(), String> {
    parse(text).map_err(|reason| format!("parse {text:?}: {reason}"))
}

fn parse(text: &str) -> Result<(), String> {
    if text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    let (body, fragment) = text.split_once('#').unwrap_or((text, ""));
    check_escapes(fragment)?;
    let scheme = scheme(body)?;
    let rest = match scheme {
        Some(scheme) => &body[scheme.len() + 1..],
        None => body,
    };
    let (rest, _query) = rest.split_once('?').unwrap_or((rest, ""));
    if !rest.starts_with('/') {
        if scheme.is_some() {
            return Ok(());
        }
        let first = rest.split('/').next().unwrap_or(rest);
        if first.contains(':') {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let path = match rest.strip_prefix("//") {
        Some(after) if scheme.is_some() || !rest.starts_with("///") => {
            let end = after.find('/').unwrap_or(after.len());
            check_authority(&after[..end])?;
            &after[end..]
        }
        _ => rest,
    };
    check_escapes(path)
}

fn check_escapes(text: &str) -> Result<(), String> {
    for (position, _) in text.match_indices('%') {
        percent(&text.as_bytes()[position + 1..])?;
    }
    Ok(())
}

fn check_authority(authority: &str) -> Result<(), String> {
    let host = match authority.rsplit_once('@') {
        Some((user, host)) => {
            let allowed =
                |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
            if !user.bytes().all(allowed) {
                return Err("net/url: invalid userinfo".to_owned());
            }
            check_escapes(user)?;
            host
        }
        None => authority,
    };
    let port = match host.strip_prefix('[') {
        Some(inner) => match inner.rsplit_once(']') {
            Some((_, port)) => port,
            None => return Err("missing ']' in host".to_owned()),
        },
        None => host.rfind(':').map_or("", |colon| &host[colon..]),
    };
    let digits = port.strip_prefix(':').unwrap_or("");
    let valid_port = port.is_empty() || port.starts_with(':');
    if !valid_port || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("invalid port {port:?} after host"));
    }
    if let Some(character) = host.chars().find(|c| " \"<>\\^`{|}".contains(*c)) {
        return Err(format!(
            "invalid character {:?} in host name",
            character.to_string()
        ));
    }
    for (position, _) in host.match_indices('%') {
        // Only bytes outside ASCII may be escaped in a host.
        let byte = percent(&host.as_bytes()[position + 1..])?;
        if byte < 0x80 && !host.starts_with('[') {
            return Err(format!("invalid URL escape \"%{byte:02X}\""));
        }
    }
    Ok(())
}
