//! URLs, and what names of hosts stand for.

use bellwether_go::url::Url;
use bellwether_go::value::{Map, Text, Type, Value};

use super::argument::{bytes, map, string};
use crate::call::Failure;
use crate::facts::Query;
use crate::function::{Entry, function};

const STRING: Type = Type::String;

pub(super) const TABLE: &[Entry] = &[
    function("urlParse", &[STRING], |call, a| {
        let url =
            Url::parse(&string(a, 0)).map_err(|error| format!("unable to parse url: {error}"))?;
        call.bytes(string(a, 0).len().saturating_mul(4))?;
        let user = url
            .user
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        Ok(Value::map([
            ("scheme", Value::string(&url.scheme)),
            ("host", Value::string(&url.host)),
            ("hostname", Value::string(url.hostname())),
            ("path", Value::string(&url.path)),
            ("query", Value::string(&url.query)),
            ("opaque", Value::string(&url.opaque)),
            ("fragment", Value::string(&url.fragment)),
            ("userinfo", Value::string(user)),
        ]))
    }),
    function("urlJoin", &[Type::MAP], |call, a| {
        let parts = map(a, 0);
        let user = part(&parts, "userinfo")?;
        let mut url = Url {
            scheme: part(&parts, "scheme")?,
            host: part(&parts, "host")?,
            path: part(&parts, "path")?,
            query: part(&parts, "query")?,
            opaque: part(&parts, "opaque")?,
            fragment: part(&parts, "fragment")?,
            ..Url::default()
        };
        if !user.is_empty() {
            let with_user = Url::parse(&format!("proto://{user}@host"));
            let with_user =
                with_user.map_err(|error| format!("unable to parse userinfo in dict: {error}"))?;
            url.user = with_user.user;
        }
        call.text(url.to_string())
    }),
    function("getHostByName", &[STRING], |call, a| {
        let query = Query {
            function: "getHostByName",
            arguments: vec![Text::from(bytes(a, 0))],
        };
        Ok(call.ask(query).unwrap_or_else(|| Value::from("")))
    }),
    // A program without an environment: every variable is empty.
    function("env", &[STRING], |_, _| Ok(Value::from(""))),
    function("expandenv", &[STRING], |call, a| {
        call.text(expanded(&string(a, 0)))
    }),
];

fn part(parts: &Map, key: &str) -> Result<String, Failure> {
    match parts.get(key.as_bytes()) {
        None => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.to_str().into_owned()),
        Some(Value::Nil | Value::Invalid) => {
            Err("runtime error: invalid memory address or nil pointer dereference".into())
        }
        Some(other) => {
            let kind = other.kind();
            Err(
                format!("unable to parse {key} key, must be of type string, but {kind} found")
                    .into(),
            )
        }
    }
}

/// Leaves variables out.
fn expanded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = match after.chars().next() {
            Some('{') => after.find('}').map_or(1, |end| end + 1),
            Some(c) if is_name(c) => after.find(|c| !is_name(c)).unwrap_or(after.len()),
            Some('*' | '#' | '$' | '@' | '!' | '?' | '-') => 1,
            _ => {
                out.push('$');
                0
            }
        };
        rest = &after[length..];
    }
    out.push_str(rest);
    out
}
