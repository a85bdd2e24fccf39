//! Counters for `/metrics`, in Prometheus' text format.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use http::StatusCode;
use jiff::SignedDuration;
use parking_lot::Mutex;

/// How many requests were answered, how, and how long that took; and what others count.
#[derive(Default)]
pub(crate) struct Metrics {
    requests: Mutex<BTreeMap<(&'static str, u16), Requests>>,
    /// Who else in this process has something to tell.
    others: Mutex<Vec<Source>>,
}

/// Something that writes metrics in Prometheus' text format.
type Source = Box<dyn Fn() -> String + Send>;

#[derive(Debug, Default)]
struct Requests {
    count: u64,
    seconds: f64,
}

impl Metrics {
    /// Counts an answered request; `verb` is empty if it failed before one was known.
    pub(crate) fn count(&self, verb: &'static str, code: StatusCode, took: SignedDuration) {
        let mut requests = self.requests.lock();
        let requests = requests.entry((verb, code.as_u16())).or_default();
        requests.count += 1;
        requests.seconds += took.as_secs_f64();
    }

    /// Has the metrics of somebody else served as well.
    pub(crate) fn add(&self, source: impl Fn() -> String + Send + 'static) {
        self.others.lock().push(Box::new(source));
    }

    /// The text that a scraper reads.
    pub(crate) fn render(&self) -> String {
        let mut out = String::from(
            "# HELP apiserver_request_total Requests by verb and status code.\n\
             # TYPE apiserver_request_total counter\n",
        );
        let requests = self.requests.lock();
        for ((verb, code), found) in &*requests {
            let _ = writeln!(
                out,
                "apiserver_request_total{{verb=\"{verb}\",code=\"{code}\"}} {}",
                found.count
            );
        }
        out.push_str(
            "# HELP apiserver_request_duration_seconds_sum Time until the answer began.\n\
             # TYPE apiserver_request_duration_seconds_sum counter\n",
        );
        for ((verb, code), found) in &*requests {
            let _ = writeln!(
                out,
                "apiserver_request_duration_seconds_sum{{verb=\"{verb}\",code=\"{code}\"}} {:.6}",
                found.seconds
            );
        }
        drop(requests);
        out.extend(self.others.lock().iter().map(|source| source()));
        out
    }
}
