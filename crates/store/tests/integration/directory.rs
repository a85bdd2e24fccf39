//! Directories that are damaged, foreign or in use: each gives one clear error and stays as it is.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use bellwether_store::{Expected, OpenError, Options, Range, Store};
use bytes::Bytes;

type Files = BTreeMap<PathBuf, Vec<u8>>;

fn open(path: &Path) -> Result<Store<String>, OpenError> {
    Store::open(path, Options::default())
}

fn files(path: &Path) -> Files {
    let entries = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect()
}

fn content(store: &Store<String>) -> Vec<(String, String)> {
    let mut content = Vec::new();
    for name in store.keyspaces() {
        let page = store.keyspace(&name).range(Range::default()).unwrap();
        let entries = page.entries.iter();
        content.extend(entries.map(|entry| (entry.key.to_string(), entry.value.to_string())));
    }
    content
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}

/// A directory with some content, closed.
fn written() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).unwrap();
    block_on(async {
        for number in 0..50 {
            let keyspace = store.keyspace(&format!("cluster{}", number % 3));
            let value = move |revision| format!("{number} at {revision}").repeat(20);
            keyspace
                .put(&format!("key{number}"), Expected::Absent, value)
                .await
                .unwrap();
        }
        store.close().await;
    });
    directory
}

/// Spoils a sound directory, and checks that it is refused with the message and left as it is.
#[track_caller]
fn check(spoil: impl FnOnce(&Path), message: &str) {
    let directory = written();
    spoil(directory.path());
    check_refused(directory.path(), message);
}

#[track_caller]
fn check_refused(path: &Path, message: &str) {
    let before = files(path);
    let error = open(path).unwrap_err().to_string();
    let error = error.replace(path.to_str().unwrap(), "DIR");
    assert_eq!(error, message);
    assert!(files(path) == before, "the directory has changed");
}

fn change(path: &Path, name: &str, edit: impl FnOnce(&mut Vec<u8>)) {
    let path = path.join(name);
    let mut bytes = fs::read(&path).unwrap();
    edit(&mut bytes);
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_new_directory_is_created_with_its_parents() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("a/b");
    let store = open(&path).unwrap();
    assert!(store.keyspaces().is_empty());
    block_on(store.close());
    block_on(open(&path).unwrap().close());
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_what_is_stored() {
    use std::os::unix::fs::PermissionsExt;

    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("data");
    block_on(open(&path).unwrap().close());
    for path in files(&path).into_keys().chain([path]) {
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{} has mode {mode:o}", path.display());
    }
}

#[tokio::test]
async fn a_keyspace_does_not_inherit_from_a_dropped_one_of_the_same_name() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).unwrap();
    let old = store.keyspace("hub");
    let writes = (0..300).map(|_| old.put("old", Expected::Any, |_| "old".to_owned()));
    for written in futures::future::join_all(writes).await {
        written.unwrap();
    }
    assert!(store.drop_keyspace("hub").await.unwrap());
    let new = store.keyspace("hub");
    for number in 0..20 {
        let value = |_| "new".to_owned();
        new.put(&format!("new{number}"), Expected::Any, value)
            .await
            .unwrap();
    }
    // Of the old one there is still a handle, through which there is much to be removed.
    old.compact(old.revision());
    assert!(
        old.put("old", Expected::Any, |_| "older".to_owned())
            .await
            .is_err()
    );
    store.compact();
    let before = content(&store);
    assert_eq!(before.len(), 20);
    let revision = new.revision();
    store.close().await;
    let store = open(directory.path()).unwrap();
    assert_eq!(content(&store), before);
    assert_eq!(store.keyspace("hub").revision(), revision);
    store.close().await;
}

#[test]
fn a_file_in_place_of_the_directory_is_refused() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("data");
    fs::write(&path, "precious").unwrap();
    let error = open(&path).unwrap_err();
    assert!(matches!(error, OpenError::NotADirectory { .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"precious");
}

#[test]
fn a_directory_with_other_files_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("thesis.tex"), "precious").unwrap();
    check_refused(
        directory.path(),
        "DIR is not a data directory: it holds \"thesis.tex\"; give an empty or a new one",
    );
}

