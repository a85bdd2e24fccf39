//! JSON lines for scripts: one template in a chart of its own in, its output out.

use std::collections::BTreeMap;

use bellwether_template::{Budget, World};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::capabilities::KubeVersion;
use crate::render::{self, Output};
use crate::template::{Request, scene};
use crate::values::Coalescer;
use crate::{Chart, Error};

/// The chart that the template is put into.
const CHART: &str = "apiVersion: v2
name: case
version: 1.2.3
appVersion: \"4.5.6\"
description: A chart of one template
type: application
keywords: [alpha, beta]
home: https://example.test/case
sources: [https://example.test/src]
maintainers: [{name: Nia, email: nia@example.test}]
annotations: {team: core}
";

/// Where the template is in it.
const PATH: &str = "templates/t.yaml";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Case {
    #[serde(default)]
    id: Value,
    template: String,
    #[serde(default)]
    values: serde_json::Map<String, Value>,
    values_yaml: Option<String>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    kube_version: Option<String>,
    #[serde(default)]
    api_versions: Vec<String>,
    #[serde(default)]
    upgrade: bool,
}

/// Answers `{"id", "template", "values", …}` with `{"id", "text"}`, or with `{"id", "error",
/// "phase"}`.
pub fn answer(line: &str, world: &World<'_>) -> String {
    let case: Case = match serde_json::from_str(line) {
        Ok(case) => case,
        Err(error) => return json!({"error": format!("unreadable case: {error}")}).to_string(),
    };
    let id = case.id.clone();
    let mut answer = match rendered(case, world) {
        Ok(text) => json!({"text": text}),
        Err(error) => {
            let text = error.to_string();
            let phase = match &error {
                Error::Render(text) if text.starts_with("parse error") => "parse",
                Error::Render(_) => "exec",
                _ => "load",
            };
            json!({"error": text, "phase": phase})
        }
    };
    answer["id"] = id;
    answer.to_string()
}

fn rendered(case: Case, world: &World<'_>) -> Result<String, Error> {
    let mut files = case.files;
    files.insert("Chart.yaml".to_owned(), CHART.to_owned());
    files.insert(PATH.to_owned(), case.template);
    if let Some(text) = case.values_yaml {
        files.insert("values.yaml".to_owned(), text);
    }
    let chart = Chart::from_directory(&files)?;
    let mut values = Value::Object(case.values);
    crate::values::as_floats(&mut values);
    let values = match values {
        Value::Object(values) => values,
        _ => serde_json::Map::new(),
    };
    let values = Coalescer::default().coalesce(&chart, values)?;
    let request = Request {
        name: "rel".to_owned(),
        namespace: "ns".to_owned(),
        kube_version: case.kube_version.unwrap_or_else(|| "v1.31.4".to_owned()),
        api_versions: case.api_versions,
        is_upgrade: case.upgrade,
        ..Request::default()
    };
    let kube_version = KubeVersion::parse(&request.kube_version).map_err(Error::Values)?;
    let scene = scene(&request, kube_version);
    match render::render(&chart, &values, &scene, world, Budget::default())? {
        Output::Files(mut files) => Ok(files.remove(&format!("case/{PATH}")).unwrap_or_default()),
        Output::Needs(_) => Err(Error::values("the template looks up objects")),
    }
}
