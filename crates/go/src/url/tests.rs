use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn said<T: Into<Value>>(result: Result<T, String>) -> Value {
    match result {
        Ok(value) => value.into(),
        Err(error) => json!({ "error": error }),
    }
}

fn parts(text: &str) -> Value {
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(error) => return json!({ "error": error.to_string() }),
    };
    json!({
        "scheme": url.scheme,
        "opaque": url.opaque,
        "user": url.user.as_ref().map(ToString::to_string).unwrap_or_default(),
        "host": url.host,
        "hostname": url.hostname(),
        "port": url.port(),
        "path": url.path,
        "escapedPath": url.escaped_path(),
        "query": url.query,
        "fragment": url.fragment,
        "string": url.to_string(),
        "parameters": query_parameters(&url.query),
    })
}

#[test]
fn urls_are_read_and_written_as_go_does() {
    let vectors = include_str!("../../tests/data/url.jsonl");
    for line in vectors.lines() {
        let expected: Value = serde_json::from_str(line).unwrap();
        let text = expected["in"].as_str().unwrap();
        let request =
            Url::parse_request(text).map_or_else(|error| error.to_string(), |_| String::new());
        let got = json!({
            "in": text,
            "parse": parts(text),
            "request": request,
            "pathEscape": path_escape(text),
            "queryEscape": query_escape(text.as_bytes()),
            "pathUnescape": said(path_unescape(text)),
            "queryUnescape": said(query_unescape(text)),
        });
        assert_eq!(got, expected, "{text:?}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_parsing_panic(text in "\\PC{0,30}", tail in "\\PC{0,20}") {
        let _ = Url::parse_request(&text);
        if let Ok(url) = Url::parse(&format!("http://{tail}")) {
            let _ = (url.to_string(), url.hostname(), url.port());
        }
    }
}
