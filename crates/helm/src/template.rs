//! `helm template`: a chart and values in, manifests out.

use std::fmt::Write as _;

use bellwether_go::value::Value;
use bellwether_template::{Budget, Facts, Query, World};
use serde_json::{Map, Value as Json};

use crate::capabilities::{API_VERSIONS, KubeVersion};
use crate::chart::{Chart, read_values};
use crate::dependencies;
use crate::error::{Error, Result};
use crate::manifest::{self, Hook, Manifest};
use crate::objects::Capabilities;
use crate::render::{self, Output, Scene};
use crate::schema;
use crate::set::{self, Form};
use crate::values::{Coalescer, overlay};

/// The longest name of a release.
const MAX_NAME: usize = 53;

/// Values beside those of the chart, in the order in which they apply.
#[derive(Debug, Clone, Default)]
pub struct ValueSources {
    /// Files of values: what they are called, and their text.
    pub files: Vec<(String, String)>,
    /// `--set-json`
    pub set_json: Vec<String>,
    /// `--set`
    pub set: Vec<String>,
    /// `--set-string`
    pub set_string: Vec<String>,
    /// `--set-file`, with the content of the files in [`Self::contents`].
    pub set_file: Vec<String>,
    /// `--set-literal`
    pub set_literal: Vec<String>,
    /// Content of files that `set_file` names.
    pub contents: std::collections::BTreeMap<String, String>,
}

impl ValueSources {
    /// Lays all sources over one another.
    pub fn merge(&self) -> Result<Map<String, Json>> {
        let mut values = Map::new();
        for (name, text) in &self.files {
            let read = read_values(text)
                .map_err(|message| Error::values(format!("failed to parse {name}: {message}")))?;
            overlay(&mut values, read);
        }
        for text in &self.set_json {
            set::apply(text, Form::Json, &mut values)
                .map_err(|_| Error::values(format!("failed parsing --set-json data {text}")))?;
        }
        let read = |name: &str| {
            let content = self.contents.get(name).cloned();
            content.ok_or_else(|| format!("open {name}: no such file or directory"))
        };
        let flags: [(&str, &[String], Form<'_>); 4] = [
            ("--set", &self.set, Form::Typed),
            ("--set-string", &self.set_string, Form::Text),
            ("--set-file", &self.set_file, Form::File(&read)),
            ("--set-literal", &self.set_literal, Form::Literal),
        ];
        for (flag, texts, form) in flags {
            for text in texts {
                set::apply(text, form, &mut values).map_err(|message| {
                    Error::values(format!("failed parsing {flag} data: {message}"))
                })?;
            }
        }
        Ok(values)
    }
}

/// What is to be rendered, and for whom.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command of its own"
)]
pub struct Request {
    /// The name of the release.
    pub name: String,
    /// The namespace of the release.
    pub namespace: String,
    /// The version of Kubernetes that charts are told.
    pub kube_version: String,
    /// API versions beside those that charts always see.
    pub api_versions: Vec<String>,
    /// True if templates are told that this is an upgrade.
    pub is_upgrade: bool,
    /// True if values are not checked against schemas.
    pub skip_schema: bool,
    /// True if definitions in `crds/` are part of the result.
    pub include_crds: bool,
    /// True if hooks are left out.
    pub no_hooks: bool,
    /// True if hooks of tests are left out.
    pub skip_tests: bool,
    /// Only what these templates print; patterns of paths in the chart.
    pub show_only: Vec<String>,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            name: "release-name".to_owned(),
            namespace: "default".to_owned(),
            kube_version: "v1.35.0".to_owned(),
            api_versions: Vec::new(),
            is_upgrade: false,
            skip_schema: false,
            include_crds: false,
            no_hooks: false,
            skip_tests: false,
            show_only: Vec::new(),
        }
    }
}

/// A rendered chart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Release {
    /// Definitions of `crds/`: path and text.
    pub crds: Vec<(String, String)>,
    /// Documents in the order of their installation.
    pub manifests: Vec<Manifest>,
    /// Hooks in the order of their kinds.
    pub hooks: Vec<Hook>,
    /// The text of `NOTES.txt`.
    pub notes: String,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// What rendering came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Templated {
    /// The result.
    Release(Box<Release>),
    /// Objects of the cluster that templates look up: answer these and render again.
    Needs(Vec<Query>),
}

/// Answers every lookup with nothing, as Helm does without a cluster.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCluster;

impl Facts for NoCluster {
    fn get(&self, query: &Query) -> Option<Value> {
        (query.function == "lookup").then(|| Value::map::<&str>([]))
    }
}

