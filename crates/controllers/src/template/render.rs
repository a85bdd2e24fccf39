//! What templates render to: objects, from files and parameters.

use bellwether_helm::{Chart, NoCluster, Request, Templated, template};
use bellwether_json::yaml::{from_yaml, to_yaml};
use bellwether_kustomize::{Options, Tree, build, needs};
use bellwether_template::World;
use jiff::Timestamp;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Map, Value, json};

use super::fetch::Files;

/// Names of files that make a folder a kustomization.
const KUSTOMIZATIONS: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// Renders a chart.
pub(super) fn helm(
    files: &Files,
    values: &Map<String, Value>,
    name: &str,
    namespace: &str,
    now: Timestamp,
) -> Result<Vec<Value>, String> {
    let chart = Chart::from_directory(files.iter()).map_err(|error| error.to_string())?;
    let request = Request {
        name: name.to_owned(),
        namespace: namespace.to_owned(),
        no_hooks: true,
        ..Request::default()
    };
    let world = World {
        facts: &NoCluster,
        now,
        random: &|bytes| {
            // Without random numbers a template gets zeros, which the guard against templates that never settle does not mind.
            let _ = SystemRandom::new().fill(bytes);
        },
    };
    let rendered = template(&chart, values, &request, &world).map_err(|error| error.to_string())?;
    let Templated::Release(release) = rendered else {
        return Err(
            "the chart looks objects up, which a template of an Application cannot".to_owned(),
        );
    };
    let mut objects = Vec::new();
    for (path, text) in release.documents(&request) {
        let read = from_yaml(text).map_err(|error| format!("{path}: {error}"))?;
        objects.extend(read.into_iter().filter(Value::is_object));
    }
    Ok(objects)
}

/// Builds a folder as kustomize does, and patches the Application in it.
pub(super) fn kustomize(
    files: &Files,
    folder: &str,
    patch: Option<&Map<String, Value>>,
) -> Result<Vec<Value>, String> {
    let parts: Vec<&str> = folder
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    if parts.contains(&"..") {
        return Err(format!("the path {folder:?} leaves the source"));
    }
    let prefix: String = parts.iter().flat_map(|part| [part, "/"]).collect();
    let inside: Vec<&str> = files
        .keys()
        .filter_map(|path| path.strip_prefix(&prefix))
        .collect();
    if inside.is_empty() {
        return Err(format!("there is no folder {folder:?} in the source"));
    }
    let mut tree = Tree::new();
    for (path, content) in files {
        tree.add_file(&format!("source/{path}"), content.to_vec());
    }
    let base = format!("../source/{}", parts.join("/"));
    let base = base.trim_end_matches('/');
    let is_kustomization = inside.iter().any(|path| KUSTOMIZATIONS.contains(path));
    let resources: Vec<String> = if is_kustomization {
        vec![base.to_owned()]
    } else {
        // A folder of manifests is as good as a kustomization that lists them.
        let is_manifest = |path: &str| matches!(path.rsplit_once('.'), Some((_, "yaml" | "yml")));
        inside
            .iter()
            .filter(|path| is_manifest(path) && !path.contains('/'))
            .map(|path| format!("{base}/{path}"))
            .collect()
    };
    let mut overlay = json!({"resources": resources});
    if let Some(patch) = patch.filter(|patch| !patch.is_empty()) {
        overlay["patches"] = json!([{
            "target": {"group": "core.oam.dev", "kind": "Application"},
            "patch": to_yaml(&complete(patch)),
        }]);
    }
    tree.add_file("overlay/kustomization.yaml", to_yaml(&overlay));
    let missing = needs(&tree, "overlay");
    if !missing.is_empty() {
        return Err(missing.to_string().replace("source/", ""));
    }
    let options = Options {
        allow_outside: true,
        merge_applications: true,
        ..Options::default()
    };
    let built = build(&tree, "overlay", options).map_err(|error| error.to_string())?;
    Ok(built.objects)
}

