//! Plays records of workflows on a hub of our own, with the player that lies beside them.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::Context as _;

use crate::run::{cargo, root, say};

/// How often, and how long in between, the server is looked for.
const LOOKS: u32 = 300;
const PAUSE: Duration = Duration::from_millis(100);
/// What the hub says when it is ready.
const READY: &str = "the hub is ready";
/// The flags of the recorded engine, and ours.
const FLAGS: &str = r#"{
  "--max-workflow-step-error-retry-times": "--max-workflow-step-error-retry-times={value}",
  "--feature-gates=EnableSuspendOnFailure=true": "--workflow-suspend-on-failure"
}"#;

/// A server that ends with us.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the hub until it is ready: the player asks for the kinds before it starts the engine.
fn create_kinds(binary: &Path, kubeconfig: &Path) -> anyhow::Result<()> {
    let mut hub = Command::new(binary)
        .args(["hub", "--leader-elect=false"])
        .env("KUBECONFIG", kubeconfig)
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the hub")?;
    let output = hub.stdout.take().context("the hub has no output")?;
    let _hub = Server(hub);
    let mut lines = BufReader::new(output).lines();
    let is_ready = lines.any(|line| line.is_ok_and(|line| line.contains(READY)));
    anyhow::ensure!(is_ready, "the hub ended before it was ready");
    Ok(())
}

/// Plays the records of a file; the player says which were right.
#[expect(
    clippy::disallowed_methods,
    reason = "a tool waits for a process that it started"
)]
pub(super) fn run(path: &Path, failures: bool) -> anyhow::Result<()> {
    let player = path.with_file_name("play.py");
    anyhow::ensure!(player.exists(), "{} is not there", player.display());
    let built = cargo(&["build", "--quiet", "-p", "bellwether"]).status()?;
    anyhow::ensure!(built.success(), "the binary cannot be built");
    let binary = root().join("target/debug/bellwether");
    let folder = root().join("target/corpus-workflow");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    let server = Command::new(&binary)
        .args([
            "apiserver",
            "--in-memory",
            "--simulate-workloads=false",
            "--listen",
            "127.0.0.1:0",
        ])
        .arg("--data-dir")
        .arg(&folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start the server")?;
    let _server = Server(server);
    let kubeconfig = folder.join("kubeconfig");
    for _ in 0..LOOKS {
        if kubeconfig.exists() {
            break;
        }
        sleep(PAUSE);
    }
    create_kinds(&binary, &kubeconfig)?;
    let flags = folder.join("flags.json");
    std::fs::write(&flags, FLAGS)?;
    let binary = binary.display();
    let engine =
        format!("{binary} hub --leader-elect=false --workflow-http-allow *,loopback {{args}}");
    let cli = format!("{binary} workflow");
    let status = Command::new("python3")
        .arg(&player)
        .arg("--corpus")
        .arg(path)
        .arg("--kubeconfig")
        .arg(&kubeconfig)
        .args([
            "--engine",
            &engine,
            "--engine-ready",
            READY,
            "--engine-args-map",
        ])
        .arg(&flags)
        .args([
            "--cli",
            &cli,
            "--misses",
            if failures { "200" } else { "20" },
        ])
        .status()
        .context("cannot run python3")?;
    say("played");
    anyhow::ensure!(status.success(), "not every record was right");
    Ok(())
}
