//! A fleet in processes of its own, in a directory that is removed with it. They can be killed at any moment.

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

/// The name of the hub, and of its directory.
const HUB: &str = "hub";
/// What `bellwether up` prints when it is ready.
const READY: &str = "Everything is up";
/// What `bellwether apiserver` prints when it is ready.
const SERVER_READY: &str = "API server ready";
/// What `bellwether agent` prints when it is ready, with the name of its cluster.
const AGENT_READY: &str = "the agent of ";
/// How long it may take until a process is ready.
const START_TIMEOUT: Duration = Duration::from_mins(2);
/// How long an agent that was killed still counts as the leader: the shortest time that there is.
const LEASE: &str = "2s";
/// How much of the errors of a fleet is shown.
const TAIL: usize = 2000;

/// A running fleet.
pub(crate) struct Fleet {
    directory: tempfile::TempDir,
    program: PathBuf,
    /// True if hub, members and agents are processes of their own.
    is_apart: bool,
    /// Processes that are killed, the hub first.
    processes: Mutex<Vec<Process>>,
    /// Servers of members, which are never killed.
    members: Mutex<Vec<Process>>,
}

/// A process that is started again when it was killed.
struct Process {
    /// What it is, for the commentary.
    name: String,
    arguments: Vec<String>,
    /// What it prints when it is ready.
    ready: String,
    running: Option<Child>,
}

impl Fleet {
    /// Starts a fleet, and waits until it is ready: one process, or one for the hub and two for each member.
    pub(crate) async fn start(
        program: &Path,
        spec: &FleetSpec,
        is_apart: bool,
    ) -> Result<Self, String> {
        let directory = tempfile::Builder::new()
            .prefix("bellwether-example-")
            .tempdir();
        let directory = directory.map_err(|error| format!("cannot make a directory: {error}"))?;
        let fleet = Self {
            directory,
            program: program.to_owned(),
            is_apart,
            processes: Mutex::default(),
            members: Mutex::default(),
        };
        let embedded = if is_apart { 0 } else { spec.clusters };
        let mut arguments = fleet.server("up", HUB)?;
        arguments.extend(["--clusters".to_owned(), embedded.to_string()]);
        arguments.extend(spec.arguments.iter().cloned());
        let name = if is_apart {
            "the hub"
        } else {
            "the hub, its members and agents"
        };
        let hub = fleet.launch(name.to_owned(), arguments, READY.to_owned());
        fleet.processes.lock().await.push(hub.await?);
        if is_apart {
            for number in 1..=spec.clusters {
                fleet.start_member(&format!("cluster{number}")).await?;
            }
        }
        Ok(fleet)
    }

    /// Arguments of a server with data in a directory of its own. One that is started again is where it was.
    fn server(&self, command: &str, name: &str) -> Result<Vec<String>, String> {
        let port = free_port().map_err(|error| format!("there is no free port: {error}"))?;
        Ok(vec![
            command.to_owned(),
            "--listen".to_owned(),
            format!("127.0.0.1:{port}"),
            "--data-dir".to_owned(),
            self.path(name),
        ])
    }

    /// Starts a member and its agent, which joins the hub.
    async fn start_member(&self, cluster: &str) -> Result<(), String> {
        let arguments = self.server("apiserver", cluster)?;
        let server = self.launch(cluster.to_owned(), arguments, SERVER_READY.to_owned());
        self.members.lock().await.push(server.await?);
        let bootstrap = self.path(&format!("{cluster}.bootstrap.yaml"));
        let command = ["token", "create", "--cluster-name", cluster, "--write"];
        let created = Command::new(&self.program)
            .args(command)
            .arg(&bootstrap)
            .env("KUBECONFIG", self.kubeconfig())
            .output()
            .await
            .map_err(|error| error.to_string())?;
        if !created.status.success() {
            let problem = String::from_utf8_lossy(&created.stderr);
            return Err(format!("cannot make a token for {cluster}: {problem}"));
        }
        let arguments = [
            "agent",
            "--cluster-name",
            cluster,
            "--bootstrap-kubeconfig",
            &bootstrap,
            "--kubeconfig",
            &self.path(&format!("{cluster}/kubeconfig")),
            "--leader-elect-lease-duration",
            LEASE,
        ];
        let ready = format!("{AGENT_READY}{cluster}");
        let arguments = arguments.map(str::to_owned).to_vec();
        let agent = self.launch(ready.clone(), arguments, ready);
        self.processes.lock().await.push(agent.await?);
        Ok(())
    }

