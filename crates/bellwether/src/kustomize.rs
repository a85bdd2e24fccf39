//! `bellwether kustomize …`: directories in, manifests out; what they mean is in its crate.

#![allow(
    clippy::print_stderr,
    reason = "warnings of a command go to standard error"
)]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use bellwether_kustomize::limits::MAX_FILE_BYTES;
use bellwether_kustomize::{Options, Order, Tree, build, needs};
use clap::{Args, Subcommand, ValueEnum};

/// Names of the file that makes a directory a kustomization.
const FILE_NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// Arguments of `bellwether kustomize`.
#[derive(Debug, Args)]
#[command(after_help = "Example: bellwether kustomize build examples/kustomize/overlays/prod")]
pub(crate) struct KustomizeArgs {
    #[command(subcommand)]
    command: KustomizeCommand,
}

#[derive(Debug, Subcommand)]
enum KustomizeCommand {
    /// Print the manifests of a kustomization
    #[command(after_help = "Example: bellwether kustomize build examples/kustomize/overlays/prod")]
    Build {
        /// The directory with the kustomization file
        #[arg(default_value = ".")]
        directory: PathBuf,
        /// Write to this file instead of standard output
        #[arg(short, long)]
        output: Option<PathBuf>,
        /// Which files a kustomization may name
        #[arg(long, value_enum, default_value_t = LoadRestrictor::RootOnly)]
        load_restrictor: LoadRestrictor,
        /// The order of objects, unless the kustomization has sortOptions
        #[arg(long, value_enum, default_value_t = Reorder::Legacy)]
        reorder: Reorder,
        /// Merge components, policies and workflow steps of an Application by name, and traits by
        /// type, instead of replacing these lists
        #[arg(long)]
        merge_applications: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LoadRestrictor {
    /// Files in and below the directory of the kustomization
    #[value(name = "LoadRestrictionsRootOnly")]
    RootOnly,
    /// All files
    #[value(name = "LoadRestrictionsNone")]
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Reorder {
    /// By kind, namespaces first and webhooks last
    Legacy,
    /// As they are listed
    None,
}

/// Runs a `kustomize` command.
pub(crate) fn run(arguments: &KustomizeArgs) -> anyhow::Result<()> {
    let KustomizeCommand::Build {
        directory,
        output,
        load_restrictor,
        reorder,
        merge_applications,
    } = &arguments.command;
    let options = Options {
        order: match reorder {
            Reorder::Legacy => Order::Legacy,
            Reorder::None => Order::None,
        },
        allow_outside: *load_restrictor == LoadRestrictor::None,
        merge_applications: *merge_applications,
    };
    let root = fs::canonicalize(directory)
        .with_context(|| format!("cannot open {}", directory.display()))?;
    let Some(root) = root.to_str() else {
        bail!("{} is not a UTF-8 path", root.display());
    };
    let tree = read(root, options.allow_outside)?;
    let built = build(&tree, root, options)?;
    for warning in &built.warnings {
        eprintln!("{warning}");
    }
    let text = built.to_yaml();
    if let Some(path) = output {
        return fs::write(path, text).with_context(|| format!("cannot write {}", path.display()));
    }
    let mut output = std::io::stdout().lock();
    output.write_all(text.as_bytes())?;
    Ok(output.flush()?)
}

/// Reads all local files that a build needs.
fn read(root: &str, allow_outside: bool) -> anyhow::Result<Tree> {
    let mut tree = Tree::new();
    loop {
        let missing = needs(&tree, root);
        if missing.paths.is_empty() {
            return Ok(tree);
        }
        for path in &missing.paths {
            add(&mut tree, path, allow_outside)?;
        }
    }
}

fn add(tree: &mut Tree, path: &str, allow_outside: bool) -> anyhow::Result<()> {
    let Ok(metadata) = fs::metadata(path) else {
        tree.add_absent(path);
        return Ok(());
    };
    if metadata.is_file() {
        return add_file(tree, Path::new(path), path, allow_outside);
    }
    tree.add_directory(path);
    for name in FILE_NAMES {
        let file = Path::new(path).join(name);
        if file.is_file() {
            add_file(tree, &file, &format!("{path}/{name}"), allow_outside)?;
        }
    }
    Ok(())
}

/// Adds a file. A link out of its directory would get round the restriction of paths.
fn add_file(tree: &mut Tree, file: &Path, path: &str, allow_outside: bool) -> anyhow::Result<()> {
    let is_link = fs::symlink_metadata(file).is_ok_and(|metadata| metadata.is_symlink());
    if is_link && !allow_outside {
        let parent = file.parent().unwrap_or(file);
        let inside = fs::canonicalize(parent)
            .and_then(|parent| Ok(fs::canonicalize(file)?.starts_with(parent)))
            .unwrap_or(false);
        if !inside {
            bail!(
                "security: {path} is a link to a file outside of its directory; copy the file, or \
                 use --load-restrictor LoadRestrictionsNone"
            );
        }
    }
    let length = fs::metadata(file).map_or(0, |metadata| metadata.len());
    if usize::try_from(length).map_or(true, |length| length > MAX_FILE_BYTES) {
        bail!("{path} is larger than {MAX_FILE_BYTES} bytes");
    }
    let content = fs::read(file).with_context(|| format!("cannot read {path}"))?;
    tree.add_file(path, content);
    Ok(())
}
