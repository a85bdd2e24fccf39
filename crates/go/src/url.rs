//! URLs, as `net/url` takes them apart and puts them together.

use std::fmt::{self, Write as _};

use crate::quote::quote;

/// A URL in parts, decoded where Go decodes them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Url {
    /// The scheme in lower case.
    pub scheme: String,
    /// What follows the scheme if it is no path.
    pub opaque: String,
    /// Name and password, if there are any.
    pub user: Option<User>,
    /// Host and port.
    pub host: String,
    /// The path, decoded.
    pub path: String,
    /// Whether the path was written with no host before it.
    pub omits_host: bool,
    /// Whether there is a question mark though the query is empty.
    pub forces_query: bool,
    /// The query as it was written.
    pub query: String,
    /// The fragment, decoded.
    pub fragment: String,
}

/// The name and perhaps the password before a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The password, which may be empty.
    pub password: Option<String>,
}

/// A text is not a URL; the message is Go's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("parse {}: {problem}", quote(text))]
pub struct UrlError {
    text: String,
    problem: String,
}

/// Where a text stands in a URL.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Path,
    User,
    Host,
    Fragment,
}

impl Url {
    /// Takes a URL apart: `url.Parse`.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let (body, fragment) = text.split_once('#').unwrap_or((text, ""));
        let wrong = |problem: String| UrlError {
            text: text.to_owned(),
            problem,
        };
        let mut url = Self::parse_body(body).map_err(|problem| UrlError {
            text: body.to_owned(),
            problem,
        })?;
        url.fragment = unescape(fragment, Part::Fragment).map_err(wrong)?;
        Ok(url)
    }

    fn parse_body(text: &str) -> Result<Self, String> {
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        let mut url = Self::default();
        if text == "*" {
            "*".clone_into(&mut url.path);
            return Ok(url);
        }
        let (scheme, mut rest) = split_scheme(text)?;
        url.scheme = scheme.to_ascii_lowercase();
        if rest.ends_with('?') && rest.matches('?').count() == 1 {
            url.forces_query = true;
            rest = &rest[..rest.len() - 1];
        } else if let Some((before, query)) = rest.split_once('?') {
            rest = before;
            query.clone_into(&mut url.query);
        }
        if !rest.starts_with('/') {
            if !url.scheme.is_empty() {
                rest.clone_into(&mut url.opaque);
                return Ok(url);
            }
            let segment = rest.split('/').next().unwrap_or_default();
            if segment.contains(':') {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        let has_authority =
            rest.starts_with("//") && (!url.scheme.is_empty() || !rest.starts_with("///"));
        if has_authority {
            let authority = &rest[2..];
            let end = authority.find('/').unwrap_or(authority.len());
            rest = &authority[end..];
            url.authority(&authority[..end])?;
        } else if !url.scheme.is_empty() && rest.starts_with('/') {
            url.omits_host = true;
        }
        url.path = unescape(rest, Part::Path)?;
        Ok(url)
    }

    fn authority(&mut self, text: &str) -> Result<(), String> {
        let (user, host) = match text.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, text),
        };
        self.host = parse_host(host)?;
        let Some(user) = user else { return Ok(()) };
        let is_valid = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
        if !user.chars().all(is_valid) {
            return Err("net/url: invalid userinfo".to_owned());
        }
        let (name, password) = match user.split_once(':') {
            Some((name, password)) => (name, Some(password)),
            None => (user, None),
        };
        self.user = Some(User {
            name: unescape(name, Part::User)?,
            password: password
                .map(|text| unescape(text, Part::User))
                .transpose()?,
        });
        Ok(())
    }

    /// The host without port and brackets.
    pub fn hostname(&self) -> &str {
        let host = &*self.host;
        if let Some(end) = host.strip_prefix('[').and_then(|rest| rest.find(']')) {
            return &host[1..=end];
        }
        match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        }
    }
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn parse_host(host: &str) -> Result<String, String> {
    let port = if host.starts_with('[') {
        match host.rfind(']') {
            Some(end) => &host[end + 1..],
            None => return Err("missing ']' in host".to_owned()),
        }
    } else {
        host.rfind(':').map_or("", |colon| &host[colon..])
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    if (!port.is_empty() && !port.starts_with(':'))
        || !digits.bytes().all(|byte| byte.is_ascii_digit())
    {
        return Err(format!("invalid port {} after host", quote(port)));
    }
    unescape(host, Part::Host)
}

fn unescape(text: &str, part: Part) -> Result<String, String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'%' => {
                let digits = bytes.get(at + 1..at + 3);
                let code = digits
                    .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
                    .and_then(|digits| std::str::from_utf8(digits).ok())
                    .and_then(|digits| u8::from_str_radix(digits, 16).ok());
                let Some(code) = code else {
                    let shown = String::from_utf8_lossy(&bytes[at..bytes.len().min(at + 3)]);
                    return Err(format!("invalid URL escape {}", quote(&shown)));
                };
                if part == Part::Host && code < 0x80 && code != b'%' {
                    let shown = String::from_utf8_lossy(&bytes[at..at + 3]);
                    return Err(format!("invalid URL escape {}", quote(&shown)));
                }
                out.push(code);
                at += 3;
            }
            byte => {
                if part == Part::Host && byte.is_ascii() && must_escape(*byte, part) {
                    let shown = quote(&char::from(*byte).to_string());
                    return Err(format!("invalid character {shown} in host name"));
                }
                out.push(*byte);
                at += 1;
            }
        }
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}

fn must_escape(byte: u8, part: Part) -> bool {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => false,
        b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' | b':'
        | b'[' | b']' | b'<' | b'>' | b'"'
            if part == Part::Host =>
        {
            false
        }
        b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'?' | b'@' => match part {
            Part::Path => byte == b'?',
            Part::User => matches!(byte, b'@' | b'/' | b'?' | b':'),
            Part::Fragment => false,
            Part::Host => true,
        },
        b'!' | b'(' | b')' | b'*' => part != Part::Fragment,
        _ => true,
    }
}

fn escape(text: &str, part: Part) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if must_escape(byte, part) {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        } else {
            out.push(char::from(byte));
        }
    }
    out
}

impl fmt::Display for User {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&escape(&self.name, Part::User))?;
        match &self.password {
            Some(password) => write!(formatter, ":{}", escape(password, Part::User)),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(formatter, "{}:", self.scheme)?;
        }
        if self.opaque.is_empty() {
            let has_authority = !self.host.is_empty() || self.user.is_some();
            let names_nothing = self.omits_host && !has_authority;
            if (!self.scheme.is_empty() || has_authority) && !names_nothing {
                if has_authority || !self.path.is_empty() {
                    formatter.write_str("//")?;
                }
                if let Some(user) = &self.user {
                    write!(formatter, "{user}@")?;
                }
                formatter.write_str(&escape(&self.host, Part::Host))?;
            }
            let path = if self.path == "*" {
                "*".to_owned()
            } else {
                escape(&self.path, Part::Path)
            };
            if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
                formatter.write_str("/")?;
            }
            let is_bare = self.scheme.is_empty() && !has_authority;
            if is_bare
                && path
                    .split('/')
                    .next()
                    .is_some_and(|first| first.contains(':'))
            {
                formatter.write_str("./")?;
            }
            formatter.write_str(&path)?;
        } else {
            formatter.write_str(&self.opaque)?;
        }
        if self.forces_query || !self.query.is_empty() {
            write!(formatter, "?{}", self.query)?;
        }
        if !self.fragment.is_empty() {
            write!(formatter, "#{}", escape(&self.fragment, Part::Fragment))?;
        }
        Ok(())
    }
}
