//! `bellwether version`: what this program is.

use clap::Args;
use serde_json::json;

use crate::print::{PrintArgs, line};

/// Show the version of this program and of the Kubernetes API that it serves.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bellwether version\n  bellwether version -o json")]
pub(crate) struct VersionArgs {
    #[command(flatten)]
    print: PrintArgs,
}

pub(crate) fn run(arguments: &VersionArgs) -> anyhow::Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    let kubernetes = bellwether_apiserver::kubernetes_version();
    let platform = format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH);
    let document = json!({
        "version": version, "kubernetesVersion": kubernetes, "platform": platform,
    });
    let lines = [
        line(["Version:", version]),
        line(["Kubernetes API:", &kubernetes]),
        line(["Platform:", &platform]),
    ];
    arguments.print.print(&document, &lines)
}
