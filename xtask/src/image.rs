//! `cargo xtask image`: an OCI image of the binary, without a container engine.

mod build;
mod elf;
mod oci;
mod sbom;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use crate::run::{root, say};
use build::{buildable, this_architecture};
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
    /// Architectures: amd64, arm64; all that this machine can build for if none is given.
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
    let architectures = match &*arguments.arch {
        [] if arguments.binary.is_some() => vec![this_architecture().to_owned()],
        [] => buildable()?,
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
        let (program, labels) = match &arguments.binary {
            Some(path) => given(path, &architecture)?,
            None => (build::program(&architecture)?, labels()),
        };
        let files = files(program, arguments.ca_bundle.as_deref())?;
        let image = Image {
            architecture,
            files,
            labels,
            sbom: sbom.clone(),
        };
        let digest = layout.add(&image)?;
        say(&format!("{} {digest}", image.architecture));
    }
    let output = root().join(&arguments.output);
    let archive = layout.into_archive(&arguments.tag)?;
    fs::write(&output, &archive).with_context(|| format!("cannot write {}", output.display()))?;
    say(&format!(
        "{} sha256:{}",
        output.display(),
        oci::hex(&archive)
    ));
    Ok(())
}

/// Reads a program that was built before, which may be linked dynamically: returns it, and the labels of its image.
fn given(path: &Path, architecture: &str) -> anyhow::Result<(Vec<u8>, BTreeMap<String, String>)> {
    let program = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut labels = labels();
    if let Some(interpreter) = elf::interpreter(&program)? {
        say(&format!(
            "warning: {} is linked dynamically and needs {interpreter}: put this image on a base with the glibc of this machine, such as \
             distroless/base, or install the target with `rustup target add {}`",
            path.display(),
            build::musl(architecture)?
        ));
        labels.insert("dev.bellwether.needs".to_owned(), interpreter);
    }
    Ok((program, labels))
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
