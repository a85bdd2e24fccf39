//! Logs: quiet unless asked for, on standard error.

use tracing_subscriber::EnvFilter;

/// Starts logging; `verbosity` counts `-v`.
pub(crate) fn start(verbosity: u8) {
    let level = match verbosity {
        // Whoever skips checking a certificate has said so, watches that break are taken up again,
        // and what a client cannot do is the error of whoever asked.
        0 => "warn,kube_client=off,kube_runtime=error",
        1 => "info,hyper=warn,kube=warn,tower=warn,rustls=warn",
        2 => "debug,hyper=info,h2=info,rustls=info",
        // Not more of what others log: on their finest level they show what goes over the wire.
        _ => "trace,hyper=info,hyper_util=info,h2=info,rustls=info,kube=info,tower=info",
    };
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(level))
        .with_writer(std::io::stderr)
        .init();
}
