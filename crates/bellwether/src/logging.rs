//! Logs: quiet unless asked for, on standard error.

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

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
    let level = match verbosity {
        // Skipping the check of a certificate was asked for, interrupted watches are resumed, and
        // failed requests are reported by the command that sent them.
        0 => "warn,kube_client=off,kube_runtime=error",
        1 => "info,hyper=warn,kube=warn,tower=warn,rustls=warn",
        // Nor refusals of servers, which quote the values that they refuse.
        2 => "debug,hyper=info,h2=info,rustls=info,kube=info",
        // Not more of what others log: on their finest level they show what goes over the wire.
        _ => "trace,hyper=info,hyper_util=info,h2=info,rustls=info,kube=info,tower=info",
    };
    let logs = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(level))
        .with_ansi(crate::screen::has_colours_for_errors())
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Text => logs.init(),
        LogFormat::Json => logs.json().init(),
    }
}
