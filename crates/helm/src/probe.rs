//! JSON lines for scripts: a chart in, what `helm template` prints out.

use std::collections::BTreeMap;

use bellwether_template::{NOWHERE, World};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::template::{NoCluster, Request, Templated, ValueSources, template};
use crate::{Chart, Error};

#[derive(Debug, Deserialize)]
struct Case {
    #[serde(default)]
    id: Value,
    files: BTreeMap<String, String>,
    #[serde(default)]
    values: Value,
    #[serde(default)]
    args: Arguments,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
struct Arguments {
    name: Option<String>,
    namespace: Option<String>,
    values_files: Vec<String>,
    set: Vec<String>,
    set_string: Vec<String>,
    set_json: Vec<String>,
    set_literal: Vec<String>,
    kube_version: Option<String>,
    api_versions: Vec<String>,
    #[serde(rename = "includeCRDs")]
    include_crds: bool,
    no_hooks: bool,
    skip_tests: bool,
    is_upgrade: bool,
    skip_schema: bool,
    show_only: Vec<String>,
}

/// Answers `{"id", "files", "values", "args"}` with `{"id", "manifest"}` and `hooks`, `notes` and
/// `warnings` if there are any, or with `{"id", "error"}`.
pub fn answer(line: &str) -> String {
    let case: Case = match serde_json::from_str(line) {
        Ok(case) => case,
        Err(error) => return json!({"error": format!("unreadable case: {error}")}).to_string(),
    };
    let id = case.id.clone();
    let mut answer = match rendered(case) {
        Ok(answer) => answer,
        Err(error) => json!({"error": error.to_string()}),
    };
    answer["id"] = id;
    answer.to_string()
}

fn rendered(case: Case) -> Result<Value, Error> {
    let arguments = case.args;
    let mut files = Vec::new();
    if case
        .values
        .as_object()
        .is_some_and(|values| !values.is_empty())
    {
        files.push(("values.json".to_owned(), case.values.to_string()));
    }
    for (index, text) in arguments.values_files.into_iter().enumerate() {
        files.push((format!("values-{index}.yaml"), text));
    }
    let sources = ValueSources {
        files,
        set: arguments.set,
        set_string: arguments.set_string,
        set_json: arguments.set_json,
        set_literal: arguments.set_literal,
        ..ValueSources::default()
    };
    let defaults = Request::default();
    let request = Request {
        name: arguments.name.unwrap_or(defaults.name),
        namespace: arguments.namespace.unwrap_or(defaults.namespace),
        kube_version: arguments
            .kube_version
            .unwrap_or_else(|| "v1.31.4".to_owned()),
        api_versions: arguments.api_versions,
        is_upgrade: arguments.is_upgrade,
        skip_schema: arguments.skip_schema,
        include_crds: arguments.include_crds,
        no_hooks: arguments.no_hooks,
        skip_tests: arguments.skip_tests,
        show_only: arguments.show_only,
    };
    let values = sources.merge()?;
    let chart = Chart::from_directory(&case.files)?;
    let world = World {
        facts: &NoCluster,
        ..NOWHERE
    };
    let release = match template(&chart, &values, &request, &world)? {
        Templated::Release(release) => release,
        Templated::Needs(_) => return Err(Error::values("templates look up objects")),
    };
    let mut answer = json!({"manifest": release.to_text(&request)?});
    if !release.hooks.is_empty() && !request.no_hooks {
        answer["hooks"] = serde_json::to_value(&release.hooks).unwrap_or_default();
    }
    if !release.notes.is_empty() {
        answer["notes"] = json!(release.notes);
    }
    if !release.warnings.is_empty() {
        answer["warnings"] = json!(release.warnings);
    }
    Ok(answer)
}
