//! A running `bellwether up` in a directory of its own. (A module of other tests, not a test.)

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses its own part"
)]

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The root of the repository, where examples are.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A fleet that ends with the test.
pub struct Fleet {
    directory: tempfile::TempDir,
    process: Child,
}

impl Fleet {
    /// Starts on a free port and waits until it says that everything is up.
    pub fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let process = spawn(directory.path());
        Self { directory, process }
    }

    /// Where the kubeconfig is.
    pub fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    /// A directory that goes with the test.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// SIGKILL, then a new start on the same data.
    pub fn kill_and_restart(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.process = spawn(self.directory.path());
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

    /// Runs a command: whether it succeeded, what it printed, what it complained.
    pub fn run(&self, command: &str) -> (bool, String, String) {
        let mut words = command.split(' ');
        let output = Command::new(words.next().unwrap())
            .args(words)
            .current_dir(root())
            .env("KUBECONFIG", self.kubeconfig())
            // kubectl remembers discovery in the home directory, by address.
            .env("HOME", self.directory.path())
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.success(),
            text(&output.stdout),
            text(&output.stderr),
        )
    }
}

fn spawn(directory: &Path) -> Child {
    let mut process = Command::new(env!("CARGO_BIN_EXE_bellwether"))
        .args(["up", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let ready = lines
        .map_while(Result::ok)
        .any(|line| line.contains("Everything is up"));
    assert!(ready, "bellwether up ended before it was ready");
    process
}

impl Drop for Fleet {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
