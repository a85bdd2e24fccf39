//! `bellwether helm …`: charts in, manifests out; what they mean is in its crate.

#![allow(
    clippy::print_stderr,
    reason = "warnings of a command go to standard error"
)]

mod compatible;
mod naming;
mod output;
mod show;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use bellwether_helm::{
    Chart, Finding, NoCluster, Release, Request, Severity, Templated, ValueSources, lint,
    lint_metadata, template,
};
use bellwether_template::World;
use clap::{Args, Subcommand};
use ring::rand::{SecureRandom as _, SystemRandom};

/// Bytes that all files of a chart may have together.
const MAX_CHART_BYTES: u64 = 100 * 1024 * 1024;

/// Directories inside of a chart beyond this depth are refused.
const MAX_DEPTH: usize = 64;

/// Arguments of `bellwether helm`.
#[derive(Debug, Args)]
#[command(after_help = "Example: bellwether helm template shop examples/helm/shop")]
pub(crate) struct HelmArgs {
    #[command(subcommand)]
    command: HelmCommand,
}

#[derive(Debug, Subcommand)]
enum HelmCommand {
    /// Print the manifests of a chart
    #[command(
        after_help = "Example: bellwether helm template shop examples/helm/shop --set replicas=3"
    )]
    Template(Box<TemplateArgs>),
    /// Check a chart and render it
    #[command(after_help = "Example: bellwether helm lint examples/helm/shop --strict")]
    Lint(Box<LintArgs>),
    /// Print parts of a chart
    #[command(after_help = "Example: bellwether helm show values examples/helm/shop")]
    Show {
        /// What to print
        #[arg(value_enum)]
        part: show::Part,
        /// The directory or archive of the chart
        chart: PathBuf,
        /// Print only the values at this JSONPath; with `values`
        #[arg(long)]
        jsonpath: Option<String>,
    },
}

/// Arguments of `bellwether helm template`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
struct TemplateArgs {
    /// The name of the release, if two arguments are given; otherwise the chart
    name_or_chart: String,
    /// The directory or archive of the chart
    chart: Option<PathBuf>,
    #[command(flatten)]
    values: ValueArgs,
    #[command(flatten)]
    release: ReleaseArgs,
    /// Print only what these templates make; may be repeated
    #[arg(short, long)]
    show_only: Vec<String>,
    /// Print the definitions in crds/, too
    #[arg(long)]
    include_crds: bool,
    /// Leave hooks out
    #[arg(long)]
    no_hooks: bool,
    /// Leave hooks of tests out
    #[arg(long)]
    skip_tests: bool,
    /// Set .Release.IsUpgrade instead of .Release.IsInstall
    #[arg(long)]
    is_upgrade: bool,
    /// Generate a name for the release
    #[arg(short, long, conflicts_with = "name_template")]
    generate_name: bool,
    /// A template for the name of the release
    #[arg(long)]
    name_template: Option<String>,
    /// Write each template's manifests to a file in this directory instead of standard output
    #[arg(long)]
    output_dir: Option<PathBuf>,
    /// Put the name of the release between the output directory and the chart
    #[arg(long, requires = "output_dir")]
    release_name: bool,
    #[command(flatten)]
    compatible: compatible::CompatibleArgs,
}

/// Arguments of `bellwether helm lint`.
#[derive(Debug, Args)]
struct LintArgs {
    /// The directories or archives of charts
    #[arg(default_value = ".")]
    charts: Vec<PathBuf>,
    #[command(flatten)]
    values: ValueArgs,
    #[command(flatten)]
    release: ReleaseArgs,
    /// Fail on warnings, too
    #[arg(long)]
    strict: bool,
    /// Print warnings and errors only
    #[arg(long)]
    quiet: bool,
    /// Check the charts in charts/, too
    #[arg(long)]
    with_subcharts: bool,
}

/// Values beside those of the chart.
#[derive(Debug, Args)]
struct ValueArgs {
    /// A file of values, or `-` for standard input; may be repeated, later ones win
    #[arg(short = 'f', long = "values", value_delimiter = ',')]
    files: Vec<PathBuf>,
    /// Set values: key1=value1,key2=value2
    #[arg(long)]
    set: Vec<String>,
    /// Set values that are texts
    #[arg(long)]
    set_string: Vec<String>,
    /// Set values that are JSON
    #[arg(long)]
    set_json: Vec<String>,
    /// Set a value to all that follows, commas too
    #[arg(long)]
    set_literal: Vec<String>,
    /// Set values to the contents of files: key=path
    #[arg(long)]
    set_file: Vec<String>,
}

