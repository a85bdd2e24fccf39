//! Plain requests, for what typed clients do not offer.

use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE};
use kube::Client;
use serde_json::Value;

use crate::error::Error;

/// Who writes, as `managedFields` has it.
pub(crate) const MANAGER: &str = "bellwether";

pub(crate) const JSON: &str = "application/json";

pub(crate) async fn get(client: &Client, path: &str, accept: &str) -> Result<Value, Error> {
    let request = Request::get(path).header(ACCEPT, accept);
    send(client, request, Vec::new()).await
}

/// Sends an object or a patch.
pub(crate) async fn write(
    client: &Client,
    method: http::Method,
    path: &str,
    content_type: &str,
    body: &Value,
) -> Result<Value, Error> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(CONTENT_TYPE, content_type)
        .header(ACCEPT, JSON);
    send(client, request, body.to_string().into_bytes()).await
}

async fn send(
    client: &Client,
    request: http::request::Builder,
    body: Vec<u8>,
) -> Result<Value, Error> {
    let request = request
        .body(body)
        .map_err(|error| Error::Usage(format!("not a name that a cluster could know: {error}")))?;
    Ok(client.request(request).await?)
}

/// A query of a path; values are escaped, empty ones are left out.
pub(crate) fn with_query(path: &str, parameters: &[(&str, &str)]) -> String {
    let query: Vec<String> = parameters
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| format!("{key}={}", escape(value)))
        .collect();
    if query.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{}", query.join("&"))
    }
}

/// A name as a segment of a path.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push('%');
            for digit in [byte >> 4, byte & 15] {
                escaped.push(char::from(b"0123456789ABCDEF"[usize::from(digit)]));
            }
        }
    }
    escaped
}