#[test]
fn a_later_format_is_refused() {
    check(
        |path| fs::write(path.join("STORE"), "bellwether store, format 2\n").unwrap(),
        "DIR has data format 2, and this version reads only 1; use a newer version",
    );
}

#[test]
fn a_missing_or_damaged_marker_is_refused() {
    let damaged = "the data in DIR is damaged: the file STORE does not say what it should";
    check(|path| fs::write(path.join("STORE"), "").unwrap(), damaged);
    check(
        |path| fs::write(path.join("STORE"), "bellwether").unwrap(),
        damaged,
    );
    check(
        |path| fs::write(path.join("STORE"), [0xff; 1000]).unwrap(),
        damaged,
    );
    check(
        |path| fs::remove_file(path.join("STORE")).unwrap(),
        "the data in DIR is damaged: the file STORE is missing",
    );
}

#[test]
fn a_missing_or_foreign_database_is_refused() {
    check(
        |path| fs::remove_file(path.join("store.redb")).unwrap(),
        "the data in DIR is damaged: the database file is missing",
    );
    check(
        |path| fs::write(path.join("store.redb"), "").unwrap(),
        "the data in DIR/store.redb is damaged: the file is empty",
    );
    for foreign in ["short".to_owned(), "SQLite format 3\0".repeat(1000)] {
        let directory = written();
        fs::write(directory.path().join("store.redb"), foreign).unwrap();
        let before = files(directory.path());
        let error = open(directory.path()).unwrap_err();
        assert!(matches!(error, OpenError::Corrupt { .. }), "{error:?}");
        assert!(files(directory.path()) == before);
    }
}

#[test]
fn a_database_without_our_tables_is_refused() {
    check(
        |path| {
            let path = path.join("store.redb");
            fs::remove_file(&path).unwrap();
            drop(redb::Database::create(path).unwrap());
        },
        "the data in DIR/store.redb is damaged: Table 'keyspaces' does not exist",
    );
}

#[test]
fn a_truncated_database_is_refused() {
    let length = fs::metadata(written().path().join("store.redb"))
        .unwrap()
        .len();
    let length = usize::try_from(length).unwrap();
    for kept in [1, 100, 511, 4096, length / 2, length - 4096, length - 1] {
        let directory = written();
        change(directory.path(), "store.redb", |bytes| bytes.truncate(kept));
        let before = files(directory.path());
        let error = open(directory.path()).unwrap_err();
        assert!(
            matches!(error, OpenError::Corrupt { .. }),
            "{kept}: {error:?}"
        );
        assert!(files(directory.path()) == before, "{kept}: changed");
    }
}

#[test]
fn a_damaged_byte_is_noticed_or_does_not_matter() {
    let directory = written();
    let path = directory.path();
    let store = open(path).unwrap();
    let expected = content(&store);
    block_on(store.close());
    let sound = fs::read(path.join("store.redb")).unwrap();
    // Every byte that says anything, or a good part of them: unused space is zero.
    let used = (0..sound.len()).filter(|at| sound[*at] != 0);
    let mut noticed = 0;
    for at in used.step_by(151) {
        change(path, "store.redb", |bytes| bytes[at] ^= 0x55);
        let before = files(path);
        match open(path) {
            Ok(store) => {
                assert!(content(&store) == expected, "byte {at} changed the content");
                block_on(store.close());
            }
            Err(error) => {
                noticed += 1;
                assert!(
                    matches!(error, OpenError::Corrupt { .. }),
                    "byte {at}: {error:?}"
                );
                assert!(
                    files(path) == before,
                    "byte {at}: the directory has changed"
                );
            }
        }
        fs::write(path.join("store.redb"), &sound).unwrap();
    }
    assert!(noticed > 50, "only {noticed} damages were noticed");
}

