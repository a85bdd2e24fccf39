//! Lists the examples that have a script, with all their files, so that they become part of the binary.

#![expect(
    clippy::disallowed_methods,
    reason = "Cargo tells build scripts by variables where they write"
)]
#![allow(clippy::print_stdout, reason = "build scripts print to Cargo")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The file that makes a folder an example that can be played.
const SCRIPT: &str = "script.yaml";

fn main() -> io::Result<()> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?)
        .join("../../examples")
        .canonicalize()?;
    println!("cargo::rerun-if-changed={}", root.display());
    let mut folders: Vec<PathBuf> = fs::read_dir(&root)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    folders.retain(|folder| folder.join(SCRIPT).is_file());
    folders.sort();
    let mut list = String::from("&[\n");
    for folder in folders {
        println!("cargo::rerun-if-changed={}", folder.display());
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let _ = writeln!(
            list,
            "    Example {{ name: Cow::Borrowed({name:?}), files: Cow::Borrowed(&["
        );
        let mut files = Vec::new();
        find(&folder, &mut files)?;
        files.sort();
        for file in files {
            println!("cargo::rerun-if-changed={}", file.display());
            let path = file.strip_prefix(&folder).map_err(io::Error::other)?;
            let path = path.to_string_lossy();
            let _ = writeln!(
                list,
                "        (Cow::Borrowed({path:?}), Cow::Borrowed(include_str!({:?}))),",
                file.to_string_lossy()
            );
        }
        list.push_str("    ]) },\n");
    }
    list.push_str("]\n");
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(Path::new(&out).join("examples.rs"), list)
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
