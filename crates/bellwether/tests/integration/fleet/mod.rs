//! A running `bellwether up` in a directory of its own. (A module of other tests, not a test.)

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    dead_code,
    unreachable_pub,
    reason = "each test file uses its own part"
)]

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use bellwether_testkit::{Writes, process};
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};

/// What is written on a fleet, in its data directory. No two controllers may fight over an object.
const AUDIT_LOG: &str = "audit.log";

/// The root of the repository, where examples are.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The binary, to be run in the root of the repository.
pub fn bellwether() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bellwether"));
    command.current_dir(root());
    command
}

/// Waits a moment before something is tried again.
pub fn pause() {
    let (_keep, wait) = mpsc::channel::<()>();
    let _ = wait.recv_timeout(Duration::from_millis(200));
}

/// A fleet that ends with the test.
pub struct Fleet {
    directory: tempfile::TempDir,
    /// Where the data is, if not in the directory.
    data: PathBuf,
    process: Child,
    arguments: Vec<String>,
}

/// A command that goes on until it is dropped.
pub struct Background {
    process: Child,
    lines: mpsc::Receiver<String>,
}

impl Background {
    /// The id of the process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The next line that it prints, as soon as it is there.
    pub fn line(&self) -> String {
        self.lines.recv_timeout(Duration::from_secs(20)).unwrap()
    }

    /// The next line that it has printed already, if there is one.
    pub fn try_line(&self) -> Option<String> {
        self.lines.try_recv().ok()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Fleet {
    /// Starts on a free port and waits until it says that everything is up.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same, with further arguments.
    pub fn start_with(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let data = directory.path().to_owned();
        Self::launch(directory, data, arguments)
    }

    /// The same, with its data in another place.
    pub fn start_in(data: &Path, arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let arguments = arguments.iter().map(ToString::to_string).collect();
        Self::launch(directory, data.to_owned(), arguments)
    }

    fn launch(directory: tempfile::TempDir, data: PathBuf, arguments: Vec<String>) -> Self {
        let process = spawn(&data, &arguments);
        Self {
            directory,
            data,
            process,
            arguments,
        }
    }

    /// Starts only the API server of a hub, without controllers and members.
    pub fn only_server() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let arguments = ["apiserver", "--in-memory"];
        let process = spawn_command(directory.path(), &arguments, &[], "API server ready");
        let data = directory.path().to_owned();
        Self {
            directory,
            data,
            process,
            arguments: Vec::new(),
        }
    }

    /// Where the kubeconfig is.
    pub fn kubeconfig(&self) -> PathBuf {
        self.data.join("kubeconfig")
    }

    /// Where the data is, which goes with the test.
    pub fn directory(&self) -> &Path {
        &self.data
    }

    /// A directory for files of the test.
    pub fn scratch(&self) -> &Path {
        self.directory.path()
    }

    /// SIGKILL, then a new start on the same data.
    pub fn kill_and_restart(&mut self) {
        self.kill();
        self.restart();
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// SIGTERM: whether it ends by itself, without an error, within that time.
    pub fn ends_when_asked(&mut self, within: Duration) -> bool {
        let id = self.process.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status().unwrap();
        for _ in 0..=within.as_millis() / 200 {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status.success();
            }
            pause();
        }
        false
    }

    /// A client of the hub.
    pub async fn client(&self) -> kube::Client {
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig()).unwrap();
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        kube::Client::try_from(config.unwrap()).unwrap()
    }

    /// A new start on the same data, after the end.
    pub fn restart(&mut self) {
        self.process = spawn(&self.data, &self.arguments);
    }

    /// Arguments for the next start.
    pub fn set_arguments(&mut self, arguments: &[&str]) {
        self.arguments = arguments.iter().map(ToString::to_string).collect();
    }

    /// Runs a command of words separated by spaces and returns what it printed.
    #[track_caller]
    pub fn shell(&self, command: &str) -> String {
        let (succeeded, output, errors) = self.run(command);
        assert!(succeeded, "{command}\n{output}{errors}");
        output
    }

    /// Runs a command that has to fail and returns what it complained.
    #[track_caller]
    pub fn fails(&self, command: &str) -> String {
        let (succeeded, output, errors) = self.run(command);
        assert!(!succeeded, "{command} succeeded\n{output}");
        errors
    }

    fn command(&self, command: &str) -> Command {
        let mut words = command.split(' ');
        let mut command = Command::new(words.next().unwrap());
        command
            .args(words)
            .current_dir(root())
            .env("KUBECONFIG", self.kubeconfig())
            // kubectl remembers discovery in the home directory, by address.
            .env("HOME", self.directory.path());
        command
    }

    /// Begins a command that goes on.
    pub fn spawn(&self, command: &str) -> Background {
        let mut process = self
            .command(command)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = process::lines(&mut process);
        Background { process, lines }
    }

    /// Runs a command: whether it succeeded, what it printed, what it complained.
    pub fn run(&self, command: &str) -> (bool, String, String) {
        process::run(&mut self.command(command))
    }
}

fn spawn(directory: &Path, arguments: &[String]) -> Child {
    spawn_command(directory, &["up"], arguments, "Everything is up")
}

/// Starts a server with data in the directory, and waits until it prints that it is ready.
fn spawn_command(directory: &Path, command: &[&str], arguments: &[String], ready: &str) -> Child {
    let mut process = Command::new(env!("CARGO_BIN_EXE_bellwether"))
        .args(command)
        .args(["--listen", "127.0.0.1:0", "--data-dir"])
        .arg(directory)
        .arg("--audit-log")
        .arg(directory.join(AUDIT_LOG))
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let is_ready = lines.map_while(Result::ok).any(|line| line.contains(ready));
    assert!(is_ready, "{command:?} ended before it was ready");
    process
}

impl Drop for Fleet {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if !std::thread::panicking() {
            let log = std::fs::read_to_string(self.data.join(AUDIT_LOG));
            Writes::of_audit_log(&log.unwrap_or_default()).assert_no_fight();
        }
    }
}

/// One of our own commands that goes on until the test ends.
pub struct Process(Child);

impl Process {
    /// Starts it, and waits until it says something.
    pub fn start(command: &str, until: &str) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_bellwether"))
            .args(command.split(' '))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let is_said = lines
            .by_ref()
            .map_while(Result::ok)
            .any(|line| line.contains(until));
        assert!(is_said, "{command} ended before it said {until}");
        std::thread::spawn(move || lines.for_each(drop));
        Self(process)
    }

    /// Waits until it ends by itself.
    pub fn ends(mut self) -> bool {
        self.0.wait().unwrap().success()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
