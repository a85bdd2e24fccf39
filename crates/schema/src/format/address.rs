//! Addresses: of networks, hosts, people and resources.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use bellwether_go::url::Url;
use regex::Regex;

use super::constant;

static HOSTNAME: LazyLock<Regex> = LazyLock::new(|| {
    // Letters include those of other scripts and symbols; only a top-level domain has letters alone.
    let word = r"a-zA-Z0-9\p{S}\p{L}";
    let alone = format!(r"[{word}](?:-?[{word}]{{0,62}})?");
    let label = format!(r"[{word}](?:[{word}\-]{{0,61}}[{word}])?");
    constant(&format!(
        r"^(?:{alone}|(?:{label}\.)+[a-zA-Z\p{{L}}]{{2,63}})$"
    ))
});

pub(super) fn is_hostname(text: &str) -> bool {
    HOSTNAME.is_match(text) && text.len() <= 255 && text.split('.').all(|label| label.len() <= 63)
}

/// An address as old versions of Go read it: octets may have leading zeros.
pub(super) fn parse_ip_sloppy(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        return text.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    }
    let mut octets = [0_u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let significant = part.trim_start_matches('0');
        *octet = if significant.is_empty() {
            0
        } else {
            significant.parse().ok()?
        };
    }
    parts
        .next()
        .is_none()
        .then(|| IpAddr::V4(Ipv4Addr::from(octets)))
}

pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, prefix)) = text.split_once('/') else {
        return false;
    };
    let Some(address) = parse_ip_sloppy(address) else {
        return false;
    };
    let bits = if address.is_ipv4() { 32 } else { 128 };
    prefix.bytes().all(|byte| byte.is_ascii_digit())
        && prefix.parse::<u32>().is_ok_and(|prefix| prefix <= bits)
}

/// Hardware addresses of 6, 8 or 20 bytes, in bytes or in pairs of bytes.
pub(super) fn is_mac(text: &str) -> bool {
    let is_hex = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let (separator, width) = match text.as_bytes() {
        [_, _, b':', ..] => (':', 2),
        [_, _, b'-', ..] => ('-', 2),
        [_, _, _, _, b'.', ..] => ('.', 4),
        _ => return false,
    };
    let parts: Vec<&str> = text.split(separator).collect();
    let bytes = parts.len() * width / 2;
    matches!(bytes, 6 | 8 | 20) && parts.iter().all(|part| is_hex(part, width))
}

/// What Go's `url.ParseRequestURI` accepts: an absolute URI or an absolute path.
pub(super) fn is_request_uri(text: &str) -> bool {
    Url::parse_request(text).is_ok()
}

/// What Go's `mail.ParseAddress` accepts: `name@host`, alone or as `Any Name <name@host>`.
pub(super) fn is_email(text: &str) -> bool {
    let trimmed = without_comment(text.trim_matches([' ', '\t']));
    let Some(bracketed) = trimmed.strip_suffix('>') else {
        return is_address(trimmed);
    };
    let Some(open) = bracketed.rfind('<') else {
        return false;
    };
    let (name, address) = (
        bracketed[..open].trim_matches([' ', '\t']),
        &bracketed[open + 1..],
    );
    is_phrase(name) && is_address(address.trim_matches([' ', '\t']))
}

/// The text without a comment in parentheses at its end.
fn without_comment(text: &str) -> &str {
    if !text.ends_with(')') {
        return text;
    }
    let mut depth = 0_usize;
    for (index, character) in text.char_indices().rev() {
        match character {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return text[..index].trim_end_matches([' ', '\t']);
        }
    }
    text
}

/// Words and quoted strings in front of an address in brackets.
fn is_phrase(text: &str) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let length = match quoted_length(rest) {
            Some(length) => length,
            None => rest.find([' ', '\t', '"']).unwrap_or(rest.len()),
        };
        let word = &rest[..length];
        if length == 0 || (!word.starts_with('"') && !word.chars().all(|c| is_atom(c) || c == '.'))
        {
            return false;
        }
        rest = rest[length..].trim_start_matches([' ', '\t']);
    }
    true
}

fn is_address(text: &str) -> bool {
    let local = quoted_length(text).or_else(|| text.find('@'));
    let Some((local, domain)) = local.map(|end| text.split_at(end)) else {
        return false;
    };
    let Some(domain) = domain.strip_prefix('@') else {
        return false;
    };
    let local_fits = local.starts_with('"') || is_dot_atom(local);
    local_fits && (is_dot_atom(domain) || is_domain_literal(domain))
}

fn is_domain_literal(text: &str) -> bool {
    text.strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .is_some_and(|address| address.parse::<IpAddr>().is_ok())
}

fn is_dot_atom(text: &str) -> bool {
    text.split('.')
        .all(|atom| !atom.is_empty() && atom.chars().all(is_atom))
}

fn is_atom(character: char) -> bool {
    !character.is_ascii()
        || character.is_ascii_alphanumeric()
        || "!#$%&'*+-/=?^_`{|}~".contains(character)
}

/// The length of the quoted string at the start, if there is one and it is not empty.
fn quoted_length(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('"')?;
    let mut escaped = false;
    for (index, character) in inside.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return (index > 0).then_some(index + 2),
            '\n' | '\r' => return None,
            _ => {}
        }
    }
    None
}