/// The values that templates get.
#[derive(Debug, Args)]
struct ReleaseArgs {
    /// The namespace of the release
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// The version of Kubernetes
    #[arg(long, default_value = "v1.35.0")]
    kube_version: String,
    /// API versions of the cluster beside the usual ones; may be repeated
    #[arg(short, long, value_delimiter = ',')]
    api_versions: Vec<String>,
    /// Do not check values against values.schema.json
    #[arg(long)]
    skip_schema_validation: bool,
}

/// Runs a `helm` command.
pub(crate) fn run(arguments: &HelmArgs) -> anyhow::Result<()> {
    match &arguments.command {
        HelmCommand::Template(arguments) => run_template(arguments),
        HelmCommand::Lint(arguments) => run_lint(arguments),
        HelmCommand::Show {
            part,
            chart,
            jsonpath,
        } => {
            if jsonpath.is_some() && *part != show::Part::Values {
                bail!("--jsonpath chooses among values: use `helm show values`");
            }
            write_out(&show::text(*part, jsonpath.as_deref(), &load(chart)?)?)
        }
    }
}

fn run_template(arguments: &TemplateArgs) -> anyhow::Result<()> {
    arguments.compatible.check()?;
    let (name, path) = match &arguments.chart {
        Some(_) if arguments.generate_name || arguments.name_template.is_some() => {
            bail!("a name is given: leave it out, or --generate-name and --name-template")
        }
        Some(chart) => (Some(arguments.name_or_chart.clone()), chart.clone()),
        None => (None, PathBuf::from(&arguments.name_or_chart)),
    };
    let values = arguments.values.sources()?.merge()?;
    let (chart, world) = (load(&path)?, world()?);
    let name = match (name, &arguments.name_template) {
        (Some(name), _) => name,
        (None, Some(text)) => naming::from_template(text, &world)?,
        (None, None) if arguments.generate_name => naming::generated(chart.name(), &world),
        (None, None) => Request::default().name,
    };
    let request = Request {
        name,
        show_only: arguments.show_only.clone(),
        include_crds: arguments.include_crds,
        no_hooks: arguments.no_hooks,
        skip_tests: arguments.skip_tests,
        is_upgrade: arguments.is_upgrade,
        ..arguments.release.request()
    };
    let release = match template(&chart, &values, &request, &world)? {
        Templated::Release(release) => release,
        Templated::Needs(queries) => bail!("templates look up {} objects", queries.len()),
    };
    for warning in &release.warnings {
        eprintln!("{warning}");
    }
    write_out(&arguments.written(&release, &request)?)
}

impl TemplateArgs {
    /// Writes files if that is asked for; returns what to print.
    fn written(&self, release: &Release, request: &Request) -> anyhow::Result<String> {
        let Some(directory) = &self.output_dir else {
            return Ok(release.to_text(request)?);
        };
        let directory = if self.release_name {
            directory.join(&request.name)
        } else {
            directory.clone()
        };
        output::write_files(&directory, release, request)
    }
}

fn run_lint(arguments: &LintArgs) -> anyhow::Result<()> {
    let mut charts = Vec::new();
    for path in &arguments.charts {
        charts.push(path.clone());
        if arguments.with_subcharts {
            charts.extend(subcharts(path)?);
        }
    }
    let mut text = String::new();
    let mut failed = 0;
    for path in &charts {
        failed += usize::from(!arguments.lint_one(path, &mut text)?);
        text.push('\n');
    }
    let summary = format!("{} chart(s) linted, {failed} chart(s) failed", charts.len());
    if failed > 0 {
        write_out(&text)?;
        bail!("{summary}");
    }
    write_out(&format!("{text}{summary}\n"))
}

impl LintArgs {
    /// Adds the findings about one chart; returns false if they are too bad.
    fn lint_one(&self, path: &Path, text: &mut String) -> anyhow::Result<bool> {
        text.extend(["==> Linting ", &path.display().to_string(), "\n"]);
        let values = self.values.sources()?.merge()?;
        // An archive has been checked when it was made.
        let metadata = fs::read_to_string(path.join("Chart.yaml")).unwrap_or_default();
        let mut findings = match metadata.as_str() {
            "" => Vec::new(),
            metadata => lint_metadata(metadata),
        };
        match load(path) {
            Ok(chart) => {
                let request = self.release.request();
                findings.extend(lint(&chart, &values, &request, &world()?));
            }
            Err(error) => findings.push(Finding {
                severity: Severity::Error,
                path: path.display().to_string(),
                message: format!("{error:#}"),
            }),
        }
        let limit = if self.strict {
            Severity::Warning
        } else {
            Severity::Error
        };
        for finding in &findings {
            if !self.quiet || finding.severity > Severity::Info {
                text.extend([finding.to_string(), "\n".to_owned()]);
            }
        }
        Ok(findings.iter().all(|finding| finding.severity < limit))
    }
}

