//! `bellwether definitions` and `bellwether def …`: types of components, traits, policies and steps, for authors.

mod types;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use bellwether_application::attributes;
use bellwether_application::builtin;
use bellwether_application::definition::{Definition, DefinitionKind};
use bellwether_application::document::{Parameter, parameters};
use bellwether_application::file;
use bellwether_ctl::near::did_you_mean_or;
use bellwether_json::yaml::{from_yaml, to_yaml};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use self::types::{Types, TypesArgs};
use crate::cli::say;

/// Print the built-in definitions as objects.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bellwether definitions | kubectl apply -f -")]
pub(crate) struct DefinitionsArgs {
    /// How to print them.
    #[arg(short, long, value_enum, default_value_t = Format::Yaml)]
    output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// YAML documents.
    Yaml,
    /// One JSON list.
    Json,
}

/// Prints objects as YAML documents or as a list.
pub(crate) fn print_objects(objects: &[Value], format: Format) {
    match format {
        Format::Yaml => {
            let documents: Vec<String> = objects.iter().map(to_yaml).collect();
            say(documents.join("---\n").trim_end());
        }
        Format::Json => {
            say(&json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string());
        }
    }
}

pub(crate) fn run_all(arguments: &DefinitionsArgs) {
    print_objects(&builtin::objects(), arguments.output);
}

/// Arguments of `bellwether def`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bellwether def show webservice")]
pub(crate) struct DefArgs {
    #[command(subcommand)]
    command: DefCommand,
}

