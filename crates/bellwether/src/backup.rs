//! `bellwether backup` and `restore`: the state of an embedded hub and its members, in one file.

mod archive;
mod socket;

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bellwether_apiserver::{Clock, StoredObject};
use bellwether_store::Store;
use clap::Args;

use crate::cli::say;
use crate::data::DataDir;

pub(crate) use socket::BackupSocket;

/// Save the state of `bellwether up` or `bellwether apiserver`, while it runs or not.
///
/// The file has a consistent snapshot: all clusters, the certificate authority and the key of tokens. Anyone who can read it can
/// impersonate every user of the fleet; it is created with mode 0600.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bellwether backup --output monday.tar")]
pub(crate) struct BackupArgs {
    /// The data directory.
    #[arg(long, value_name = "DIR", default_value = ".bellwether")]
    data_dir: PathBuf,
    /// The file to write; it must not exist.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Create a data directory from a backup.
///
/// The directory must be missing or empty. A damaged file, or one that is not a backup, is rejected and changes nothing.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  bellwether restore monday.tar --data-dir .bellwether\n  bellwether up"
)]
pub(crate) struct RestoreArgs {
    /// The backup.
    file: PathBuf,
    /// The data directory to create.
    #[arg(long, value_name = "DIR", default_value = ".bellwether")]
    data_dir: PathBuf,
}

pub(crate) async fn backup(arguments: BackupArgs) -> anyhow::Result<()> {
    let BackupArgs { data_dir, output } = arguments;
    anyhow::ensure!(
        data_dir.join("store").exists(),
        "{} has no store: name the data directory with --data-dir",
        data_dir.display()
    );
    anyhow::ensure!(
        !output.exists(),
        "{} already exists: choose another name",
        output.display()
    );
    let partial = with_suffix(&output, ".part");
    // What a client that was killed has left.
    let _ = fs::remove_file(&partial);
    // If nobody runs there, the directory can be read.
    let written = if socket::fetch(&data_dir, &partial).await? {
        Ok(())
    } else {
        from_directory(&data_dir, &partial).await
    };
    let finished = written.and_then(|()| {
        archive::check(open(&partial)?)?;
        fs::rename(&partial, &output).with_context(|| cannot("write", &output))
    });
    if finished.is_err() {
        let _ = fs::remove_file(&partial);
    }
    finished?;
    say(&format!(
        "saved {} to {}",
        data_dir.display(),
        output.display()
    ));
    Ok(())
}

/// Takes a backup of a directory that no process uses.
async fn from_directory(data_dir: &Path, output: &Path) -> anyhow::Result<()> {
    let data = DataDir::create(data_dir)?;
    let store = data.open_store(false, &Clock::system())?;
    let written = archive::write(&store, data_dir, output).await;
    store.close().await;
    written
}

pub(crate) async fn restore(arguments: RestoreArgs) -> anyhow::Result<()> {
    let RestoreArgs { file, data_dir } = arguments;
    let is_empty = match fs::read_dir(&data_dir) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => return Err(error).context(cannot("read", &data_dir)),
    };
    anyhow::ensure!(
        is_empty,
        "{} is not empty: choose another directory with --data-dir, or move it away",
        data_dir.display()
    );
    let unpacked = with_suffix(&data_dir, ".restoring");
    anyhow::ensure!(
        !unpacked.exists(),
        "{} is there: another restore runs, or one was interrupted; remove it",
        unpacked.display()
    );
    let made = unpack(&file, &unpacked).await.and_then(|clusters| {
        if data_dir.exists() {
            fs::remove_dir(&data_dir).with_context(|| cannot("replace", &data_dir))?;
        }
        fs::rename(&unpacked, &data_dir).with_context(|| cannot("create", &data_dir))?;
        Ok(clusters)
    });
    if made.is_err() {
        let _ = fs::remove_dir_all(&unpacked);
    }
    let clusters = made.with_context(|| format!("cannot restore {}", file.display()))?;
    say(&format!(
        "{} has {clusters} clusters; `bellwether up --data-dir {}` runs them",
        data_dir.display(),
        data_dir.display()
    ));
    Ok(())
}

/// Unpacks a backup and reads all of it; returns how many clusters it has.
async fn unpack(file: &Path, directory: &Path) -> anyhow::Result<usize> {
    let source = open(file)?;
    // Created by us alone, so that nothing is mixed in.
    let data = DataDir::create(directory)?;
    archive::unpack(source, directory)?;
    let clock = Clock::system();
    let store: Store<StoredObject> = data.open_store(false, &clock)?;
    let clusters = store.keyspaces().len();
    data.authority(false, false, &clock)?;
    data.token_key(false)?;
    store.close().await;
    Ok(clusters)
}

fn open(path: &Path) -> anyhow::Result<BufReader<File>> {
    let file = File::open(path).with_context(|| cannot("read", path))?;
    Ok(BufReader::new(file))
}

/// A path beside another one.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

fn cannot(what: &str, path: &Path) -> String {
    format!("cannot {what} {}", path.display())
}
