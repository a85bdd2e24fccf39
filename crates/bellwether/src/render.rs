//! `bellwether render`: what an Application becomes, without a hub.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use bellwether_api::oam::Application;
use bellwether_apiserver::Clock;
use bellwether_application::RenderError;
use bellwether_application::appfile::{self, Appfile};
use bellwether_application::catalog::Catalog;
use bellwether_application::deliver::deliver;
use bellwether_application::outside::Wanted;
use bellwether_application::world::{ClusterVersion, World};
use bellwether_controllers::application::{Fetcher, Subject};
use bellwether_controllers::workflow::providers::http::HostPattern;
use bellwether_controllers::workflow::{HttpPolicy, WorkflowOptions};
use bellwether_json::yaml::from_yaml;
use clap::Args;
use serde_json::Value;

use crate::definitions::{Format, print_objects, read_definitions};

/// Show what an Application becomes, without a cluster.
///
/// Charts, manifests at an address and answers of servers that it needs are fetched. Random values of
/// charts are others than on a hub.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bellwether render -f app.yaml -d definitions/")]
pub(crate) struct RenderArgs {
    /// File with the Application; - for standard input. Definitions, policies and other objects that it
    /// refers to may be in it too.
    #[arg(short, long)]
    filename: PathBuf,
    /// Directory or file with further definitions, in CUE or YAML.
    #[arg(short, long)]
    definitions: Vec<PathBuf>,
    /// Fetch nothing: an Application that needs a chart or an address is refused.
    #[arg(long)]
    offline: bool,
    /// How to print the objects.
    #[arg(short, long, value_enum, default_value_t = Format::Yaml)]
    output: Format,
}

pub(crate) async fn run(arguments: RenderArgs) -> anyhow::Result<()> {
    let mut catalog = Catalog::default();
    for path in &arguments.definitions {
        for file in files(path)? {
            for object in read_definitions(&file)? {
                catalog.insert(object);
            }
        }
    }
    let mut applications = Vec::new();
    let mut objects = Vec::new();
    for object in from_yaml(&text(&arguments.filename)?)? {
        if object["kind"] == "Application" {
            applications.push(object);
        } else if !catalog.insert(object.clone()) {
            objects.push(object);
        }
    }
    if applications.is_empty() {
        bail!(
            "there is no Application in {}",
            arguments.filename.display()
        );
    }
    let fetcher = (!arguments.offline).then(|| fetcher(objects.clone(), None));
    let world = World::new(ClusterVersion::default(), objects);
    let mut manifests = Vec::new();
    for application in applications {
        manifests.extend(rendered(application, &catalog, &world, fetcher.as_ref()).await?);
    }
    print_objects(&manifests, arguments.output);
    Ok(())
}

/// Returns what fetches things that applications need. Progress goes to standard error, since objects are printed to standard output.
#[expect(clippy::print_stderr, reason = "progress of a command")]
pub(crate) fn fetcher(objects: Vec<Value>, hub: Option<kube::Client>) -> Fetcher {
    let report = |wanted: &Wanted| eprintln!("fetching {wanted} …");
    // A command may connect to what its user can reach from this machine.
    let options = WorkflowOptions {
        http: HttpPolicy {
            allowed: vec![HostPattern::Any, HostPattern::Loopback],
        },
        git_directories: vec![PathBuf::from("/")],
        ..WorkflowOptions::default()
    };
    Fetcher::for_command(objects, hub, report, &options)
}

/// Parses an application, and fetches what it needs if there is something that fetches.
pub(crate) async fn parse<'a>(
    subject: &Subject<'_>,
    catalog: &'a Catalog,
    world: &'a World,
    fetcher: Option<&Fetcher>,
) -> Result<Appfile<'a>, RenderError> {
    match fetcher {
        Some(fetcher) => fetcher.parse(subject, catalog, world).await,
        None => appfile::parse(subject.application, catalog, world, subject.number),
    }
}

async fn rendered(
    application: Value,
    catalog: &Catalog,
    world: &World,
    fetcher: Option<&Fetcher>,
) -> anyhow::Result<Vec<Value>> {
    let name = application["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let application: Application =
        serde_json::from_value(application).with_context(|| format!("application {name}"))?;
    let mut world = world.clone();
    world.outside = fetcher.map(|fetcher| fetcher.of(&application, None, Clock::system().now()));
    let subject = Subject {
        application: &application,
        pinned: None,
        number: 1,
    };
    let appfile = parse(&subject, catalog, &world, fetcher)
        .await
        .with_context(|| format!("application {name}"))?;
    let delivery = deliver(&appfile).with_context(|| format!("application {name}"))?;
    let of_components = delivery
        .components
        .into_iter()
        .flat_map(|component| component.manifests);
    Ok(delivery
        .policies
        .into_iter()
        .chain(of_components)
        .map(|manifest| manifest.object)
        .collect())
}

fn text(path: &Path) -> anyhow::Result<String> {
    if path.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .context("reading standard input")?;
        return Ok(text);
    }
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// A file, or the definition files of a directory.
fn files(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))? {
        let entry = entry?.path();
        let is_definition = entry.extension().is_some_and(|extension| {
            extension == "cue" || extension == "yaml" || extension == "yml"
        });
        if is_definition {
            files.push(entry);
        } else if entry.is_dir() {
            files.extend(self::files(&entry)?);
        }
    }
    files.sort();
    Ok(files)
}
