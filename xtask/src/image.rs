//! `cargo xtask image`: an OCI image of the binary, without a container engine.

mod elf;
mod oci;
mod sbom;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use crate::run::{cargo, root, say};
use oci::{File, Image, Layout, USER};

/// Where the program is in the image.
const PROGRAM: &str = "usr/bin/bellwether";

/// What to build.
#[derive(Debug, Args)]
pub(crate) struct ImageArgs {
    /// The archive to write.
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value = "target/bellwether-image.tar"
    )]
    output: PathBuf,
    /// Architectures: amd64, arm64; that of this machine if none is given.
    #[arg(long, value_name = "ARCH")]
    arch: Vec<String>,
    /// A binary that was built before, instead of building one; for one architecture.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Certificates of authorities that the hub trusts when it fetches charts and repositories, in PEM.
    #[arg(long, value_name = "FILE")]
    ca_bundle: Option<PathBuf>,
    /// The tag of the image.
    #[arg(long, value_name = "TAG", default_value = concat!("bellwether:", env!("CARGO_PKG_VERSION")))]
    tag: String,
}

pub(crate) fn image(arguments: &ImageArgs) -> anyhow::Result<()> {
    let here = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        _ => "amd64",
    };
    let architectures = match &*arguments.arch {
        [] => vec![here.to_owned()],
        given => given.to_vec(),
    };
    anyhow::ensure!(
        arguments.binary.is_none() || architectures.len() == 1,
        "--binary is for one architecture"
    );
    let lock = fs::read_to_string(root().join("Cargo.lock")).context("cannot read Cargo.lock")?;
    let sbom = sbom::spdx(&lock, "bellwether")?;
    let mut layout = Layout::default();
    for architecture in architectures {
        let path = match &arguments.binary {
            Some(path) => path.clone(),
            None => build(&architecture, here)?,
        };
        let program = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut labels = labels();
        if let Some(interpreter) = elf::interpreter(&program)? {
            say(&format!(
                "warning: {} is linked dynamically and needs {interpreter}: put this image on a base with the glibc of this machine, such as \
                 distroless/base, or install the target with `rustup target add {}`",
                path.display(),
                musl(&architecture)?
            ));
            labels.insert("dev.bellwether.needs".to_owned(), interpreter);
        }
        let files = files(program, arguments.ca_bundle.as_deref())?;
        let image = Image {
            architecture,
            files,
            labels,
            sbom: sbom.clone(),
        };
        let digest = layout.add(&image, &arguments.tag)?;
        say(&format!("{} {digest}", image.architecture));
    }
    let output = root().join(&arguments.output);
    let archive = layout.to_archive()?;
    fs::write(&output, &archive).with_context(|| format!("cannot write {}", output.display()))?;
    say(&format!(
        "{} sha256:{}",
        output.display(),
        oci::hex(&archive)
    ));
    Ok(())
}

fn labels() -> BTreeMap<String, String> {
    [
        ("org.opencontainers.image.title", "bellwether"),
        (
            "org.opencontainers.image.version",
            env!("CARGO_PKG_VERSION"),
        ),
        ("org.opencontainers.image.licenses", "Apache-2.0"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into()
}

fn files(program: Vec<u8>, ca_bundle: Option<&Path>) -> anyhow::Result<Vec<File>> {
    let file = |path: &str, mode: u32, content: Vec<u8>| File {
        path: path.to_owned(),
        mode,
        content,
    };
    let user = format!("nonroot:x:{USER}:{USER}:nonroot:/tmp:/nonexistent\n");
    let mut files = vec![
        file(PROGRAM, 0o755, program),
        file("etc/passwd", 0o644, user.into_bytes()),
    ];
    if let Some(path) = ca_bundle {
        let bundle = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        files.push(file("etc/ssl/certs/ca-certificates.crt", 0o644, bundle));
    }
    Ok(files)
}

fn musl(architecture: &str) -> anyhow::Result<&'static str> {
    match architecture {
        "amd64" => Ok("x86_64-unknown-linux-musl"),
        "arm64" => Ok("aarch64-unknown-linux-musl"),
        other => anyhow::bail!("there are images for amd64 and arm64, not for {other}"),
    }
}

/// Builds the program for an architecture, statically: with musl if that target is installed, else with the static libraries of
/// glibc, which only this machine's architecture has. Returns where it is.
fn build(architecture: &str, here: &str) -> anyhow::Result<PathBuf> {
    let musl = musl(architecture)?;
    let glibc = format!(
        "{}-unknown-linux-gnu",
        musl.split('-').next().unwrap_or_default()
    );
    let target = match (is_target(musl)?, architecture == here) {
        (true, _) => musl.to_owned(),
        (false, true) => glibc,
        (false, false) => {
            anyhow::bail!("{musl} is not installed: `rustup target add {musl}` installs it")
        }
    };
    let remap = format!("--remap-path-prefix={}=.", root().display());
    let flags = format!("-Ctarget-feature=+crt-static\u{1f}{remap}");
    let status = cargo(&[
        "build",
        "--release",
        "--locked",
        "-p",
        "bellwether",
        "--target",
        &target,
    ])
    .env("CARGO_ENCODED_RUSTFLAGS", flags)
    .status()
    .context("cannot run cargo")?;
    anyhow::ensure!(status.success(), "the binary for {target} cannot be built");
    Ok(root()
        .join("target")
        .join(target)
        .join("release/bellwether"))
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
