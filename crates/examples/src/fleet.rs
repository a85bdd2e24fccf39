//! A fleet in a process of its own, in a directory that is removed with it. It can be killed at any moment.

use std::ffi::OsStr;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use bellwether_ctl::{Connection, Locator};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

use crate::script::FleetSpec;

/// What `bellwether up` prints when it is ready.
const READY: &str = "Everything is up";
/// How long it may take until it is.
const START_TIMEOUT: Duration = Duration::from_mins(2);
/// How much of the errors of a fleet is shown.
const TAIL: usize = 2000;

/// A running fleet.
pub(crate) struct Fleet {
    directory: tempfile::TempDir,
    program: PathBuf,
    arguments: Vec<String>,
    process: Mutex<Option<Child>>,
}

impl Fleet {
    /// Starts one, and waits until it is ready.
    pub(crate) async fn start(program: &Path, spec: &FleetSpec) -> Result<Self, String> {
        let directory = tempfile::Builder::new()
            .prefix("bellwether-example-")
            .tempdir();
        let directory = directory.map_err(|error| format!("cannot make a directory: {error}"))?;
        // A fleet that is started again is where it was.
        let port = free_port().map_err(|error| format!("there is no free port: {error}"))?;
        let mut arguments = vec![
            "up".to_owned(),
            "--listen".to_owned(),
            format!("127.0.0.1:{port}"),
            "--clusters".to_owned(),
            spec.clusters.to_string(),
        ];
        arguments.extend(spec.arguments.iter().cloned());
        let fleet = Self {
            directory,
            program: program.to_owned(),
            arguments,
            process: Mutex::new(None),
        };
        *fleet.process.lock().await = Some(fleet.launch().await?);
        Ok(fleet)
    }

    /// The program that the fleet is made of.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Where the kubeconfig is.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    /// A connection to the hub or to a member. It outlives restarts.
    pub(crate) async fn connect(&self, cluster: &str) -> Result<Connection, String> {
        let locator = Locator {
            kubeconfig: Some(self.kubeconfig().into_os_string()),
            context: Some(cluster.to_owned()),
            ..Locator::default()
        };
        let opened = Connection::open(&locator).await;
        opened.map_err(|error| format!("cannot connect to {cluster}: {error}"))
    }

    /// Kills the fleet as `kill -9` does, and starts it again.
    pub(crate) async fn kill_and_restart(&self) -> Result<(), String> {
        let mut process = self.process.lock().await;
        if let Some(mut running) = process.take() {
            running
                .kill()
                .await
                .map_err(|error| format!("cannot kill the fleet: {error}"))?;
        }
        *process = Some(self.launch().await?);
        Ok(())
    }

    /// Ends the fleet.
    pub(crate) async fn stop(&self) {
        if let Some(mut running) = self.process.lock().await.take() {
            // What cannot be killed has ended already.
            let _ = running.kill().await;
        }
    }

    async fn launch(&self) -> Result<Child, String> {
        let log = self.directory.path().join("fleet.log");
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log);
        let file = file.map_err(|error| format!("cannot write {}: {error}", log.display()))?;
        let mut process = Command::new(&self.program)
            .args(&self.arguments)
            .arg("--data-dir")
            .arg(self.directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(file)
            .env_remove(OsStr::new("KUBECONFIG"))
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", self.program.display()))?;
        let Some(output) = process.stdout.take() else {
            return Err("the fleet has no output".to_owned());
        };
        let mut lines = BufReader::new(output).lines();
        let ready = async {
            while let Ok(Some(line)) = lines.next_line().await {
                if line.contains(READY) {
                    return true;
                }
            }
            false
        };
        let is_ready = tokio::time::timeout(START_TIMEOUT, ready).await;
        if is_ready != Ok(true) {
            return Err(format!("the fleet did not start:\n{}", tail(&log)));
        }
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(process)
    }

    /// The last warnings and errors of the fleet.
    pub(crate) fn last_words(&self) -> String {
        tail(&self.directory.path().join("fleet.log"))
    }
}

fn free_port() -> std::io::Result<u16> {
    TcpListener::bind(("127.0.0.1", 0))?
        .local_addr()
        .map(|address| address.port())
}

fn tail(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let skipped = text.chars().count().saturating_sub(TAIL);
    text.chars().skip(skipped).collect()
}
