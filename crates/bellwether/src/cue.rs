//! `bellwether cue …`: files in, text out; the language is in its crate.

#![allow(
    clippy::print_stdout,
    reason = "results of a command go to standard output"
)]

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use bellwether_cue::cli::{self, EvalOptions, Input, Output};
use bellwether_cue::host::{Budget, Deadline};
use clap::{Args, Subcommand, ValueEnum};

/// Arguments of `bellwether cue`.
#[derive(Debug, Args)]
#[command(after_help = "Example: bellwether cue export config.cue -e app.image --out yaml")]
pub(crate) struct CueArgs {
    #[command(subcommand)]
    command: CueCommand,
}

#[derive(Debug, Subcommand)]
enum CueCommand {
    /// Print the finished value, which must be concrete
    #[command(after_help = "Example: bellwether cue export examples/cue/shop -e output --out yaml")]
    Export {
        #[command(flatten)]
        source: SourceArgs,
        /// The format of the result
        #[arg(long, value_enum, default_value_t = Format::Json)]
        out: Format,
    },
    /// Print the value as far as it is known
    #[command(after_help = "Example: bellwether cue eval -a examples/cue/shop")]
    Eval {
        #[command(flatten)]
        source: SourceArgs,
        /// Show hidden and optional fields too
        #[arg(short, long)]
        all: bool,
        /// Show attributes of fields too
        #[arg(short = 'A', long)]
        show_attributes: bool,
        /// Fail unless everything is concrete
        #[arg(short, long)]
        concrete: bool,
        /// The format of the result instead of CUE
        #[arg(long, value_enum)]
        out: Option<Format>,
    },
    /// Check sources, or data files against sources
    #[command(after_help = "Example: bellwether cue vet schema.cue values.yaml -d '#App'")]
    Vet {
        #[command(flatten)]
        source: SourceArgs,
        /// Show what is not concrete; `-c=false` allows it
        #[arg(
            short,
            long,
            num_args = 0..=1,
            require_equals = true,
            default_missing_value = "true"
        )]
        concrete: Option<bool>,
        /// What data files have to satisfy, instead of the whole package
        #[arg(short = 'd', long)]
        schema: Option<String>,
    },
    /// Format files in place, or standard input
    #[command(after_help = "Example: bellwether cue fmt --check definitions/")]
    Fmt {
        /// Files or directories; `-` for standard input
        #[arg(default_value = ".")]
        files: Vec<PathBuf>,
        /// Only list the files that would change, and fail if there are any
        #[arg(long)]
        check: bool,
    },
    /// Print the sources of a package as one, or the constraints of an expression
    #[command(after_help = "Example: bellwether cue def examples/cue/shop")]
    Def {
        #[command(flatten)]
        source: SourceArgs,
    },
}

/// What the commands read.
#[derive(Debug, Args)]
struct SourceArgs {
    /// Files, a directory as a package, or `-` for standard input
    #[arg(default_value = ".")]
    files: Vec<PathBuf>,
    /// Evaluate this expression instead of the whole value; may be repeated
    #[arg(short, long = "expression")]
    expression: Vec<String>,
    /// A value for a @tag attribute, name=value, or a name that @if selects files by
    #[arg(short = 't', long = "inject")]
    tag: Vec<String>,
    /// The package to take when there are several
    #[arg(short, long)]
    package: Option<String>,
    /// Give up after this many seconds
    #[arg(long, default_value_t = 60)]
    timeout: u64,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Json,
    Yaml,
    Cue,
    Text,
}

impl From<Format> for Output {
    fn from(format: Format) -> Self {
        match format {
            Format::Json => Output::Json,
            Format::Yaml => Output::Yaml,
            Format::Cue => Output::Cue,
            Format::Text => Output::Text,
        }
    }
}

/// Runs a `cue` command.
pub(crate) fn run(arguments: CueArgs) -> anyhow::Result<()> {
    let text = match arguments.command {
        CueCommand::Export { source, out } => cli::export(&read(source)?, out.into()),
        CueCommand::Eval {
            source,
            all,
            show_attributes,
            concrete,
            out,
        } => {
            let options = EvalOptions {
                all,
                attributes: show_attributes,
                concrete,
                output: out.map(Into::into),
            };
            cli::eval(&read(source)?, options)
        }
        CueCommand::Vet {
            source,
            concrete,
            schema,
        } => {
            let input = Input {
                schema,
                ..read(source)?
            };
            cli::vet(&input, concrete).map(|()| String::new())
        }
        CueCommand::Def { source } => cli::def(&read(source)?),
        CueCommand::Fmt { files, check } => return format(&files, check),
    };
    match text {
        Ok(text) => write_out(&text),
        Err(failure) => bail!("{}", failure.to_string().trim_end()),
    }
}

fn write_out(text: &str) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()?;
    Ok(())
}

fn read(source: SourceArgs) -> anyhow::Result<Input> {
    let mut files = Vec::new();
    for path in &source.files {
        for file in expand(path, &["cue"])? {
            files.push((file.display().to_string(), read_file(&file)?));
        }
    }
    Ok(Input {
        files,
        package: source.package,
        tags: source.tag,
        expressions: source.expression,
        schema: None,
        budget: Budget::default(),
        deadline: Some(deadline(Duration::from_secs(source.timeout))),
    })
}

/// The end of the time an evaluation may take, counted from now.
#[expect(
    clippy::disallowed_methods,
    reason = "the clock is read here and handed to the engine, which has none"
)]
fn deadline(timeout: Duration) -> Deadline {
    let start = Instant::now();
    Deadline::new(move || start.elapsed() > timeout)
}

/// A directory stands for its files with one of the endings, sorted by name.
fn expand(path: &Path, endings: &[&str]) -> anyhow::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path).with_context(|| format!("reading {}", path.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let file = entry
            .with_context(|| format!("reading {}", path.display()))?
            .path();
        let ending = file.extension().and_then(|ending| ending.to_str());
        if file.is_file() && ending.is_some_and(|ending| endings.contains(&ending)) {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        bail!("no CUE files in {}", path.display());
    }
    Ok(files)
}

fn read_file(path: &Path) -> anyhow::Result<String> {
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .context("reading standard input")?;
        return Ok(text);
    }
    std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
}

fn format(paths: &[PathBuf], check: bool) -> anyhow::Result<()> {
    let mut changed = Vec::new();
    for path in paths {
        for file in expand(path, &["cue"])? {
            let name = file.display().to_string();
            let text = read_file(&file)?;
            let formatted = match cli::fmt(&name, &text) {
                Ok(formatted) => formatted,
                Err(failure) => bail!("{}", failure.to_string().trim_end()),
            };
            if file == Path::new("-") {
                write_out(&formatted)?;
            } else if formatted != text {
                if !check {
                    std::fs::write(&file, formatted).with_context(|| format!("writing {name}"))?;
                }
                changed.push(name);
            }
        }
    }
    if check && !changed.is_empty() {
        write_out(&format!("{}\n", changed.join("\n")))?;
        bail!("{} files are not formatted", changed.len());
    }
    Ok(())
}
