//! How a running server is asked for a backup: a socket in its data directory, which only the owner of the directory can reach. A client
//! that connects receives the archive.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bellwether_apiserver::StoredObject;
use bellwether_store::Store;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

use super::{archive, cannot};
use crate::data::restrict;

/// The name of the socket.
const SOCKET: &str = "backup.sock";

/// The file that is sent, while it is sent.
const FILE: &str = "backup.tmp";

/// The wait when there are too many connections.
const RETRY: std::time::Duration = std::time::Duration::from_millis(100);

/// Answers those who want a backup, until it is dropped.
#[derive(Debug)]
pub(crate) struct BackupSocket {
    path: PathBuf,
    task: Option<JoinHandle<()>>,
}

impl BackupSocket {
    /// Opens the socket. A server that cannot do so runs without: backups are then possible when it has ended.
    pub(crate) fn open(data: &Path, store: Store<StoredObject>) -> Self {
        let path = data.join(SOCKET);
        // One that a killed process has left; this process holds the lock of the directory.
        let _ = std::fs::remove_file(&path);
        // And what it was about to send.
        let file = data.join(FILE);
        let _ = std::fs::remove_file(&file);
        let _ = std::fs::remove_dir_all(super::with_suffix(&file, ".store"));
        let task = match bind(&path) {
            Ok(listener) => Some(tokio::spawn(serve(listener, data.to_owned(), store))),
            Err(error) => {
                tracing::warn!(error = format!("{error:#}"), path = %path.display(), "no backups while this process runs");
                None
            }
        };
        Self { path, task }
    }
}

/// Listens at a path that only the owner can connect to.
fn bind(path: &Path) -> anyhow::Result<UnixListener> {
    let listener = UnixListener::bind(path)?;
    restrict(path, 0o600)?;
    Ok(listener)
}

impl Drop for BackupSocket {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Serves one after the other: a backup reads everything.
async fn serve(listener: UnixListener, data: PathBuf, store: Store<StoredObject>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(RETRY).await;
            continue;
        };
        let file = data.join(FILE);
        let _ = std::fs::remove_file(&file);
        let sent = async {
            archive::write(&store, &data, &file).await?;
            send(&file, stream).await
        };
        if let Err(error) = sent.await {
            tracing::warn!(error = format!("{error:#}"), "a backup failed");
        }
        let _ = std::fs::remove_file(&file);
    }
}

async fn send(file: &Path, mut stream: UnixStream) -> anyhow::Result<()> {
    let mut file = tokio::fs::File::open(file).await?;
    tokio::io::copy(&mut file, &mut stream).await?;
    Ok(stream.shutdown().await?)
}

/// Asks the server of a data directory for a backup; false if none runs there.
pub(super) async fn fetch(data: &Path, output: &Path) -> anyhow::Result<bool> {
    let Ok(mut stream) = UnixStream::connect(data.join(SOCKET)).await else {
        return Ok(false);
    };
    let mut options = tokio::fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let file = options.open(output).await;
    let mut file = file.with_context(|| cannot("write", output))?;
    let copied = tokio::io::copy(&mut stream, &mut file).await;
    let copied = copied.context("the running server ended before the backup was complete")?;
    file.sync_all()
        .await
        .with_context(|| cannot("write", output))?;
    anyhow::ensure!(
        copied > 0,
        "the running server could not make a backup: its log says why"
    );
    Ok(true)
}
