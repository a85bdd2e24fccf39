//! URLs, as `net/url` takes them apart and puts them together.

mod escape;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use crate::quote::quote;

use escape::{Part, unescape, unescape_text};
pub use escape::{
    path_escape, path_unescape, path_unescape_bytes, query_escape, query_unescape,
    query_unescape_bytes,
};

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
    /// The path as it was written; empty if the URL was not read from a text.
    pub raw_path: String,
    /// Whether the path was written with no host before it.
    pub omits_host: bool,
    /// Whether there is a question mark though the query is empty.
    pub forces_query: bool,
    /// The query as it was written.
    pub query: String,
    /// The fragment, decoded.
    pub fragment: String,
    /// The fragment as it was written; empty if the URL was not read from a text.
    pub raw_fragment: String,
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

impl Url {
    /// Takes a URL or a relative reference apart: `url.Parse`.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let (body, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut url = Self::parse_body(body, false).map_err(|problem| error(body, problem))?;
        url.fragment =
            unescape_text(fragment, Part::Fragment).map_err(|problem| error(text, problem))?;
        fragment.clone_into(&mut url.raw_fragment);
        Ok(url)
    }

    /// Takes an absolute URL or an absolute path apart, which has no fragment: `url.ParseRequestURI`.
    pub fn parse_request(text: &str) -> Result<Self, UrlError> {
        Self::parse_body(text, true).map_err(|problem| error(text, problem))
    }

    fn parse_body(text: &str, is_request: bool) -> Result<Self, String> {
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        if text.is_empty() && is_request {
            return Err("empty url".to_owned());
        }
        let mut url = Self::default();
        if text == "*" {
            "*".clone_into(&mut url.path);
            return Ok(url);
        }
        let (scheme, rest) = split_scheme(text)?;
        url.scheme = scheme.to_ascii_lowercase();
        let rest = url.take_query(rest);
        if !rest.starts_with('/') {
            if !url.scheme.is_empty() {
                rest.clone_into(&mut url.opaque);
                return Ok(url);
            }
            if is_request {
                return Err("invalid URI for request".to_owned());
            }
            let segment = rest.split('/').next().unwrap_or_default();
            if segment.contains(':') {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        let may_have_authority =
            !url.scheme.is_empty() || (!is_request && !rest.starts_with("///"));
        let path = match rest.strip_prefix("//") {
            Some(after) if may_have_authority => {
                let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
                url.take_authority(authority)?;
                path
            }
            _ => {
                url.omits_host = !url.scheme.is_empty() && rest.starts_with('/');
                rest
            }
        };
        url.path = unescape_text(path, Part::Path)?;
        path.clone_into(&mut url.raw_path);
        Ok(url)
    }

    /// Takes the query off the end of a text.
    fn take_query<'t>(&mut self, text: &'t str) -> &'t str {
        let Some((rest, query)) = text.split_once('?') else {
            return text;
        };
        self.forces_query = query.is_empty();
        query.clone_into(&mut self.query);
        rest
    }

    fn take_authority(&mut self, text: &str) -> Result<(), String> {
        let (user, host) = match text.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, text),
        };
        self.host = parse_host(&self.scheme, host)?;
        let Some(user) = user else { return Ok(()) };
        let is_valid = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
        if !user.chars().all(is_valid) {
            return Err("net/url: invalid userinfo".to_owned());
        }
        let (name, password) = match user.split_once(':') {
            Some((name, password)) => (name, Some(password)),
            None => (user, None),
        };
        let decode = |text| unescape_text(text, Part::User);
        self.user = Some(User {
            name: decode(name)?,
            password: password.map(decode).transpose()?,
        });
        Ok(())
    }

    /// The host without port and brackets.
    pub fn hostname(&self) -> &str {
        self.host_and_port().0
    }

    /// The port; empty if there is none.
    pub fn port(&self) -> &str {
        self.host_and_port().1
    }

    fn host_and_port(&self) -> (&str, &str) {
        let (host, port) = match self.host.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port),
            _ => (&*self.host, ""),
        };
        let bare = host.strip_prefix('[');
        let bare = bare.and_then(|host| host.strip_suffix(']'));
        (bare.unwrap_or(host), port)
    }

    /// The path as it stands in a URL: as it was written if that is valid, or escaped.
    pub fn escaped_path(&self) -> Cow<'_, str> {
        if self.path == "*" {
            return Cow::Borrowed("*");
        }
        as_written(&self.raw_path, &self.path, Part::Path)
    }
}

