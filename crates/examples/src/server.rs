//! HTTP servers that answer as a script says, and remember what they were asked.
//!
//! A request with an `Idempotency-Key` that was seen before is answered as the first time and not counted again, as a careful
//! receiver does it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Collected, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::script::Answers;

/// The largest body that is read.
const LARGEST_BODY: usize = 1 << 20;
/// How many requests are remembered.
const MOST_REQUESTS: usize = 10_000;

/// A server that ends when it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct State {
    answers: Answers,
    requests: Vec<Value>,
    /// What was answered, by key.
    answered: BTreeMap<String, (u16, Value)>,
}

impl Server {
    /// Starts one on a free port.
    pub(crate) async fn start(answers: &Answers) -> Result<Self, String> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await;
        let listener = listener.map_err(|error| format!("cannot listen: {error}"))?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let server = Self {
            address,
            state: Arc::default(),
            task: Mutex::default(),
        };
        if answers.down {
            server.state.lock().answers = answers.clone();
        } else {
            server.listen(listener);
            server.state.lock().answers = answers.clone();
        }
        Ok(server)
    }

    /// Its address, as `http://…`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it was asked, in order.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.state.lock().requests.clone()
    }

    /// Answers differently from now on.
    pub(crate) async fn set(&self, answers: &Answers) -> Result<(), String> {
        self.state.lock().answers = answers.clone();
        let task = self.task.lock().take();
        match (answers.down, task) {
            (true, Some(task)) => {
                task.abort();
                // The listener is closed when the task has ended.
                let _ = task.await;
            }
            (false, None) => self.listen(rebind(self.address).await?),
            (_, task) => *self.task.lock() = task,
        }
        Ok(())
    }

    fn listen(&self, listener: TcpListener) {
        let state = Arc::clone(&self.state);
        *self.task.lock() = Some(tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&state);
                connections.spawn(async move {
                    let service = hyper::service::service_fn(move |request| {
                        answer(Arc::clone(&state), request)
                    });
                    let builder = auto::Builder::new(TokioExecutor::new());
                    // A client that goes away in the middle is nobody's problem here.
                    let _ = builder
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        }));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(task) = self.task.lock().take() {
            task.abort();
        }
    }
}

/// Listens on an address that was in use a moment ago.
async fn rebind(address: SocketAddr) -> Result<TcpListener, String> {
    let mut last = String::new();
    for _ in 0..50 {
        match TcpListener::bind(address).await {
            Ok(listener) => return Ok(listener),
            Err(error) => last = error.to_string(),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Err(format!("cannot listen on {address}: {last}"))
}

async fn answer(
    state: Arc<Mutex<State>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, LARGEST_BODY).collect().await;
    let body = body.map(Collected::to_bytes).unwrap_or_default();
    let text = String::from_utf8_lossy(&body).into_owned();
    let mut headers = Map::new();
    for (name, value) in &head.headers {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        headers.insert(name.as_str().to_owned(), Value::String(value));
    }
    let key = headers
        .get("idempotency-key")
        .and_then(Value::as_str)
        .map(str::to_owned);
    let asked = json!({
        "method": head.method.as_str(),
        "path": head.uri.path(),
        "headers": headers,
        "body": serde_json::from_str(&text).unwrap_or(Value::String(text)),
    });
    let (code, body) = state.lock().take(asked, key);
    let mut response = Response::new(Full::new(Bytes::from(match body {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    })));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or_default();
    Ok(response)
}

impl State {
    /// Remembers a request, and says what the answer is.
    fn take(&mut self, asked: Value, key: Option<String>) -> (u16, Value) {
        if let Some(known) = key.as_ref().and_then(|key| self.answered.get(key)) {
            return known.clone();
        }
        let answer = (self.answers.code, self.answers.body.clone());
        if self.requests.len() < MOST_REQUESTS {
            self.requests.push(asked);
            if let Some(key) = key {
                self.answered.insert(key, answer.clone());
            }
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_request_is_answered_as_before_and_not_counted() {
        let mut state = State::default();
        state.answers.code = 500;
        let first = state.take(json!(1), Some("a".to_owned()));
        state.answers.code = 200;
        assert_eq!(state.take(json!(1), Some("a".to_owned())), first);
        assert_eq!(state.take(json!(2), Some("b".to_owned())).0, 200);
        assert_eq!(state.take(json!(3), None).0, 200);
        assert_eq!(state.requests, [json!(1), json!(2), json!(3)]);
    }
}
