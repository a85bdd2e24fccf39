//! The file of a backup: a tar archive whose last entry has the digests of all others.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use bellwether_apiserver::StoredObject;
use bellwether_archive::{Attributes, Kind, Reader, Writer, hex};
use bellwether_store::Store;
use ring::digest::{Context as Digest, SHA256};

use super::cannot;

/// The first entry, which says what the archive is.
const LABEL: (&str, &str) = ("BACKUP", "bellwether backup, format 1\n");

/// The last entry: a digest and a name in each line.
const DIGESTS: &str = "DIGESTS";

/// Files beside the store.
const KEYS: [&str; 3] = ["ca.crt", "ca.key", "tokens.key"];

/// Files of the store.
const STORE: [&str; 2] = ["store/STORE", "store/store.redb"];

/// More than any of the small files has.
const MOST_TEXT: u64 = 1 << 20;

const PRIVATE: Attributes = Attributes {
    kind: Kind::File,
    mode: 0o600,
    owner: 0,
};

/// Writes the state of one moment of a store, and the keys beside it, to a file.
pub(super) async fn write(
    store: &Store<StoredObject>,
    data: &Path,
    output: &Path,
) -> anyhow::Result<()> {
    let copy = super::with_suffix(output, ".store");
    // One that a killed process has left.
    let _ = fs::remove_dir_all(&copy);
    let saved = store.backup(&copy.join("store")).await;
    let saved = saved.context("cannot copy the store");
    let written = saved.and_then(|()| pack(&copy, data, output));
    let _ = fs::remove_dir_all(&copy);
    written
}

fn pack(copy: &Path, data: &Path, output: &Path) -> anyhow::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options
        .open(output)
        .with_context(|| cannot("write", output))?;
    let mut archive = Writer::new(BufWriter::new(file));
    archive.file(LABEL.0, PRIVATE, LABEL.1.as_bytes())?;
    let mut digests = String::new();
    let sources = KEYS.iter().map(|name| (data, *name));
    for (folder, name) in sources.chain(STORE.iter().map(|name| (copy, *name))) {
        let path = folder.join(name);
        let file = File::open(&path).with_context(|| cannot("read", &path))?;
        let length = file
            .metadata()
            .with_context(|| cannot("read", &path))?
            .len();
        let mut source = Digesting::new(file);
        archive.entry(name, PRIVATE, length, &mut source)?;
        // Writing to a String cannot fail.
        let _ = writeln!(digests, "{}  {name}", source.finish());
    }
    archive.file(DIGESTS, PRIVATE, digests.as_bytes())?;
    let file = archive
        .finish()?
        .into_inner()
        .map_err(std::io::IntoInnerError::into_error);
    file?.sync_all().with_context(|| cannot("write", output))
}

/// Reads a whole archive, and fails if it is not what was written.
pub(super) fn check(from: impl Read) -> anyhow::Result<()> {
    each(from, |_, content| {
        std::io::copy(content, &mut std::io::sink())?;
        Ok(())
    })
}

/// Writes the files of an archive into a directory, and fails if they are not what was written.
pub(super) fn unpack(from: impl Read, directory: &Path) -> anyhow::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let store = directory.join("store");
    builder
        .create(&store)
        .with_context(|| cannot("create", &store))?;
    each(from, |name, content| {
        let path = directory.join(name);
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options
            .open(&path)
            .with_context(|| cannot("create", &path))?;
        let mut file = BufWriter::new(file);
        std::io::copy(content, &mut file).with_context(|| cannot("write", &path))?;
        file.flush().with_context(|| cannot("write", &path))?;
        file.get_ref()
            .sync_all()
            .with_context(|| cannot("write", &path))
    })
}

/// Hands out the content of each file, and compares all digests at the end.
fn each(
    from: impl Read,
    mut handle: impl FnMut(&str, &mut dyn Read) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut archive = Reader::new(from);
    let first = archive.next_entry().context("not a backup")?;
    let label = text(&mut archive);
    ensure!(
        first.is_some_and(|entry| entry.name == LABEL.0) && label? == LABEL.1,
        "not a backup that this version of bellwether can read"
    );
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    loop {
        let entry = archive.next_entry()?;
        let entry = entry.context("the backup ends early: its digests are missing")?;
        if entry.name == DIGESTS {
            break;
        }
        let name = entry.name.as_str();
        let is_expected = KEYS.contains(&name) || STORE.contains(&name);
        ensure!(
            is_expected && !found.contains_key(name),
            "{name:?} does not belong into a backup"
        );
        let mut content = Digesting::new(&mut archive);
        handle(name, &mut content)?;
        let digest = content.finish();
        found.insert(entry.name, digest);
    }
    compare(&found, &text(&mut archive)?)?;
    ensure!(
        archive.next_entry()?.is_none(),
        "the backup goes on after its end"
    );
    Ok(())
}

fn compare(found: &BTreeMap<String, String>, digests: &str) -> anyhow::Result<()> {
    let mut expected: BTreeMap<&str, &str> = BTreeMap::new();
    for line in digests.lines() {
        let (digest, name) = line.split_once("  ").context("the digests are damaged")?;
        expected.insert(name, digest);
    }
    for name in KEYS.iter().chain(&STORE) {
        match (found.get(*name), expected.get(name)) {
            (Some(found), Some(expected)) if found == expected => {}
            (Some(_), Some(_)) => bail!("{name} is damaged: it has another digest"),
            _ => bail!("{name} is missing in the backup"),
        }
    }
    Ok(())
}

fn text(from: &mut impl Read) -> anyhow::Result<String> {
    let mut text = String::new();
    from.take(MOST_TEXT).read_to_string(&mut text)?;
    Ok(text)
}

/// Reads, and makes a digest of what was read.
struct Digesting<R> {
    from: R,
    digest: Digest,
}

impl<R: Read> Digesting<R> {
    fn new(from: R) -> Self {
        Self {
            from,
            digest: Digest::new(&SHA256),
        }
    }

    fn finish(self) -> String {
        hex(self.digest.finish().as_ref())
    }
}

impl<R: Read> Read for Digesting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.from.read(buffer)?;
        self.digest.update(&buffer[..read]);
        Ok(read)
    }
}
