//! `bellwether render`: what an Application becomes, offline.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use bellwether_api::oam::Application;
use bellwether_application::appfile;
use bellwether_application::catalog::Catalog;
use bellwether_application::deliver::deliver;
use bellwether_application::world::{ClusterVersion, World};
use bellwether_json::yaml::from_yaml;
use clap::Args;
use serde_json::Value;

use crate::definitions::{Format, print_objects, read_definitions};

/// Show what an Application becomes, without a cluster.
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
    /// How to print the objects.
    #[arg(short, long, value_enum, default_value_t = Format::Yaml)]
    output: Format,
}

pub(crate) fn run(arguments: &RenderArgs) -> anyhow::Result<()> {
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
    let world = World::new(ClusterVersion::default(), objects);
    let mut manifests = Vec::new();
    for application in applications {
        manifests.extend(rendered(application, &catalog, &world)?);
    }
    print_objects(&manifests, arguments.output);
    Ok(())
}

fn rendered(application: Value, catalog: &Catalog, world: &World) -> anyhow::Result<Vec<Value>> {
    let name = application["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let application: Application =
        serde_json::from_value(application).with_context(|| format!("application {name}"))?;
    let appfile = appfile::parse(&application, catalog, world, 1)
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
