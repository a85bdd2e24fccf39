//! Where an answer sends a request on, as Go's client does: other requests become a GET, except by 307 and 308.

use hyper::{Method, Uri};

/// A request is sent at most this often.
pub(super) const MOST_REQUESTS: usize = 10;
/// Why nothing is sent after that.
pub(super) const TOO_MANY: &str = "stopped after 10 redirects";

/// Headers that are for the first host only.
const PRIVATE_HEADERS: [&str; 4] = ["authorization", "cookie", "cookie2", "www-authenticate"];

/// One request of those that a redirected one consists of.
#[derive(Debug, Clone)]
pub(super) struct Hop {
    pub(super) method: Method,
    /// The address as somebody wrote it.
    pub(super) url: String,
    pub(super) uri: Uri,
    /// Whether the body is sent.
    pub(super) has_body: bool,
    /// Whether what is for the first host only is sent.
    pub(super) is_trusted: bool,
}

impl Hop {
    /// The request that an action asks for.
    pub(super) fn first(method: &str, url: &str) -> Result<Self, String> {
        let uri = url.parse();
        Ok(Self {
            method: Method::from_bytes(method.as_bytes()).map_err(|error| error.to_string())?,
            url: url.to_owned(),
            uri: uri.map_err(|error| format!("invalid URL: {error}"))?,
            has_body: true,
            is_trusted: true,
        })
    }

    /// The request that follows an answer; none if the answer is the last one.
    pub(super) fn next(&self, status: u16, location: Option<&str>) -> Result<Option<Self>, String> {
        let keeps_method = match status {
            301..=303 => false,
            307 | 308 => true,
            _ => return Ok(None),
        };
        // Some servers answer so without a location; that is the answer then.
        let Some(location) = location.filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let uri = resolve(&self.uri, location)
            .map_err(|error| format!("failed to parse Location header {location:?}: {error}"))?;
        let is_safe = uri.scheme() == self.uri.scheme() || uri.scheme_str() == Some("https");
        Ok(Some(Self {
            method: match &self.method {
                method if keeps_method || method == Method::HEAD => method.clone(),
                _ => Method::GET,
            },
            url: uri.to_string(),
            has_body: self.has_body && keeps_method,
            is_trusted: self.is_trusted && is_safe && uri.authority() == self.uri.authority(),
            uri,
        }))
    }

    /// True for a header of an action that is sent with this request.
    pub(super) fn sends(&self, header: &str) -> bool {
        let header = header.to_ascii_lowercase();
        self.is_trusted || !PRIVATE_HEADERS.contains(&header.as_str())
    }

    /// What is done, as errors say it.
    pub(super) fn verb(&self) -> String {
        let lower = self.method.as_str().to_ascii_lowercase();
        let mut letters = lower.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect()
    }
}

/// An address that may be relative to another one.
fn resolve(base: &Uri, location: &str) -> Result<Uri, hyper::http::Error> {
    let location = location.split('#').next().unwrap_or_default();
    let scheme = base.scheme_str().unwrap_or("http");
    let authority = base.authority().map_or("", |authority| authority.as_str());
    let text = if location.contains("://") {
        location.to_owned()
    } else if location.starts_with("//") {
        format!("{scheme}:{location}")
    } else {
        let (path, query) = match location.split_once('?') {
            Some((path, query)) => (path, format!("?{query}")),
            None => (location, String::new()),
        };
        let path = match path {
            "" => base.path().to_owned(),
            path if path.starts_with('/') => without_dots(path),
            path => {
                let folder = base
                    .path()
                    .rsplit_once('/')
                    .map_or("", |(folder, _)| folder);
                without_dots(&format!("{folder}/{path}"))
            }
        };
        format!("{scheme}://{authority}{path}{query}")
    };
    Ok(text.parse()?)
}

/// A path without `.` and `..`.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let is_folder = path.ends_with('/') || path.ends_with("/.") || path.ends_with("/..");
    for segment in path.split('/').skip(1) {
        match segment {
            "." => {}
            ".." => {
                kept.pop();
            }
            segment => kept.push(segment),
        }
    }
    let end = if is_folder && kept.last().is_some_and(|last| !last.is_empty()) {
        "/"
    } else {
        ""
    };
    format!("/{}{end}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: &str, status: u16, location: &str, expected: &str) {
        let hop = Hop::first(method, "https://a.example/x/y?z=1").unwrap();
        let next = hop.next(status, Some(location)).unwrap();
        let next = next.map_or_else(
            || "-".to_owned(),
            |it| format!("{} {} {} {}", it.method, it.uri, it.has_body, it.is_trusted),
        );
        assert_eq!(next, expected, "{method} {status} {location}");
    }

    #[test]
    fn answers_send_requests_on() {
        check("GET", 200, "/b", "-");
        check("GET", 304, "/b", "-");
        check("GET", 302, "", "-");
        check("GET", 302, "/b?c", "GET https://a.example/b?c false true");
        check("POST", 303, "b#top", "GET https://a.example/x/b false true");
        check("PUT", 308, "../b", "PUT https://a.example/b true true");
        check("POST", 307, "?q", "POST https://a.example/x/y?q true true");
        check(
            "GET",
            301,
            "//b.example/",
            "GET https://b.example/ false false",
        );
        check(
            "GET",
            301,
            "http://a.example/",
            "GET http://a.example/ false false",
        );
        check(
            "GET",
            301,
            "https://a.example:8443/",
            "GET https://a.example:8443/ false false",
        );
    }

    #[test]
    fn what_is_for_the_first_host_never_comes_back() {
        let first = Hop::first("GET", "https://a.example/").unwrap();
        let away = first
            .next(302, Some("https://b.example/"))
            .unwrap()
            .unwrap();
        let back = away.next(302, Some("https://a.example/")).unwrap().unwrap();
        assert!(first.sends("Authorization") && !back.sends("Authorization"));
        assert!(back.sends("Accept"));
    }
}
