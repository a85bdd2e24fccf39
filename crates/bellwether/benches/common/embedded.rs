//! Our server as the binary that people run. (A module of benchmarks, not a benchmark.)

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use bellwether_testkit::Usage;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tempfile::TempDir;

/// Our binary, with data of its own.
pub(crate) struct Embedded {
    process: Child,
    data: TempDir,
    pub(crate) ready_after: Duration,
}

impl Embedded {
    /// Starts the binary, and waits until its kubeconfig is there.
    pub(crate) async fn start(arguments: &[&str]) -> anyhow::Result<Self> {
        let data = tempfile::tempdir()?;
        let started = now();
        let process = Command::new(env!("CARGO_BIN_EXE_bellwether"))
            .args(arguments)
            .args(["--listen", "127.0.0.1:0", "--data-dir"])
            .arg(data.path())
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start bellwether")?;
        let mut embedded = Self {
            process,
            data,
            ready_after: Duration::ZERO,
        };
        while !embedded.data.path().join("kubeconfig").exists() {
            anyhow::ensure!(
                embedded.process.try_wait()?.is_none(),
                "bellwether {arguments:?} has ended"
            );
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        embedded.ready_after = started.elapsed();
        Ok(embedded)
    }

    pub(crate) fn usage(&self) -> Usage {
        Usage::of_all(&[self.process.id()])
    }

    /// A client of the cluster of that name, with a connection of its own.
    pub(crate) async fn client(&self, cluster: &str) -> anyhow::Result<Client> {
        let kubeconfig = Kubeconfig::read_from(self.data.path().join("kubeconfig"))?;
        let options = KubeConfigOptions {
            context: Some(cluster.to_owned()),
            ..KubeConfigOptions::default()
        };
        Ok(Client::try_from(
            Config::from_custom_kubeconfig(kubeconfig, &options).await?,
        )?)
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The time, for measuring.
pub(crate) fn now() -> Instant {
    #[expect(
        clippy::disallowed_methods,
        reason = "how long things take is what is measured"
    )]
    Instant::now()
}
