//! How fast requests are sent: as fast as allowed, and slower when the server asks for it.
//!
//! [`Pace`] decides and knows no clock; [`Pacer`] is a client behind it. A server that answers `429` halves the rate of the
//! process and holds it back for as long as it says; each second without such an answer adds one request a second.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode, header};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::BoxError;

/// The slowest rate, in requests a second: a process that is slowed down still makes progress.
const SLOWEST: f64 = 1.0;
/// How long a server is left alone that does not say how long.
const REST: Duration = Duration::from_secs(1);
/// The longest rest that a server gets, whatever it asks for.
const LONGEST_REST: Duration = Duration::from_mins(1);
/// After how long without a refusal a rate ends that nobody asked for.
const FORGET: Duration = Duration::from_mins(1);
/// Requests that nobody sent add up to what may be sent in this time.
const SAVED: Duration = Duration::from_secs(1);

/// A rate that follows what a server accepts. Times count from any fixed moment.
#[derive(Debug, Clone)]
pub struct Pace {
    /// Requests a second that were asked for; nothing for no limit.
    most: Option<f64>,
    /// Requests a second at present; nothing for no limit.
    rate: Option<f64>,
    /// When the next request is due. It may be sent earlier by what was saved up.
    next: Duration,
    /// Nothing is sent before.
    rests_until: Duration,
    refused_at: Option<Duration>,
    /// The current second and how many requests were sent in it, and in the one before.
    second: (u64, u32, u32),
}

impl Pace {
    /// A pace of at most that many requests a second; zero, or what is no number, for no limit.
    pub fn new(most: f64) -> Self {
        let most = (most.is_finite() && most > 0.0).then_some(most);
        Self {
            most,
            rate: most,
            next: Duration::ZERO,
            rests_until: Duration::ZERO,
            refused_at: None,
            second: (0, 0, 0),
        }
    }

    /// Returns requests a second at present, if there is a limit.
    pub fn rate(&self) -> Option<f64> {
        self.rate
    }

    /// Takes a place for a request, and returns when it may be sent.
    pub fn admit(&mut self, now: Duration) -> Duration {
        let mut at = now.max(self.rests_until);
        if let Some(rate) = self.rate {
            let interval = Duration::from_secs_f64(1.0 / rate);
            self.next = self.next.max(at);
            at = at.max(self.next.saturating_sub(SAVED.saturating_sub(interval)));
            self.next += interval;
        }
        self.count(at);
        at
    }

    /// Takes note that the server refused a request with `429`, and how long it wants to be left alone.
    pub fn refused(&mut self, now: Duration, rest: Option<Duration>) {
        let rest = rest.unwrap_or(REST).min(LONGEST_REST);
        // All requests of a moment are refused together: that halves the rate once.
        let is_known = self.refused_at.is_some_and(|at| now < at + REST);
        if !is_known {
            let rate = self
                .rate
                .unwrap_or_else(|| f64::from(self.second.1.max(self.second.2)));
            self.rate = Some((rate / 2.0).max(SLOWEST));
            self.refused_at = Some(now);
        }
        self.rests_until = self.rests_until.max(now + rest);
        // What was saved up before the rest does not come after it at once.
        self.next = self.next.max(self.rests_until + SAVED);
    }

    /// Takes note that the server accepted a request.
    pub fn accepted(&mut self, now: Duration) {
        let (Some(refused_at), Some(rate)) = (self.refused_at, self.rate) else {
            return;
        };
        if now < self.rests_until {
            // Sent before the refusal.
            return;
        }
        let faster = rate + 1.0 / rate;
        match self.most {
            Some(most) if faster >= most => {
                self.rate = Some(most);
                self.refused_at = None;
            }
            None if now >= refused_at + FORGET => {
                self.rate = None;
                self.refused_at = None;
            }
            _ => self.rate = Some(faster),
        }
    }

    fn count(&mut self, at: Duration) {
        let (second, now, _) = self.second;
        self.second = match at.as_secs().checked_sub(second) {
            Some(0) | None => (second, now.saturating_add(1), self.second.2),
            Some(1) => (at.as_secs(), 1, now),
            Some(_) => (at.as_secs(), 1, 0),
        };
    }
}

/// Clients that share a pace. Cheap to clone; all clones are one.
#[derive(Debug, Clone)]
pub struct Pacer {
    pace: Arc<Mutex<Pace>>,
    start: Instant,
}

impl Pacer {
    /// Begins with a pace.
    pub fn new(pace: Pace) -> Self {
        Self {
            pace: Arc::new(Mutex::new(pace)),
            start: Instant::now(),
        }
    }