/// A part as it was written if that is valid and still says the same, or escaped.
fn as_written<'t>(raw: &'t str, decoded: &str, part: Part) -> Cow<'t, str> {
    let bytes = unescape(raw, part).unwrap_or_default();
    if String::from_utf8_lossy(&bytes) != decoded {
        return Cow::Owned(escape::escape(decoded.as_bytes(), part));
    }
    let may_stand = |byte| part.keeps(byte) || b"!$&'()*+,;=:@[]%".contains(&byte);
    if raw.bytes().all(may_stand) {
        return Cow::Borrowed(raw);
    }
    Cow::Owned(escape::escape(&bytes, part))
}

fn error(text: &str, problem: String) -> UrlError {
    UrlError {
        text: text.to_owned(),
        problem,
    }
}

/// Reads the parameters of a query, as `url.URL.Query` does: malformed ones are left out.
pub fn query_parameters(query: &str) -> BTreeMap<String, Vec<String>> {
    let mut parameters: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for part in query.split('&') {
        if part.is_empty() || part.contains(';') {
            continue;
        }
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        if let (Ok(key), Ok(value)) = (query_unescape(key), query_unescape(value)) {
            parameters.entry(key).or_default().push(value);
        }
    }
    parameters
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

fn parse_host(scheme: &str, host: &str) -> Result<String, String> {
    match host.rfind('[') {
        Some(0) => return parse_bracketed(&host[1..]),
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {}
    }
    // Some databases list several hosts with ports; the web does not.
    let colon = match scheme {
        "http" | "https" => host.find(':'),
        _ => host.rfind(':'),
    };
    check_port(colon.map_or("", |colon| &host[colon..]))?;
    unescape_text(host, Part::Host)
}

/// Reads the address after an opening bracket, and its port.
fn parse_bracketed(host: &str) -> Result<String, String> {
    let Some((address, port)) = host.rsplit_once(']') else {
        return Err("missing ']' in host".to_owned());
    };
    check_port(port)?;
    let (address, zone) = address.split_at(address.find("%25").unwrap_or(address.len()));
    let address = unescape_text(address, Part::Host)?;
    let zone = unescape_text(zone, Part::Zone)?;
    let problem = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) if zone.is_empty() => return Err("invalid IP-literal".to_owned()),
        Ok(_) if zone == "%" => "zone must be a non-empty string",
        Ok(IpAddr::V4(_)) => "zone specified with IPv4 address",
        Ok(IpAddr::V6(_)) => return Ok(format!("[{address}{zone}]{port}")),
        Err(_) => "unable to parse IP",
    };
    let shown = quote(&format!("{address}{zone}"));
    Err(format!("invalid host: ParseAddr({shown}): {problem}"))
}

fn check_port(port: &str) -> Result<(), String> {
    let is_valid = match port.strip_prefix(':') {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_digit()),
        None => port.is_empty(),
    };
    if is_valid {
        return Ok(());
    }
    Err(format!("invalid port {} after host", quote(port)))
}

impl fmt::Display for User {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let escape = |text: &str| escape::escape(text.as_bytes(), Part::User);
        formatter.write_str(&escape(&self.name))?;
        match &self.password {
            Some(password) => write!(formatter, ":{}", escape(password)),
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
            self.write_authority(formatter)?;
            self.write_path(formatter)?;
        } else {
            formatter.write_str(&self.opaque)?;
        }
        if self.forces_query || !self.query.is_empty() {
            write!(formatter, "?{}", self.query)?;
        }
        if !self.fragment.is_empty() {
            let fragment = as_written(&self.raw_fragment, &self.fragment, Part::Fragment);
            write!(formatter, "#{fragment}")?;
        }
        Ok(())
    }
}

impl Url {
    fn has_authority(&self) -> bool {
        !self.host.is_empty() || self.user.is_some()
    }

    fn write_authority(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_left_out = self.scheme.is_empty() || self.omits_host;
        if is_left_out && !self.has_authority() {
            return Ok(());
        }
        if self.has_authority() || !self.path.is_empty() {
            formatter.write_str("//")?;
        }
        if let Some(user) = &self.user {
            write!(formatter, "{user}@")?;
        }
        formatter.write_str(&escape::escape(self.host.as_bytes(), Part::Host))
    }

    fn write_path(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.escaped_path();
        if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
            formatter.write_str("/")?;
        }
        // A first segment with a colon would be read as a scheme.
        let is_relative = self.scheme.is_empty() && !self.has_authority();
        let segment = path.split('/').next().unwrap_or_default();
        if is_relative && segment.contains(':') {
            formatter.write_str("./")?;
        }
        formatter.write_str(&path)
    }
}