/// The directories and archives in `charts/`, in the order of their names.
fn subcharts(chart: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let directory = chart.join("charts");
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(&directory)
        .with_context(|| format!("cannot read the directory {}", directory.display()))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() || path.extension().is_some_and(|extension| extension == "tgz") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

impl ReleaseArgs {
    fn request(&self) -> Request {
        Request {
            namespace: self.namespace.clone(),
            kube_version: self.kube_version.clone(),
            api_versions: self.api_versions.clone(),
            skip_schema: self.skip_schema_validation,
            ..Request::default()
        }
    }
}

impl ValueArgs {
    /// Reads all files that the flags name.
    fn sources(&self) -> anyhow::Result<ValueSources> {
        let mut files = Vec::new();
        for path in &self.files {
            files.push((path.display().to_string(), read_text(path)?));
        }
        let mut contents = BTreeMap::new();
        for argument in &self.set_file {
            for (_, name) in argument.split(',').filter_map(|pair| pair.split_once('=')) {
                contents.insert(name.to_owned(), read_text(Path::new(name))?);
            }
        }
        Ok(ValueSources {
            files,
            set: self.set.clone(),
            set_string: self.set_string.clone(),
            set_json: self.set_json.clone(),
            set_literal: self.set_literal.clone(),
            set_file: self.set_file.clone(),
            contents,
        })
    }
}

fn read_text(path: &Path) -> anyhow::Result<String> {
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .context("cannot read standard input")?;
        return Ok(text);
    }
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Loads a chart from a directory or an archive.
fn load(path: &Path) -> anyhow::Result<Chart> {
    if path.is_dir() {
        let mut files = BTreeMap::new();
        let mut left = MAX_CHART_BYTES;
        read_directory(path, "", 0, &mut left, &mut files)?;
        return Ok(Chart::from_directory(files)?);
    }
    let length = fs::metadata(path)
        .with_context(|| format!("cannot open the chart {}", path.display()))?
        .len();
    if length > MAX_CHART_BYTES {
        bail!("{} is larger than {MAX_CHART_BYTES} bytes", path.display());
    }
    let archive = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Chart::from_archive(&archive).with_context(|| path.display().to_string())
}

fn read_directory(
    directory: &Path,
    prefix: &str,
    depth: usize,
    left: &mut u64,
    files: &mut BTreeMap<String, Vec<u8>>,
) -> anyhow::Result<()> {
    if depth > MAX_DEPTH {
        bail!("{} is nested too deeply", directory.display());
    }
    let entries = fs::read_dir(directory)
        .with_context(|| format!("cannot read the directory {}", directory.display()))?;
    for entry in entries {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else {
            bail!("{} is not a UTF-8 path", entry.path().display());
        };
        let path = format!("{prefix}{name}");
        // Links are followed, as Helm does.
        let metadata = fs::metadata(entry.path())
            .with_context(|| format!("cannot read {}", entry.path().display()))?;
        if metadata.is_dir() {
            read_directory(&entry.path(), &format!("{path}/"), depth + 1, left, files)?;
            continue;
        }
        let Some(rest) = left.checked_sub(metadata.len()) else {
            bail!("the chart is larger than {MAX_CHART_BYTES} bytes");
        };
        *left = rest;
        let content = fs::read(entry.path())
            .with_context(|| format!("cannot read {}", entry.path().display()))?;
        files.insert(path, content);
    }
    Ok(())
}

/// The world that templates see on the command line: no cluster, the time, and randomness.
#[expect(
    clippy::disallowed_methods,
    reason = "the clock is read here and handed to the engine, which has none"
)]
pub(crate) fn world() -> anyhow::Result<World<'static>> {
    let mut probe = [0; 8];
    SystemRandom::new()
        .fill(&mut probe)
        .map_err(|_| anyhow::anyhow!("the operating system has no random numbers"))?;
    Ok(World {
        facts: &NoCluster,
        now: jiff::Timestamp::now(),
        // It worked a moment ago, and does not stop working.
        random: &|bytes| {
            let _ = SystemRandom::new().fill(bytes);
        },
    })
}

fn write_out(text: &str) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    output.write_all(text.as_bytes())?;
    Ok(output.flush()?)
}