#[derive(Debug, Subcommand)]
enum DefCommand {
    /// List the types: built-in ones and those of the hub.
    #[command(after_help = "Example:\n  bellwether def list --type trait")]
    List {
        /// Only types of this kind: component, trait, policy or workflow-step.
        #[arg(long, value_parser = kind)]
        r#type: Option<DefinitionKind>,
        #[command(flatten)]
        types: TypesArgs,
    },
    /// Show what a type is for, its parameters, and an example.
    #[command(after_help = "Example:\n  bellwether def show gateway")]
    Show(ShowArgs),
    /// Check definition files.
    #[command(after_help = "Example:\n  bellwether def vet my-type.cue")]
    Vet {
        /// Definition files in CUE or YAML.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Print a definition file as the object that a cluster gets.
    #[command(after_help = "Example:\n  bellwether def render my-type.cue | kubectl apply -f -")]
    Render {
        /// A definition file in CUE.
        file: PathBuf,
    },
    /// Print the beginnings of a definition file.
    #[command(after_help = "Example:\n  bellwether def init my-type --type trait > my-type.cue")]
    Init {
        /// The name of the type.
        name: String,
        /// What it defines: component, trait, policy or workflow-step.
        #[arg(long, value_parser = kind, default_value = "component")]
        r#type: DefinitionKind,
    },
}

fn kind(word: &str) -> Result<DefinitionKind, String> {
    DefinitionKind::from_word(word)
        .ok_or_else(|| format!("{word:?} is none of component, trait, policy and workflow-step"))
}

/// Runs a `def` command.
pub(crate) async fn run(arguments: DefArgs) -> anyhow::Result<()> {
    match arguments.command {
        DefCommand::List { r#type, types } => say(&list(r#type, &types.read().await)),
        DefCommand::Show(arguments) => run_show(arguments).await?,
        DefCommand::Vet { files } => vet(&files)?,
        DefCommand::Render { file } => say(to_yaml(&read_cue(&file)?).trim_end()),
        DefCommand::Init { name, r#type } => say(skeleton(&name, r#type).trim_end()),
    }
    Ok(())
}

/// Which type is shown.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The name of a type, or a definition file.
    name: String,
    /// The kind, where two kinds have a type of that name.
    #[arg(long, value_parser = kind)]
    r#type: Option<DefinitionKind>,
    #[command(flatten)]
    types: TypesArgs,
}

/// Shows what a type is for.
pub(crate) async fn run_show(arguments: ShowArgs) -> anyhow::Result<()> {
    let path = Path::new(&arguments.name);
    let text = if path.extension().is_some() && path.exists() {
        show_file(path)?
    } else {
        let types = arguments.types.read().await;
        show(&arguments.name, arguments.r#type, &types)?
    };
    say(text.trim_end());
    Ok(())
}

fn description(definition: &Definition) -> &str {
    let annotations = &definition.object["metadata"]["annotations"];
    annotations[bellwether_api::oam::names::annotation::DESCRIPTION]
        .as_str()
        .unwrap_or_default()
}

fn list(wanted: Option<DefinitionKind>, types: &Types) -> String {
    let row = |kind: &str, name: &str, origin: &str, text: &str| {
        format!("{kind:<14} {name:<28} {origin:<14} {text}")
    };
    let mut lines = vec![row("TYPE", "NAME", "FROM", "DESCRIPTION")];
    lines.extend(types.of(wanted).map(|found| {
        let definition = &found.definition;
        let origin = found.namespace.as_deref().unwrap_or("built-in");
        let text = description(definition);
        row(definition.kind.word(), &definition.type_name, origin, text)
    }));
    lines.join("\n")
}

fn show_file(path: &Path) -> anyhow::Result<String> {
    let object = read_cue(path)?;
    let kind = object["kind"]
        .as_str()
        .and_then(DefinitionKind::from_object_kind);
    let kind = kind.context("not a definition")?;
    let type_name = object["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    Ok(document(&Definition::new(kind, type_name, object)))
}

fn show(name: &str, wanted: Option<DefinitionKind>, types: &Types) -> anyhow::Result<String> {
    let all = types.of(wanted);
    let found: Vec<_> = all
        .filter(|found| found.definition.type_name == name)
        .collect();
    match found.as_slice() {
        [] => {
            let names = types.of(wanted).map(|it| it.definition.type_name.as_str());
            let hint = did_you_mean_or(name, names, "; `bellwether def list` shows all of them");
            bail!("there is no type {name:?}{hint}")
        }
        [one] => {
            let mut text = document(&one.definition);
            if one.namespace.is_none()
                && let Some(example) = builtin::example(one.definition.kind, name)
            {
                text.push_str("\nExample:\n\n");
                for line in example.lines() {
                    text.push_str("  ");
                    text.push_str(line);
                    text.push('\n');
                }
            }
            Ok(text)
        }
        several => {
            let kinds: Vec<&str> = several
                .iter()
                .map(|found| found.definition.kind.word())
                .collect();
            bail!(
                "{name} is a {}; choose one with --type",
                kinds.join(" and a ")
            )
        }
    }
}

fn document(definition: &Definition) -> String {
    let mut text = format!(
        "{} {}\n{}\n",
        definition.kind.word(),
        definition.type_name,
        description(definition)
    );
    let rows: Vec<[String; 4]> = parameters(definition).iter().map(row).collect();
    if rows.is_empty() {
        text.push_str("\nIt has no parameters.\n");
        return text;
    }
    let header = ["PARAMETER", "TYPE", "DEFAULT", "USAGE"].map(str::to_owned);
    let width = |column: usize| {
        rows.iter()
            .chain([&header])
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
            .min(48)
    };
    let (first, second, third) = (width(0), width(1), width(2));
    text.push('\n');
    for row in std::iter::once(&header).chain(&rows) {
        let line = format!(
            "{:<first$}  {:<second$}  {:<third$}  {}",
            row[0], row[1], row[2], row[3]
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn row(parameter: &Parameter) -> [String; 4] {
    let default = match (parameter.required, parameter.default.as_str()) {
        (true, _) => "required".to_owned(),
        (false, "") => "-".to_owned(),
        (false, default) => default.to_owned(),
    };
    [
        parameter.path.clone(),
        parameter.type_text.clone(),
        default,
        parameter.usage.clone(),
    ]
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn read_cue(path: &Path) -> anyhow::Result<Value> {
    let text = read(path)?;
    file::parse(&path.display().to_string(), &text).map_err(|error| anyhow::anyhow!("{error}"))
}

/// The definitions in a file, in CUE or YAML.
pub(crate) fn read_definitions(path: &Path) -> anyhow::Result<Vec<Value>> {
    if path.extension().is_some_and(|extension| extension == "cue") {
        return Ok(vec![read_cue(path)?]);
    }
    from_yaml(&read(path)?).with_context(|| format!("cannot read {}", path.display()))
}

fn vet(files: &[PathBuf]) -> anyhow::Result<()> {
    let mut problems = Vec::new();
    for path in files {
        let objects = match read_definitions(path) {
            Ok(objects) => objects,
            Err(error) => {
                problems.push(format!("{}: {error:#}", path.display()));
                continue;
            }
        };
        for object in objects {
            let Some(kind) = object["kind"]
                .as_str()
                .and_then(DefinitionKind::from_object_kind)
            else {
                problems.push(format!(
                    "{}: {} is not a definition",
                    path.display(),
                    object["kind"]
                ));
                continue;
            };
            let name = object["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            let unknown = attributes::problems(kind, "spec", &object["spec"]);
            let unknown = unknown.into_iter();
            problems.extend(unknown.map(|problem| format!("{}: {problem}", path.display())));
            let definition = Definition::new(kind, name, object);
            // Steps are compiled by the workflow engine, with its packages.
            if kind != DefinitionKind::WorkflowStep
                && let Err(found) = definition.template()
            {
                problems.extend(found.iter().map(|problem| match &problem.location {
                    Some(location) => format!("{}: {location}: {problem}", path.display()),
                    None => format!("{}: {problem}", path.display()),
                }));
            }
        }
    }
    if problems.is_empty() {
        say("Everything is right.");
        return Ok(());
    }
    bail!("{}", problems.join("\n"))
}

fn skeleton(name: &str, kind: DefinitionKind) -> String {
    let quoted = if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        name.to_owned()
    } else {
        format!("{name:?}")
    };
    let (attributes, body) = match kind {
        DefinitionKind::Component => (
            "workload: type: \"autodetects.core.oam.dev\"",
            "\toutput: {\n\t\tapiVersion: \"v1\"\n\t\tkind:       \"ConfigMap\"\n\t\tdata: greeting: parameter.greeting\n\t}",
        ),
        DefinitionKind::Trait => (
            "appliesToWorkloads: [\"*\"]",
            "\tpatch: metadata: annotations: greeting: parameter.greeting",
        ),
        DefinitionKind::Policy => (
            "",
            "\toutput: {\n\t\tapiVersion: \"v1\"\n\t\tkind:       \"ConfigMap\"\n\t\tdata: greeting: parameter.greeting\n\t}",
        ),
        DefinitionKind::WorkflowStep => ("", "\tmessage: parameter.greeting"),
    };
    format!(
        "{quoted}: {{\n\ttype: \"{}\"\n\tdescription: \"What it is for.\"\n\tattributes: {{{attributes}}}\n}}\n\ntemplate: {{\n{body}\n\n\tparameter: {{\n\t\t// +usage=What it says\n\t\tgreeting: *\"hello\" | string\n\t}}\n}}\n",
        kind.word(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_of_every_kind_are_right() {
        for kind in DefinitionKind::ALL {
            let text = skeleton("my-type", kind);
            let object = file::parse("my-type.cue", &text).unwrap();
            assert_eq!(object["kind"], kind.object_kind());
        }
    }

    #[test]
    fn a_type_that_was_meant_is_named() {
        let problem = |name| {
            let shown = show(name, None, &Types::built_in());
            shown.unwrap_err().to_string()
        };
        let expected = "there is no type \"scler\"; did you mean scaler?";
        assert_eq!(problem("scler"), expected);
        assert!(problem("nothing-like-it").ends_with("`bellwether def list` shows all of them"));
    }

    #[test]
    fn parameters_are_shown_with_type_default_and_usage() {
        let text = show("scaler", None, &Types::built_in()).unwrap();
        assert!(text.starts_with("trait scaler\n"), "{text}");
        assert!(
            text.contains("replicas   int   1        How many pods"),
            "{text}"
        );
        assert!(
            text.contains("\nExample:\n\n  apiVersion: core.oam.dev/v1beta1\n"),
            "{text}"
        );
    }

    #[test]
    fn unknown_types_are_told_where_to_look() {
        let error = show("nothing", None, &Types::built_in())
            .unwrap_err()
            .to_string();
        assert!(error.contains("bellwether def list"));
    }

    #[test]
    fn types_of_a_hub_are_listed_and_shown_like_built_in_ones() {
        let mut types = Types::built_in();
        types.insert(json!({
            "kind": "TraitDefinition",
            "metadata": {
                "name": "greeting",
                "namespace": "shop",
                "annotations": {bellwether_api::oam::names::annotation::DESCRIPTION: "Says hello."},
            },
            "spec": {"schematic": {"cue": {
                "template": "patch: {}\nparameter: {\n\t// +usage=What it says\n\ttext: *\"hello\" | string\n}\n",
            }}},
        }));
        let listed = list(Some(DefinitionKind::Trait), &types);
        let row = |name: &str| {
            let lines = listed.lines().map(|line| line.split_whitespace().collect());
            let mut found = lines.filter(|words: &Vec<&str>| words[1] == name);
            found.next().unwrap()
        };
        assert_eq!(
            row("greeting"),
            ["trait", "greeting", "shop", "Says", "hello."]
        );
        assert_eq!(row("scaler")[2], "built-in");
        assert!(!listed.contains("webservice"), "{listed}");
        let text = show("greeting", None, &types).unwrap();
        assert!(text.contains("What it says"), "{text}");
    }
}
