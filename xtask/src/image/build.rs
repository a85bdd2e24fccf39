//! Builds the program of an image: linked statically, the same bytes wherever it is built, and tried once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use super::elf;
use crate::run::{cargo, is_installed, root, say};

/// The architectures that there are images for, as OCI names them.
const ARCHITECTURES: [&str; 2] = ["amd64", "arm64"];

/// The architecture of this machine.
pub(super) fn this_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "aarch64" => "arm64",
        _ => "amd64",
    }
}

/// Returns the architectures that this machine can build for: its own, and others whose target and C compiler are installed.
pub(super) fn buildable() -> anyhow::Result<Vec<String>> {
    let mut found = vec![this_architecture().to_owned()];
    for other in ARCHITECTURES
        .into_iter()
        .filter(|it| *it != this_architecture())
    {
        let target = musl(other)?;
        if !is_target(target)? {
            continue;
        }
        match compiler(target) {
            Some(_) => found.push(other.to_owned()),
            None => say(&format!(
                "{other} is left out: {target} is installed, but there is no C compiler for it ({})",
                compilers(target).join(", ")
            )),
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the target of musl for an architecture.
pub(super) fn musl(architecture: &str) -> anyhow::Result<&'static str> {
    match architecture {
        "amd64" => Ok("x86_64-unknown-linux-musl"),
        "arm64" => Ok("aarch64-unknown-linux-musl"),
        other => anyhow::bail!("there are images for amd64 and arm64, not for {other}"),
    }
}

/// Builds the program for an architecture, statically: with musl if that target is installed, else with the static libraries of
/// glibc, which only this machine's architecture has. Returns its bytes.
pub(super) fn program(architecture: &str) -> anyhow::Result<Vec<u8>> {
    let is_own = architecture == this_architecture();
    let musl = musl(architecture)?;
    let processor = musl.split('-').next().unwrap_or_default();
    let target = match (is_target(musl)?, is_own) {
        (true, _) => musl.to_owned(),
        (false, true) => format!("{processor}-unknown-linux-gnu"),
        (false, false) => {
            anyhow::bail!("{musl} is not installed: `rustup target add {musl}` installs it")
        }
    };
    let path = compile(&target, is_own)?;
    let program = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    if let Some(interpreter) = elf::interpreter(&program)? {
        anyhow::bail!(
            "{} is linked dynamically and needs {interpreter}, which the image does not have",
            path.display()
        );
    }
    if is_own {
        let output = Command::new(&path).arg("version").output();
        let output = output.with_context(|| format!("cannot run {}", path.display()))?;
        anyhow::ensure!(
            output.status.success(),
            "{} version: {}\n{}",
            path.display(),
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(program)
}

/// Runs cargo, and returns where the program is.
fn compile(target: &str, is_own: bool) -> anyhow::Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let home = variable("CARGO_HOME").or_else(|| Some(variable("HOME")?.join(".cargo")));
    let mut command = cargo(&["build", "--release", "--locked", "-p", "bellwether"]);
    command.args(["--target", target]).env(
        "CARGO_ENCODED_RUSTFLAGS",
        flags(target, &root(), home.as_deref()).join("\u{1f}"),
    );
    if !is_own {
        let compiler = compiler(target).with_context(|| {
            let known = compilers(target).join(", ");
            format!("there is no C compiler for {target}: install one of {known}")
        })?;
        let upper = target.to_uppercase().replace('-', "_");
        command
            .env(format!("CC_{}", target.replace('-', "_")), &compiler)
            .env(format!("CARGO_TARGET_{upper}_LINKER"), &compiler);
    }
    let status = command.status().context("cannot run cargo")?;
    anyhow::ensure!(status.success(), "the binary for {target} cannot be built");
    // A relative path is one from the root: that is where cargo runs.
    let folder = variable("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    Ok(root().join(folder).join(target).join("release/bellwether"))
}

/// Returns the flags of the compiler. Paths of this machine are replaced, so that two builds in different folders are the same.
fn flags(target: &str, root: &Path, cargo_home: Option<&Path>) -> Vec<String> {
    let mut flags = vec!["-Ctarget-feature=+crt-static".to_owned()];
    // The program is linked at a fixed address (crates/bellwether/build.rs). Code that expects to be moved would ask for a loader
    // nevertheless, which a static program of glibc cannot be started by.
    if target.ends_with("-gnu") {
        flags.push("-Crelocation-model=static".to_owned());
    }
    // The last one that fits counts: the folder of cargo may be in the repository.
    flags.push(format!("--remap-path-prefix={}=.", root.display()));
    if let Some(home) = cargo_home {
        flags.push(format!("--remap-path-prefix={}=cargo", home.display()));
    }
    flags
}

/// The names that the C compiler of a target may have.
fn compilers(target: &str) -> Vec<String> {
    let processor = target.split('-').next().unwrap_or_default();
    vec![
        format!("{processor}-linux-musl-gcc"),
        format!("{processor}-linux-gnu-gcc"),
    ]
}

fn compiler(target: &str) -> Option<String> {
    let mut known = compilers(target).into_iter();
    known.find(|name| is_installed(name, &["--version"]))
}

/// Whether a target is installed.
fn is_target(target: &str) -> anyhow::Result<bool> {
    let output = crate::run::program("rustc", &["--print", "sysroot"]).output();
    let sysroot = String::from_utf8(output.context("cannot run rustc")?.stdout)?;
    Ok(Path::new(sysroot.trim())
        .join("lib/rustlib")
        .join(target)
        .join("lib")
        .exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(target: &str, expected: &[&str]) {
        let flags = flags(
            target,
            Path::new("/src/b"),
            Some(Path::new("/home/a/.cargo")),
        );
        assert_eq!(flags, expected, "{target}");
    }

    #[test]
    fn a_program_of_glibc_is_not_moved_by_a_loader() {
        let paths = [
            "--remap-path-prefix=/src/b=.",
            "--remap-path-prefix=/home/a/.cargo=cargo",
        ];
        check(
            "x86_64-unknown-linux-musl",
            &["-Ctarget-feature=+crt-static", paths[0], paths[1]],
        );
        check(
            "x86_64-unknown-linux-gnu",
            &[
                "-Ctarget-feature=+crt-static",
                "-Crelocation-model=static",
                paths[0],
                paths[1],
            ],
        );
    }

    /// The same program, compiled in two folders with the flags of each, is the same to the byte, and runs.
    #[test]
    fn programs_that_are_built_in_different_folders_are_the_same() {
        let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let build = |name: &str| {
            let folder = format!("bellwether-image-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(folder);
            let (root, home) = (folder.join(name), folder.join("home"));
            for (path, text) in [
                (root.join("main.rs"), "fn main() { dependency::place(); }"),
                (
                    home.join("dependency.rs"),
                    "pub fn place() { println!(\"{}\", std::panic::Location::caller().file()); }",
                ),
            ] {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            let compile = |source: &Path, more: &[&str]| {
                let mut rustc = Command::new("rustc");
                rustc.args(["--edition", "2024", "-O"]).args(more);
                rustc.args(flags(&target, &root, Some(&home)));
                let done = rustc.arg(source).current_dir(&root).status().unwrap();
                assert!(done.success());
            };
            compile(
                &home.join("dependency.rs"),
                &["--crate-type", "rlib", "--crate-name", "dependency"],
            );
            compile(
                &root.join("main.rs"),
                &[
                    "--extern",
                    "dependency=libdependency.rlib",
                    "-Clink-arg=-no-pie",
                    "-Cstrip=symbols",
                    "-o",
                    "program",
                ],
            );
            let program = fs::read(root.join("program")).unwrap();
            let ran = Command::new(root.join("program")).output().unwrap();
            assert!(ran.status.success(), "{ran:?}");
            assert_eq!(elf::interpreter(&program).unwrap(), None);
            fs::remove_dir_all(folder).unwrap();
            (program, String::from_utf8(ran.stdout).unwrap())
        };
        if !Path::new("/usr/lib/x86_64-linux-gnu/libc.a").exists() {
            return;
        }
        let (one, other) = (build("one"), build("another"));
        assert_eq!(one.1, "cargo/dependency.rs\n");
        assert!(one.0 == other.0, "the bytes differ");
    }
}