    /// Returns a client whose requests keep the pace. Requests that are refused are not repeated: that is up to the caller.
    pub fn limit(&self, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let pacer = self.clone();
        let limited = tower::service_fn(move |request: Request<Body>| {
            let (client, pacer) = (client.clone(), pacer.clone());
            async move {
                let at = pacer.pace.lock().admit(pacer.start.elapsed());
                tokio::time::sleep_until(pacer.start + at).await;
                let response = client.send(request).await.map_err(BoxError::from)?;
                pacer.observe(&response);
                Ok::<_, BoxError>(response)
            }
        });
        Client::new(limited, namespace)
    }

    fn observe(&self, response: &Response<Body>) {
        let now = self.start.elapsed();
        let mut pace = self.pace.lock();
        if response.status() == StatusCode::TOO_MANY_REQUESTS {
            pace.refused(now, retry_after(response));
            let rate = pace.rate();
            tracing::debug!(
                rate,
                "the API server refused a request with 429; slowing down"
            );
        } else {
            pace.accepted(now);
        }
    }
}

fn retry_after(response: &Response<Body>) -> Option<Duration> {
    let value = response.headers().get(header::RETRY_AFTER)?;
    value.to_str().ok()?.parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// How many of many requests are sent within a span from a moment on.
    fn sent(pace: &mut Pace, from: f64, span: f64) -> usize {
        (0..10_000)
            .map(|_| pace.admit(seconds(from)))
            .take_while(|at| *at < seconds(from + span))
            .count()
    }

    #[test]
    fn a_limit_is_kept_after_a_burst() {
        let mut pace = Pace::new(10.0);
        let count = sent(&mut pace, 100.0, 5.0);
        assert!((55..=62).contains(&count), "{count}");
        assert_eq!(sent(&mut Pace::new(0.0), 100.0, 5.0), 10_000);
        assert_eq!(Pace::new(f64::NAN).rate(), None);
    }

    #[test]
    fn a_refusal_halves_the_rate_and_is_waited_out() {
        let mut pace = Pace::new(0.0);
        for request in 0..80 {
            pace.admit(seconds(10.0 + f64::from(request) / 100.0));
        }
        pace.refused(seconds(10.9), Some(seconds(3.0)));
        pace.refused(seconds(10.91), Some(seconds(3.0)));
        assert_eq!(pace.rate(), Some(40.0));
        assert!(pace.admit(seconds(11.0)) >= seconds(13.9));
        pace.refused(seconds(20.0), None);
        assert_eq!(pace.rate(), Some(20.0));
    }

    #[test]
    fn a_server_that_accepts_again_gets_more() {
        let mut pace = Pace::new(8.0);
        pace.refused(seconds(1.0), None);
        assert_eq!(pace.rate(), Some(4.0));
        pace.accepted(seconds(1.5));
        assert_eq!(pace.rate(), Some(4.0), "that answer was under way");
        for second in 0_u32..4 {
            for _ in 0..8 {
                pace.accepted(seconds(2.0 + f64::from(second)));
            }
        }
        assert_eq!(pace.rate(), Some(8.0));
        let mut unlimited = Pace::new(0.0);
        unlimited.refused(seconds(1.0), None);
        assert_eq!(unlimited.rate(), Some(1.0));
        unlimited.accepted(seconds(62.0));
        assert_eq!(unlimited.rate(), None);
    }

    #[test]
    fn no_server_is_left_alone_for_long() {
        let mut pace = Pace::new(5.0);
        pace.refused(seconds(1.0), Some(seconds(86_400.0)));
        assert!(pace.admit(seconds(1.0)) <= seconds(62.0));
    }

    #[tokio::test(start_paused = true)]
    async fn requests_wait_until_the_server_wants_them() {
        let sent = Arc::new(std::sync::atomic::AtomicU32::new(0));
        let server = tower::service_fn(move |_: Request<Body>| {
            let number = sent.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            async move {
                let mut response = Response::new(Body::empty());
                if number == 0 {
                    *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
                    let seconds = header::HeaderValue::from_static("5");
                    response.headers_mut().insert(header::RETRY_AFTER, seconds);
                }
                Ok::<_, BoxError>(response)
            }
        });
        let client = Pacer::new(Pace::new(0.0)).limit(Client::new(server, "default"));
        let ask = async || {
            let request = Request::get("/version").body(Vec::new()).unwrap();
            client.request_text(request).await
        };
        let start = Instant::now();
        assert!(ask().await.is_err(), "the caller decides what to do");
        assert!(start.elapsed() < Duration::from_secs(1));
        ask().await.unwrap();
        assert!(
            start.elapsed() >= Duration::from_secs(5),
            "{:?}",
            start.elapsed()
        );
    }
}