/// A patch as kustomize wants it: with the type and a name, which do not matter next to a target.
fn complete(patch: &Map<String, Value>) -> Value {
    let mut patch = Value::Object(patch.clone());
    patch["apiVersion"] = json!("core.oam.dev/v1beta1");
    patch["kind"] = json!("Application");
    if !patch["metadata"]["name"].is_string() {
        patch["metadata"] = match patch["metadata"].take() {
            Value::Object(mut metadata) => {
                metadata.insert("name".to_owned(), json!("any"));
                Value::Object(metadata)
            }
            _ => json!({"name": "any"}),
        };
    }
    patch
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn files(entries: &[(&str, &str)]) -> Files {
        let entries = entries.iter();
        entries
            .map(|(path, content)| ((*path).to_owned(), Bytes::from((*content).to_owned())))
            .collect()
    }

    const APPLICATION: &str = "apiVersion: core.oam.dev/v1beta1\nkind: Application\nmetadata: {name: base}\nspec:\n  \
                               components:\n  - name: instance\n    type: webservice\n    properties: {image: base, port: 80}\n  - \
                               {name: other, type: worker}\n";

    fn patch() -> Map<String, Value> {
        let patch = json!({"spec": {"components": [{"name": "instance", "properties": {"image": "prod"}}]}});
        patch.as_object().unwrap().clone()
    }

    #[test]
    fn a_chart_renders_an_application() {
        let template = "apiVersion: core.oam.dev/v1beta1\nkind: Application\nmetadata: {name: {{ .Release.Name }}}\nspec: \
                        {components: [{name: web, type: webservice, properties: {image: {{ .Values.image }}}}]}\n";
        let chart = files(&[
            ("Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n"),
            ("values.yaml", "image: nginx\n"),
            ("templates/app.yaml", template),
        ]);
        let values = json!({"image": "my-image"});
        let now = Timestamp::UNIX_EPOCH;
        let objects = helm(&chart, values.as_object().unwrap(), "shop", "default", now).unwrap();
        assert_eq!(objects.len(), 1);
        assert_eq!(
            objects[0]["spec"]["components"][0]["properties"]["image"],
            "my-image"
        );
        let error = helm(&files(&[("x", "")]), &Map::new(), "shop", "default", now).unwrap_err();
        assert!(error.contains("Chart.yaml"), "{error}");
    }

    #[test]
    fn components_of_a_base_are_patched_by_name() {
        for base in [
            files(&[("base/app.yaml", APPLICATION)]),
            files(&[
                ("base/kustomization.yaml", "resources: [app.yaml]"),
                ("base/app.yaml", APPLICATION),
            ]),
            files(&[
                ("base/kustomization.yaml", "resources: [../shared]"),
                ("shared/kustomization.yaml", "resources: [app.yaml]"),
                ("shared/app.yaml", APPLICATION),
            ]),
        ] {
            let objects = kustomize(&base, "./base/", Some(&patch())).unwrap();
            let components = objects[0]["spec"]["components"].as_array().unwrap();
            assert_eq!(components.len(), 2, "{components:?}");
            let instance = components
                .iter()
                .find(|it| it["name"] == "instance")
                .unwrap();
            assert_eq!(instance["properties"], json!({"image": "prod", "port": 80}));
        }
    }

    #[test]
    fn what_is_missing_is_reported() {
        let base = files(&[(
            "base/kustomization.yaml",
            "resources: [https://example.org/app.yaml]",
        )]);
        let error = kustomize(&base, "base", None).unwrap_err();
        assert!(error.contains("https://example.org/app.yaml"), "{error}");
        assert!(
            kustomize(&base, "other", None)
                .unwrap_err()
                .contains("no folder")
        );
        assert!(
            kustomize(&base, "../base", None)
                .unwrap_err()
                .contains("leaves the source")
        );
    }
}
