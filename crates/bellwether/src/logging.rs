//! Logs: quiet unless asked for, on standard error.

use clap::ValueEnum;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry;
use tracing_subscriber::util::SubscriberInitExt as _;

/// How log lines are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Text for people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Starts logging; `verbosity` counts `-v`.
pub(crate) fn start(verbosity: u8, format: LogFormat) {
    let logs = tracing_subscriber::fmt::layer()
        .with_ansi(crate::screen::has_colours_for_errors())
        .with_writer(std::io::stderr);
    let filter = filter(verbosity);
    match format {
        LogFormat::Text => registry().with(filter).with(logs).init(),
        LogFormat::Json => registry().with(filter).with(logs.json()).init(),
    }
}

/// What is logged, and of whom.
fn filter(verbosity: u8) -> Targets {
    use LevelFilter as Level;
    let (own, others): (Level, &[(&str, Level)]) = match verbosity {
        // Skipping the check of a certificate was asked for, interrupted watches are resumed, and
        // failed requests are reported by the command that sent them.
        0 => (
            Level::WARN,
            &[("kube_client", Level::OFF), ("kube_runtime", Level::ERROR)],
        ),
        1 => (
            Level::INFO,
            &[
                ("hyper", Level::WARN),
                ("kube", Level::WARN),
                ("tower", Level::WARN),
                ("rustls", Level::WARN),
            ],
        ),
        // Nor refusals of servers, which quote the values that they refuse.
        2 => (
            Level::DEBUG,
            &[
                ("hyper", Level::INFO),
                ("h2", Level::INFO),
                ("rustls", Level::INFO),
                ("kube", Level::INFO),
            ],
        ),
        // Not more of what others log: on their finest level they show what goes over the wire.
        _ => (
            Level::TRACE,
            &[
                ("hyper", Level::INFO),
                ("hyper_util", Level::INFO),
                ("h2", Level::INFO),
                ("rustls", Level::INFO),
                ("kube", Level::INFO),
                ("tower", Level::INFO),
            ],
        ),
    };
    let others = others.iter().map(|(name, level)| (*name, *level));
    Targets::new().with_default(own).with_targets(others)
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn what_others_log_is_limited_more_than_what_we_log() {
        let check = |verbosity: u8, target: &str, finest: Option<Level>| {
            let levels = [
                Level::ERROR,
                Level::WARN,
                Level::INFO,
                Level::DEBUG,
                Level::TRACE,
            ];
            let filter = filter(verbosity);
            let mut logged = levels
                .into_iter()
                .filter(|level| filter.would_enable(target, level));
            assert_eq!(logged.next_back(), finest, "-v {verbosity} times: {target}");
        };
        check(0, "bellwether_runtime::controller", Some(Level::WARN));
        check(0, "kube_client::client", None);
        check(1, "bellwether_runtime::controller", Some(Level::INFO));
        check(1, "kube_client::client", Some(Level::WARN));
        check(2, "kube_client::client", Some(Level::INFO));
        check(2, "rustls::client", Some(Level::INFO));
        check(3, "bellwether", Some(Level::TRACE));
        check(3, "hyper_util::client::legacy", Some(Level::INFO));
    }
}
