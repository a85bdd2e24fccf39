//! Embeds the definitions of `definitions/`: every file of it becomes an entry of `SOURCES`.

#![allow(
    clippy::disallowed_methods,
    reason = "cargo tells a build script its folders by variables and has no other way"
)]

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root =
        Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../../definitions");
    println!("cargo::rerun-if-changed={}", root.display());
    let mut list = String::from(
        "/// The files of `definitions/`: folder, name, source and example.\npub(crate) static SOURCES: &[(&str, &str, &str, Option<&str>)] = &[\n",
    );
    for folder in ["components", "traits", "policies", "steps"] {
        let directory = root.join(folder);
        println!("cargo::rerun-if-changed={}", directory.display());
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        let mut files = entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<Vec<_>, _>>()?;
        files.sort();
        for file in files {
            let Some(name) = file.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            if let Some(name) = name.strip_suffix(".cue") {
                let path = fs::canonicalize(&file)?;
                let example = path.with_extension("yaml");
                let example = if example.exists() {
                    format!("Some(include_str!({:?}))", example.display().to_string())
                } else {
                    "None".to_owned()
                };
                let path = path.display().to_string();
                let _ = writeln!(
                    list,
                    "    ({folder:?}, {name:?}, include_str!({path:?}), {example}),"
                );
            }
        }
    }
    list.push_str("];\n");
    fs::write(
        Path::new(&env::var("OUT_DIR").unwrap_or_default()).join("sources.rs"),
        list,
    )
}
