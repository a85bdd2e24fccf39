//! URLs, read as Go's `net/url` reads the target of a request.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::Arc;

use super::text;
use crate::declaration::Functions;
use crate::error::EvalError;
use crate::value::{Key, Map, Text, Value, quoted};

/// A URL in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    scheme: String,
    user: String,
    host: String,
    /// The path as it was written.
    path: String,
    query: String,
    fragment: String,
}

type Parsed<T> = Result<T, String>;

impl Url {
    /// Reads an absolute URL or an absolute path.
    pub fn parse(text: &str) -> Result<Url, EvalError> {
        parse_request(text).map_err(|reason| {
            EvalError::failed(format!(
                "URL parse error during conversion from string: parse {}: {reason}",
                quoted(text)
            ))
        })
    }

    /// The path, escaped so that it can stand in a URL.
    fn escaped_path(&self) -> Cow<'_, str> {
        if self.path.bytes().all(is_path_byte) {
            return Cow::Borrowed(&self.path);
        }
        let decoded = unescape(&self.path, false).unwrap_or_default();
        let mut out = String::with_capacity(self.path.len());
        for byte in decoded {
            if is_plain_path_byte(byte) {
                out.push(char::from(byte));
            } else {
                // Writing to a String cannot fail.
                let _ = write!(out, "%{byte:02X}");
            }
        }
        Cow::Owned(out)
    }

    fn host_and_port(&self) -> (&str, &str) {
        let (host, port) = match self.host.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port),
            _ => (self.host.as_str(), ""),
        };
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        (bare.unwrap_or(host), port)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        if !self.host.is_empty() || !self.user.is_empty() {
            f.write_str("//")?;
            if !self.user.is_empty() {
                write!(f, "{}@", self.user)?;
            }
            f.write_str(&self.host)?;
        }
        f.write_str(&self.escaped_path())?;
        if !self.query.is_empty() {
            write!(f, "?{}", self.query)?;
        }
        if !self.fragment.is_empty() {
            write!(f, "#{}", self.fragment)?;
        }
        Ok(())
    }
}

/// As `url.ParseRequestURI` decides and `url.Parse` reads.
pub(crate) fn parse_request(text: &str) -> Parsed<Url> {
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() {
        return Err("empty url".to_owned());
    }
    // Requests have no fragments, so deciding looks at the whole and reading does not.
    parse_parts(text)?;
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    let mut url = parse_parts(rest)?;
    unescape(fragment, false).map_err(|escape| invalid_escape(&escape))?;
    fragment.clone_into(&mut url.fragment);
    Ok(url)
}

fn invalid_escape(escape: &str) -> String {
    format!("invalid URL escape {}", quoted(escape))
}

fn parse_parts(text: &str) -> Parsed<Url> {
    let (scheme, rest) = split_scheme(text)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut url = Url {
        scheme: scheme.to_ascii_lowercase(),
        user: String::new(),
        host: String::new(),
        path: String::new(),
        query: query.to_owned(),
        fragment: String::new(),
    };
    if text == "*" {
        "*".clone_into(&mut url.path);
        return Ok(url);
    }
    if !rest.starts_with('/') {
        return if url.scheme.is_empty() {
            Err("invalid URI for request".to_owned())
        } else {
            // An opaque URL, such as mailto:a@b, has no path.
            Ok(url)
        };
    }
    let mut path = rest;
    if !url.scheme.is_empty()
        && let Some(after) = rest.strip_prefix("//")
    {
        let end = after.find('/').unwrap_or(after.len());
        let (authority, tail) = after.split_at(end);
        path = tail;
        parse_authority(authority, &mut url)?;
    }
    unescape(path, false).map_err(|escape| invalid_escape(&escape))?;
    path.clone_into(&mut url.path);
    Ok(url)
}

fn split_scheme(text: &str) -> Parsed<(&str, &str)> {
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..index], &text[index + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn parse_authority(authority: &str, url: &mut Url) -> Parsed<()> {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (user, host),
        None => ("", authority),
    };
    if !user
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&b))
    {
        return Err("net/url: invalid userinfo".to_owned());
    }
    unescape(user, false).map_err(|escape| invalid_escape(&escape))?;
    user.clone_into(&mut url.user);
    let after_bracket = if host.starts_with('[') {
        let close = host.rfind(']').ok_or("missing ']' in host")?;
        &host[close + 1..]
    } else {
        &host[host.rfind(':').unwrap_or(host.len())..]
    };
    let valid_port = after_bracket.is_empty()
        || after_bracket
            .strip_prefix(':')
            .is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    if !valid_port {
        return Err(format!("invalid port {} after host", quoted(after_bracket)));
    }
    url.host = unescape_host(host)?;
    Ok(())
}