/// Renders a chart with values that were merged before.
pub fn template(
    chart: &Chart,
    values: &Map<String, Json>,
    request: &Request,
    world: &World<'_>,
) -> Result<Templated> {
    check_name(&request.name)?;
    if !matches!(chart.metadata.chart_type.as_str(), "" | "application") {
        let kind = &chart.metadata.chart_type;
        return Err(Error::chart(format!("{kind} charts are not installable")));
    }
    dependencies::check_present(chart)?;
    let mut release = Release {
        warnings: chart.warnings.clone(),
        ..Release::default()
    };
    if chart.metadata.deprecated {
        release
            .warnings
            .push("WARNING: This chart is deprecated".to_owned());
    }
    let mut chart = chart.clone();
    dependencies::process(&mut chart, values, &mut release.warnings)?;
    let mut coalescer = Coalescer::default();
    let values = coalescer.coalesce(&chart, values.clone())?;
    release.warnings.append(&mut coalescer.warnings);
    if !request.skip_schema {
        schema::validate(&chart, &values)?;
    }
    let kube_version = KubeVersion::parse(&request.kube_version).map_err(Error::Values)?;
    let wanted = &chart.metadata.kube_version;
    if !wanted.is_empty() && !dependencies::is_compatible(wanted, &kube_version.version) {
        return Err(Error::chart(format!(
            "chart requires kubeVersion: {wanted} which is incompatible with Kubernetes {}",
            kube_version.version
        )));
    }
    let output = render::render(
        &chart,
        &values,
        &scene(request, kube_version),
        world,
        Budget::default(),
    )?;
    match output {
        Output::Needs(queries) => Ok(Templated::Needs(queries)),
        Output::Files(files) => {
            sort(&chart, files, &mut release)?;
            Ok(Templated::Release(Box::new(release)))
        }
    }
}

fn check_name(name: &str) -> Result<()> {
    let problems = bellwether_json::name::dns_subdomain_problems(name);
    if !name.is_empty() && name.len() <= MAX_NAME && problems.is_empty() {
        return Ok(());
    }
    Err(Error::values(format!(
        "release name {name:?}: invalid release name, must match regex \
         ^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$ and the length must not \
         be longer than {MAX_NAME}"
    )))
}

pub(crate) fn scene(request: &Request, kube_version: KubeVersion) -> Scene {
    let api_versions = API_VERSIONS.iter().map(|&version| version.to_owned());
    Scene {
        release: Value::map([
            ("Name", Value::from(request.name.as_str())),
            ("Namespace", Value::from(request.namespace.as_str())),
            ("IsUpgrade", Value::from(request.is_upgrade)),
            ("IsInstall", Value::from(!request.is_upgrade)),
            ("Revision", Value::int(1)),
            ("Service", Value::from("Helm")),
        ]),
        capabilities: Capabilities::value(
            kube_version,
            api_versions
                .chain(request.api_versions.iter().cloned())
                .collect(),
        ),
    }
}

/// Takes notes out of the files, and sorts the others.
fn sort(
    chart: &Chart,
    mut files: std::collections::BTreeMap<String, String>,
    release: &mut Release,
) -> Result<()> {
    let notes = format!("{}/templates/NOTES.txt", chart.name());
    release.notes = files.remove(&notes).unwrap_or_default();
    files.retain(|path, _| !path.ends_with("NOTES.txt"));
    let files = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()));
    let mut sorted = manifest::sort(files)?;
    release.manifests = sorted.manifests;
    release.hooks = sorted.hooks;
    release.warnings.append(&mut sorted.warnings);
    let text = |data: &[u8]| String::from_utf8_lossy(data).into_owned();
    let crds = chart.crds();
    release.crds = crds
        .into_iter()
        .map(|(path, file)| (path, text(&file.data)))
        .collect();
    Ok(())
}

impl Release {
    /// Paths and texts of all that is printed, in order: definitions, manifests, hooks.
    pub fn documents(&self, request: &Request) -> Vec<(&str, &str)> {
        let is_test = |hook: &&Hook| hook.events.iter().any(|event| event == "test");
        let crds = self.crds.iter().filter(|_| request.include_crds);
        let hooks = self.hooks.iter().filter(|_| !request.no_hooks);
        let hooks = hooks.filter(|hook| !(request.skip_tests && is_test(hook)));
        let mut documents: Vec<(&str, &str)> = Vec::new();
        documents.extend(crds.map(|(path, content)| (path.as_str(), content.as_str())));
        documents.extend(self.manifests.iter().map(|it| (&*it.path, &*it.content)));
        documents.extend(hooks.map(|it| (&*it.path, &*it.content)));
        documents
    }

    /// The text that `helm template` prints.
    pub fn to_text(&self, request: &Request) -> Result<String> {
        let documents = self.documents(request);
        let crds = self.crds.iter().filter(|_| request.include_crds).count();
        let (manifests, hooks) = documents.split_at(crds + self.manifests.len());
        let print = |documents: &[(&str, &str)]| {
            let mut text = String::new();
            for (path, content) in documents {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "---\n# Source: {path}\n{content}");
            }
            text
        };
        // Blank lines around all manifests are not printed; those of hooks are.
        let text = format!("{}\n{}", print(manifests).trim(), print(hooks));
        if request.show_only.is_empty() {
            return Ok(text);
        }
        only(&text, &request.show_only)
    }
}

/// The documents whose templates match one of the patterns.
fn only(text: &str, patterns: &[String]) -> Result<String> {
    let documents = manifest::split(text);
    let mut shown = String::new();
    for pattern in patterns {
        let mut found = false;
        for document in &documents {
            let source = document
                .lines()
                .find_map(|line| line.strip_prefix("# Source: "))
                .and_then(|path| path.split_once('/'));
            let Some((_, path)) = source else {
                continue;
            };
            if crate::glob::matches(pattern, path) == Some(true) {
                found = true;
                let _ = writeln!(shown, "---\n{document}");
            }
        }
        if !found {
            let message = format!("could not find template {pattern} in chart");
            return Err(Error::values(message));
        }
    }
    Ok(shown)
}
