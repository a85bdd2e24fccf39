//! How the bytes of an answer go out: indented for people, compressed for those who can read that.

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::stream;
use http::{HeaderMap, HeaderValue, Method, Response, header};
use http_body_util::BodyExt as _;
use std::io::Write as _;

use crate::outgoing::{Body, Interrupted};

/// Answers up to this size are not worth compressing, as in Kubernetes.
const THRESHOLD: usize = 128 * 1024;

const JSON: &[u8] = b"application/json";

/// What a client wants of the bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Coding {
    pretty: bool,
    gzip: bool,
}

impl Coding {
    /// Reads it from the query and the headers of a request.
    pub(crate) fn of<B>(request: &http::Request<B>) -> Self {
        let headers = request.headers();
        Self {
            pretty: wants_pretty(request.uri().query(), headers),
            gzip: *request.method() != Method::HEAD && accepts_gzip(headers),
        }
    }

    /// Writes an answer that ends by itself as the client wants it.
    pub(crate) async fn apply(self, response: Response<Body>) -> Response<Body> {
        let (mut head, mut body) = response.into_parts();
        let kind = head.headers.get(header::CONTENT_TYPE);
        if self.pretty && kind.is_some_and(|kind| kind.as_bytes() == JSON) {
            body = recode(body, Vec::new(), Pretty::default());
        }
        if !self.gzip || head.headers.contains_key(header::CONTENT_ENCODING) {
            return Response::from_parts(head, body);
        }
        let length = http_body::Body::size_hint(&body).exact();
        if length.is_some_and(|length| length <= THRESHOLD as u64) {
            return Response::from_parts(head, body);
        }
        // The request is under way until the answer is sent, not only read.
        let permit = body.release();
        let (first, is_all) = begin(&mut body).await;
        if let Some(permit) = permit {
            body.hold(permit);
        }
        if is_all {
            let pieces = first.into_iter().flatten();
            body.refill(pieces.collect::<Vec<_>>().concat());
            return Response::from_parts(head, body);
        }
        let headers = &mut head.headers;
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        headers.remove(header::CONTENT_LENGTH);
        Response::from_parts(head, recode(body, first, Gzip::default()))
    }
}

/// The beginning of a body: all of it, or just more than is sent as it is.
async fn begin(body: &mut Body) -> (Vec<Piece>, bool) {
    let (mut first, mut length) = (Vec::new(), 0);
    while length <= THRESHOLD {
        match next_piece(body).await {
            Some(Ok(bytes)) => {
                length += bytes.len();
                first.push(Ok(bytes));
            }
            Some(Err(error)) => {
                first.push(Err(error));
                return (first, false);
            }
            None => return (first, true),
        }
    }
    (first, false)
}

/// A piece of a body, or why there is none.
type Piece = Result<Bytes, Interrupted>;

/// Clients ask for indented answers, or are programs that people read the output of.
fn wants_pretty(query: Option<&str>, headers: &HeaderMap) -> bool {
    let pairs = query.unwrap_or_default().split('&');
    let mut asked = pairs.filter_map(|pair| pair.strip_prefix("pretty="));
    if let Some(value) = asked.find(|value| !value.is_empty()) {
        return matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True");
    }
    let agent = headers.get(header::USER_AGENT);
    let agent = agent.map_or(&b""[..], HeaderValue::as_bytes);
    [&b"curl"[..], b"Wget", b"Mozilla/5.0"]
        .iter()
        .any(|program| agent.starts_with(program))
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT_ENCODING).iter();
    let accepted = accepted.filter_map(|value| value.to_str().ok());
    accepted
        .flat_map(|value| value.split(','))
        .any(|coding| coding.trim() == "gzip")
}

/// Changes bytes piece by piece.
trait Recode: Send + 'static {
    /// What a piece becomes; nothing if more has to come first.
    fn piece(&mut self, bytes: &[u8]) -> Bytes;
    /// What follows the last piece.
    fn end(&mut self) -> Bytes;
}

/// A body whose pieces are changed on their way, beginning with those that were taken from it before.
fn recode(mut body: Body, first: Vec<Piece>, coder: impl Recode) -> Body {
    let permit = body.release();
    let state = Some((body, first.into_iter(), coder));
    let pieces = stream::unfold(state, async |state| {
        let (mut body, mut first, mut coder) = state?;
        loop {
            let piece = match first.next() {
                Some(piece) => Some(piece),
                None => next_piece(&mut body).await,
            };
            let piece = match piece {
                Some(Ok(piece)) => piece,
                Some(Err(error)) => return Some((Err(error), None)),
                None => return Some((Ok(coder.end().into()), None)),
            };
            let changed = coder.piece(&piece);
            if !changed.is_empty() {
                return Some((Ok(changed.into()), Some((body, first, coder))));
            }
        }
    });
    Body::recoded(pieces, permit)
}

