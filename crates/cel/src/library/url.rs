//! URLs, read as Go's `net/url` reads the target of a request.

use std::sync::Arc;

use bellwether_go::url::{Url, UrlError, query_parameters};

use super::text;
use crate::declaration::Functions;
use crate::error::EvalError;
use crate::value::{Key, Map, Text, Value};

/// Reads an absolute URL or an absolute path.
///
/// Requests have no fragment, so the whole text decides whether it is one, and the fragment is split off afterwards.
fn parse(text: &str) -> Result<Url, UrlError> {
    Url::parse_request(text)?;
    Url::parse(text)
}

pub(super) fn declare(functions: &mut Functions) {
    functions.add("string_to_url", "url(string) -> kubernetes.URL", |a| {
        let url = parse(text(a, 0)?).map_err(|error| {
            EvalError::failed(format!(
                "URL parse error during conversion from string: {error}"
            ))
        })?;
        Ok(Value::Url(Arc::new(url)))
    });
    functions.add("is_url_string", "isURL(string) -> bool", |a| {
        Ok(Value::Bool(parse(text(a, 0)?).is_ok()))
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
        |a| Ok(Value::text(url(a)?.hostname())),
    );
    functions.add("url_get_port", "kubernetes.URL::getPort() -> string", |a| {
        Ok(Value::text(url(a)?.port()))
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

    #[test]
    fn only_targets_of_requests_are_urls() {
        for text in ["", "x", ":x", "http://a b/", "/%zz", "a\n"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(parse("https://h/p#f").unwrap().fragment, "f");
    }
}