    fn path(&self, name: &str) -> String {
        let path = self.directory.path().join(name);
        path.to_string_lossy().into_owned()
    }

    /// The program that the fleet is made of.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Where the kubeconfig of the hub is.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join(HUB).join("kubeconfig")
    }

    /// A connection to the hub or to a member. It outlives restarts.
    pub(crate) async fn connect(&self, cluster: &str) -> Result<Connection, String> {
        let locator = if self.is_apart && cluster != HUB {
            let path = self.directory.path().join(cluster).join("kubeconfig");
            Locator {
                kubeconfig: Some(path.into_os_string()),
                ..Locator::default()
            }
        } else {
            Locator {
                kubeconfig: Some(self.kubeconfig().into_os_string()),
                context: Some(cluster.to_owned()),
                ..Locator::default()
            }
        };
        let opened = Connection::open(&locator).await;
        opened.map_err(|error| format!("cannot connect to {cluster}: {error}"))
    }

    /// Kills all processes as `kill -9` does, and starts them again. Returns what they are.
    pub(crate) async fn kill_and_restart(&self) -> Result<String, String> {
        let mut processes = self.processes.lock().await;
        for process in processes.iter_mut() {
            process.kill().await?;
        }
        let mut names = Vec::new();
        for process in processes.iter_mut() {
            process.running = Some(self.spawn(&process.arguments, &process.ready).await?);
            names.push(process.name.clone());
        }
        Ok(names.join(", "))
    }

    /// Kills one process, which a number chooses, and starts it again. Returns what it is.
    pub(crate) async fn kill_one(&self, choice: u64) -> Result<String, String> {
        let mut processes = self.processes.lock().await;
        let count = processes.len().max(1) as u64;
        let index = usize::try_from(choice % count).unwrap_or_default();
        let Some(process) = processes.get_mut(index) else {
            return Err("there is nothing to kill".to_owned());
        };
        process.kill().await?;
        process.running = Some(self.spawn(&process.arguments, &process.ready).await?);
        Ok(process.name.clone())
    }

    /// Ends the fleet.
    pub(crate) async fn stop(&self) {
        for processes in [&self.processes, &self.members] {
            for process in processes.lock().await.iter_mut() {
                // What cannot be killed has ended already.
                let _ = process.kill().await;
            }
        }
    }

    async fn launch(
        &self,
        name: String,
        arguments: Vec<String>,
        ready: String,
    ) -> Result<Process, String> {
        let running = Some(self.spawn(&arguments, &ready).await?);
        Ok(Process {
            name,
            arguments,
            ready,
            running,
        })
    }

    /// Starts a process, and waits until it prints that it is ready.
    async fn spawn(&self, arguments: &[String], ready: &str) -> Result<Child, String> {
        let log = self.directory.path().join("fleet.log");
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log);
        let file = file.map_err(|error| format!("cannot write {}: {error}", log.display()))?;
        let mut process = Command::new(&self.program)
            .args(arguments)
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
        let is_ready = async {
            while let Ok(Some(line)) = lines.next_line().await {
                if line.contains(ready) {
                    return true;
                }
            }
            false
        };
        let is_ready = tokio::time::timeout(START_TIMEOUT, is_ready).await;
        if is_ready != Ok(true) {
            let command = arguments.first().map(String::as_str).unwrap_or_default();
            return Err(format!("{command} did not start:\n{}", tail(&log)));
        }
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(process)
    }

    /// The last warnings and errors of the fleet.
    pub(crate) fn last_words(&self) -> String {
        tail(&self.directory.path().join("fleet.log"))
    }
}

impl Process {
    async fn kill(&mut self) -> Result<(), String> {
        let Some(mut running) = self.running.take() else {
            return Ok(());
        };
        let killed = running.kill().await;
        killed.map_err(|error| format!("cannot kill {}: {error}", self.name))
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