/// In a host only bytes outside ASCII may be escaped.
fn unescape_host(host: &str) -> Parsed<String> {
    for (index, byte) in host.bytes().enumerate() {
        let allowed = byte.is_ascii_alphanumeric()
            || byte >= 0x80
            || b"-_.~!$&'()*+,;=:[]<>\"%".contains(&byte);
        if !allowed {
            return Err(format!(
                "invalid character {} in host name",
                quoted(&host[index..=index])
            ));
        }
        if byte == b'%' {
            let escape = host.get(index..index + 3).unwrap_or(&host[index..]);
            let ascii = u8::from_str_radix(escape.get(1..).unwrap_or_default(), 16)
                .is_ok_and(|decoded| decoded < 0x80);
            if ascii && escape != "%25" {
                return Err(invalid_escape(escape));
            }
        }
    }
    let bytes = unescape(host, false).map_err(|escape| invalid_escape(&escape))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Decodes percent escapes; a malformed one is the error.
fn unescape(text: &str, plus_is_space: bool) -> Result<Vec<u8>, String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while let Some(&byte) = bytes.get(index) {
        match byte {
            b'%' => {
                let decoded = text
                    .get(index + 1..index + 3)
                    .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
                    .and_then(|digits| u8::from_str_radix(digits, 16).ok());
                let Some(decoded) = decoded else {
                    let escape: String = text[index..].chars().take(3).collect();
                    return Err(escape);
                };
                out.push(decoded);
                index += 3;
            }
            b'+' if plus_is_space => {
                out.push(b' ');
                index += 1;
            }
            _ => {
                out.push(byte);
                index += 1;
            }
        }
    }
    Ok(out)
}

/// Bytes that may stand in a path that is already escaped.
fn is_path_byte(byte: u8) -> bool {
    is_plain_path_byte(byte) || b"!'()*[]%".contains(&byte)
}

/// Bytes that escaping a path leaves alone.
fn is_plain_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte)
}

/// The parameters of a query; malformed ones are left out.
fn query_parameters(query: &str) -> BTreeMap<String, Vec<String>> {
    let mut parameters: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for part in query.split('&') {
        if part.is_empty() || part.contains(';') {
            continue;
        }
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        if let (Ok(key), Ok(value)) = (unescape(key, true), unescape(value, true)) {
            parameters
                .entry(String::from_utf8_lossy(&key).into_owned())
                .or_default()
                .push(String::from_utf8_lossy(&value).into_owned());
        }
    }
    parameters
}

pub(super) fn declare(functions: &mut Functions) {
    functions.add("string_to_url", "url(string) -> kubernetes.URL", |a| {
        Url::parse(text(a, 0)?).map(|url| Value::Url(Arc::new(url)))
    });
    functions.add("is_url_string", "isURL(string) -> bool", |a| {
        Ok(Value::Bool(parse_request(text(a, 0)?).is_ok()))
    });
    functions.add(
        "url_get_scheme",
        "kubernetes.URL::getScheme() -> string",
        |a| Ok(Value::text(url(a)?.scheme.as_str())),
    );
    functions.add("url_get_host", "kubernetes.URL::getHost() -> string", |a| {
        Ok(Value::text(url(a)?.host.as_str()))
    });
    functions.add(
        "url_get_hostname",
        "kubernetes.URL::getHostname() -> string",
        |a| Ok(Value::text(url(a)?.host_and_port().0)),
    );
    functions.add("url_get_port", "kubernetes.URL::getPort() -> string", |a| {
        Ok(Value::text(url(a)?.host_and_port().1))
    });
    functions.add(
        "url_get_escaped_path",
        "kubernetes.URL::getEscapedPath() -> string",
        |a| Ok(Value::text(&*url(a)?.escaped_path())),
    );
    functions.add(
        "url_get_query",
        "kubernetes.URL::getQuery() -> map(string, list(string))",
        |a| {
            let entries = query_parameters(&url(a)?.query)
                .into_iter()
                .map(|(key, values)| {
                    let values = values.into_iter().map(Value::from).collect();
                    (Key::String(Text::Shared(key.into())), Value::list(values))
                })
                .collect();
            Ok(Value::Map(Map::shared(entries)))
        },
    );
}

fn url<'v>(arguments: &'v [Value<'_>]) -> Result<&'v Url, EvalError> {
    match arguments.first() {
        Some(Value::Url(url)) => Ok(url),
        _ => Err(EvalError::no_such_overload()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parts_are_told_apart() {
        let url = Url::parse("HTTPS://user:pw@example.com:8080/a%20b/c d?x=1&x=2&y#z").unwrap();
        assert_eq!(url.scheme, "https");
        assert_eq!(url.host, "example.com:8080");
        assert_eq!(url.host_and_port(), ("example.com", "8080"));
        assert_eq!(url.escaped_path(), "/a%20b/c%20d");
        assert_eq!(query_parameters(&url.query)["x"], ["1", "2"]);
        assert_eq!(query_parameters(&url.query)["y"], [""]);
    }

    #[test]
    fn unusable_urls_are_refused() {
        for text in [
            "",
            "x",
            ":x",
            "http://a b/",
            "http://a:xx/",
            "http://[::1/",
            "/%zz",
            "a\n",
        ] {
            assert!(Url::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_parsing_panic(text in "\\PC{0,30}", tail in "\\PC{0,20}") {
            let _ = parse_request(&text);
            if let Ok(url) = parse_request(&format!("http://{tail}")) {
                let _ = (url.to_string(), url.host_and_port());
            }
        }
    }
}
