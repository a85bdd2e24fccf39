//! How fast a process sends requests.

use bellwether_runtime::{Pace, Pacer};
use clap::Args;

/// How fast requests are sent.
#[derive(Debug, Clone, Copy, Args)]
pub struct PaceArgs {
    /// Send at most this many requests a second; 0 for no limit. Whatever it is, the process slows down when the API server answers
    /// 429, and speeds up again when it does not.
    #[arg(long, value_name = "N", default_value_t = 0.0, value_parser = qps)]
    kube_api_qps: f64,
}

impl PaceArgs {
    /// The pace of a process.
    pub fn pacer(self) -> Pacer {
        Pacer::new(Pace::new(self.kube_api_qps))
    }
}

fn qps(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number
        .filter(|number| number.is_finite() && *number >= 0.0)
        .ok_or_else(|| format!("{text:?} is not a number of requests, such as 50"))
}