async fn next_piece(body: &mut Body) -> Option<Piece> {
    loop {
        match body.frame().await?.map(http_body::Frame::into_data) {
            Ok(Ok(bytes)) => return Some(Ok(bytes)),
            Ok(Err(_)) => {}
            Err(error) => return Some(Err(error)),
        }
    }
}

/// Indents JSON that is written without blanks.
#[derive(Debug, Default)]
struct Pretty {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// Whether a bracket has been opened and nothing is in it yet.
    is_open: bool,
}

impl Pretty {
    fn new_line(&self, out: &mut Vec<u8>) {
        out.push(b'\n');
        out.extend(std::iter::repeat_n(b' ', self.depth * 2));
    }

    fn fill(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_open) {
            self.new_line(out);
        }
    }

    fn byte(&mut self, byte: u8, out: &mut Vec<u8>) {
        if self.in_string {
            out.push(byte);
            match byte {
                _ if std::mem::take(&mut self.is_escaped) => {}
                b'\\' => self.is_escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' => {}
            b'{' | b'[' => {
                self.fill(out);
                out.push(byte);
                self.depth += 1;
                self.is_open = true;
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if !std::mem::take(&mut self.is_open) {
                    self.new_line(out);
                }
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                self.new_line(out);
            }
            b':' => out.extend_from_slice(b": "),
            _ => {
                self.fill(out);
                out.push(byte);
                self.in_string = byte == b'"';
            }
        }
    }
}

impl Recode for Pretty {
    fn piece(&mut self, bytes: &[u8]) -> Bytes {
        let mut out = Vec::with_capacity(bytes.len() * 2);
        for byte in bytes {
            self.byte(*byte, &mut out);
        }
        out.into()
    }

    fn end(&mut self) -> Bytes {
        Bytes::new()
    }
}

/// Compresses.
struct Gzip(GzEncoder<Vec<u8>>);

impl Default for Gzip {
    fn default() -> Self {
        Self(GzEncoder::new(Vec::new(), Compression::fast()))
    }
}

impl Recode for Gzip {
    fn piece(&mut self, bytes: &[u8]) -> Bytes {
        // Writing to memory cannot fail.
        let _ = self.0.write_all(bytes);
        std::mem::take(self.0.get_mut()).into()
    }

    fn end(&mut self) -> Bytes {
        let _ = self.0.try_finish();
        std::mem::take(self.0.get_mut()).into()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use serde_json::{Value, json};

    use super::*;

    async fn answered(coding: Coding, bytes: Vec<u8>) -> (HeaderMap, Vec<u8>) {
        let mut response = Response::new(Body::full(bytes));
        let kind = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        let (head, body) = coding.apply(response).await.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        (head.headers, bytes.to_vec())
    }

    #[tokio::test]
    async fn json_is_indented_as_go_does() {
        let value = json!({"a": [], "b": {}, "c": [1, {"d": "x, {\"y\": [\\]}"}], "e": null});
        let coding = Coding {
            pretty: true,
            gzip: true,
        };
        let (headers, bytes) = answered(coding, value.to_string().into()).await;
        assert_eq!(
            bytes,
            serde_json::to_string_pretty(&value).unwrap().as_bytes()
        );
        assert!(!headers.contains_key(header::CONTENT_ENCODING));
    }

    #[test]
    fn pieces_may_end_anywhere() {
        let value = json!({"a": ["\\\"", {"b": [[], {}]}], "c": -1.5});
        let (text, mut whole) = (value.to_string(), Pretty::default());
        let expected = whole.piece(text.as_bytes());
        let mut single = Pretty::default();
        let bytes: Vec<Bytes> = text.bytes().map(|byte| single.piece(&[byte])).collect();
        assert_eq!(bytes.concat(), expected);
    }

    #[tokio::test]
    async fn only_large_answers_are_compressed() {
        let coding = Coding {
            pretty: false,
            gzip: true,
        };
        let small = vec![b'x'; THRESHOLD];
        let (headers, bytes) = answered(coding, small.clone()).await;
        assert!(!headers.contains_key(header::CONTENT_ENCODING));
        assert_eq!(bytes, small);
        let large = json!(vec!["some text"; 100_000]).to_string();
        let (headers, bytes) = answered(coding, large.clone().into()).await;
        assert_eq!(headers[header::CONTENT_ENCODING], "gzip");
        assert!(bytes.len() < large.len() / 20);
        let mut text = String::new();
        flate2::read::GzDecoder::new(&bytes[..])
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, large);
    }

    #[test]
    fn people_get_it_indented() {
        let pretty = |query: &str, agent: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
            wants_pretty(Some(query), &headers)
        };
        assert!(pretty("pretty=true", "kubectl/v1"));
        assert!(pretty("watch=0&pretty=1", ""));
        assert!(pretty("", "curl/8.5.0"));
        assert!(!pretty("pretty=0", "curl/8.5.0"));
        assert!(!pretty("", "kubectl/v1"));
        let _: Value = json!(null);
    }
}