#[test]
fn a_value_that_cannot_be_read_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path(), Options::default()).unwrap();
    block_on(async {
        let bytes = |_| Bytes::from_static(&[0xff]);
        let keyspace = store.keyspace("hub");
        keyspace.put("a/key", Expected::Any, bytes).await.unwrap();
        store.close().await;
    });
    check_refused(
        directory.path(),
        "the value of \"a/key\" in keyspace \"hub\" in DIR/store.redb cannot be read",
    );
}

#[test]
fn an_interrupted_creation_is_completed() {
    let marker = "bellwether store, format 1\n";
    for (marker, database) in [
        ("", None),
        ("bellwether st", None),
        ("", Some("")),
        ("", Some("half a database")),
        (marker, Some("half a database")),
    ] {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("STORE"), marker).unwrap();
        if let Some(database) = database {
            fs::write(directory.path().join("store.redb.new"), database).unwrap();
        }
        let store = open(directory.path()).unwrap();
        assert!(store.keyspaces().is_empty());
        block_on(store.close());
        block_on(open(directory.path()).unwrap().close());
    }
}

#[test]
fn a_second_store_on_the_directory_is_refused() {
    let directory = written();
    let store = open(directory.path()).unwrap();
    let error = open(directory.path()).unwrap_err();
    assert!(matches!(error, OpenError::Locked { .. }), "{error}");
    block_on(async {
        let kept = store.keyspace("hub");
        kept.put("key", Expected::Any, |_| "value".to_owned())
            .await
            .unwrap();
        store.close().await;
    });
    block_on(open(directory.path()).unwrap().close());
}

#[test]
fn a_second_process_on_the_directory_is_refused() {
    const TEST: &str = "directory::a_second_process_on_the_directory_is_refused";
    if let Some(path) = std::env::var_os("STORE_SECOND_PROCESS") {
        let error = open(Path::new(&path)).unwrap_err();
        assert!(matches!(error, OpenError::Locked { .. }), "{error}");
        return;
    }
    let directory = written();
    let store = open(directory.path()).unwrap();
    let second = Command::new(std::env::current_exe().unwrap())
        .args([TEST, "--exact"])
        .env("STORE_SECOND_PROCESS", directory.path())
        .output()
        .unwrap();
    assert!(
        second.status.success(),
        "{}",
        String::from_utf8_lossy(&second.stdout)
    );
    block_on(store.close());
}

/// The superuser may write everywhere, so the directory is opened by somebody else.
#[cfg(unix)]
#[test]
fn a_directory_that_cannot_be_written_to_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;

    const TEST: &str = "directory::a_directory_that_cannot_be_written_to_is_refused";
    const NOBODY: u32 = 65534;
    if let Some(path) = std::env::var_os("STORE_READ_ONLY") {
        let path = Path::new(&path);
        for (directory, action) in [("full", "open"), ("empty", "open"), ("empty/new", "create")] {
            let error = open(&path.join(directory)).unwrap_err();
            let OpenError::Io {
                action: found,
                source,
                ..
            } = &error
            else {
                panic!("{error:?}");
            };
            assert_eq!(*found, action);
            assert_eq!(source.kind(), std::io::ErrorKind::PermissionDenied);
        }
        return;
    }
    let allow = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let parent = tempfile::tempdir().unwrap();
    let full = parent.path().join("full");
    let empty = parent.path().join("empty");
    block_on(open(&full).unwrap().close());
    fs::create_dir(&empty).unwrap();
    for file in files(&full).keys() {
        allow(file, 0o444);
    }
    let before = files(&full);
    // Where others may read it, which they may not where it was built.
    let program = parent.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    for path in [&full, &empty, &program, &parent.path().to_owned()] {
        allow(path, 0o555);
    }
    let mut command = Command::new(program);
    command
        .args([TEST, "--exact"])
        .env("STORE_READ_ONLY", parent.path())
        .current_dir("/");
    if fs::write(empty.join("probe"), "").is_ok() {
        fs::remove_file(empty.join("probe")).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert!(files(&full) == before && files(&empty).is_empty());
    for path in [parent.path(), &full, &empty] {
        allow(path, 0o755);
    }
}
