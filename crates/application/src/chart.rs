//! Components of type `helmchart`: what a chart is rendered to, with the values of the component.
//!
//! The chart is fetched by the caller ([`crate::outside`]), and rendered here. Its objects are delivered like those of any other
//! component: nothing is installed by Helm, so there are no releases, and hooks are not run.

use bellwether_helm::{NoCluster, Request, Templated, template};
use bellwether_json::path::str_at;
use bellwether_json::yaml::{from_yaml, value_from_yaml};
use bellwether_template::World as TemplateWorld;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::context::{AppContext, Target};
use crate::error::{Class, RenderError, Stage};
use crate::outside::{ChartReference, FetchedChart, Outside, chart_record};
use crate::overrides;
use crate::render::Component;
use crate::world::ClusterVersion;

/// The key of values in a ConfigMap or Secret that names none.
const VALUES_KEY: &str = "values.yaml";

/// Options that mean something to Helm as an installer, and nothing here: health decides when a component is done.
const WITHOUT_MEANING: [&str; 6] = [
    "cache",
    "cleanupOnFail",
    "maxHistory",
    "timeout",
    "wait",
    "waitForJobs",
];

/// What the properties of a component say.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Properties {
    chart: ChartProperties,
    release: Release,
    values: Option<Map<String, Value>>,
    values_from: Vec<ValuesReference>,
    options: Options,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ChartProperties {
    source: String,
    #[serde(rename = "repoURL")]
    repo_url: String,
    version: String,
    auth: Auth,
}

/// How the server of a chart is to know who asks.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Auth {
    secret_ref: SecretReference,
}

/// A Secret with credentials.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SecretReference {
    name: String,
    namespace: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Release {
    name: String,
    namespace: String,
}

/// A ConfigMap or Secret with values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ValuesReference {
    /// `ConfigMap` or `Secret`.
    pub kind: String,
    /// Name of the object, in the namespace of the application.
    pub name: String,
    /// Key of the values.
    pub key: String,
    /// Whether it may be missing.
    pub optional: bool,
}

#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a field that people set"
)]
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Options {
    #[serde(rename = "includeCRDs")]
    include_crds: bool,
    skip_tests: bool,
    skip_hooks: bool,
    create_namespace: bool,
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            include_crds: true,
            skip_tests: true,
            skip_hooks: false,
            create_namespace: false,
            others: Map::new(),
        }
    }
}

fn invalid(component: &str, message: impl std::fmt::Display) -> RenderError {
    let message = format!("component {component}: {message}");
    RenderError::new(Stage::Render, Class::Parameter, message)
}

fn read(component: &str, properties: Option<&Value>) -> Result<Properties, RenderError> {
    let properties = properties.cloned().unwrap_or_else(|| json!({}));
    let read: Properties = serde_json::from_value(properties)
        .map_err(|error| invalid(component, format!("properties of helmchart: {error}")))?;
    if read.chart.source.is_empty() {
        return Err(invalid(
            component,
            "parameter.chart.source: name the chart, or its address",
        ));
    }
    let mut others = read.options.others.iter();
    let unknown = others.find(|(name, value)| {
        !WITHOUT_MEANING.contains(&name.as_str()) && **value != Value::Bool(false)
    });
    if let Some((name, _)) = unknown {
        return Err(invalid(
            component,
            format!("parameter.options.{name}: this option is not supported; leave it out"),
        ));
    }
    Ok(read)
}

/// Which chart a component of an application in a namespace is made of.
pub fn reference(
    component: &str,
    own: &str,
    properties: Option<&Value>,
) -> Result<ChartReference, RenderError> {
    let chart = read(component, properties)?.chart;
    let secret = chart.auth.secret_ref;
    // What the hub may read is more than what the author of an application may.
    if !secret.namespace.is_empty() && secret.namespace != own {
        return Err(invalid(
            component,
            format!(
                "parameter.chart.auth.secretRef.namespace: only Secrets of the application's namespace {own} are read"
            ),
        ));
    }
    if secret.name.is_empty() && !secret.namespace.is_empty() {
        return Err(invalid(
            component,
            "parameter.chart.auth.secretRef.name: name the Secret",
        ));
    }
    Ok(ChartReference {
        repository: chart.repo_url,
        source: chart.source,
        version: chart.version,
        secret: secret.name,
    })
}

/// What a revision records of the chart of a component.
pub(crate) fn record(
    component: &str,
    own: &str,
    properties: Option<&Value>,
    outside: &Outside,
) -> Result<Value, RenderError> {
    let reference = reference(component, own, properties)?;
    let fetched = outside.chart(&reference);
    let fetched = fetched.map_err(|error| error.about(&format!("component {component}")))?;
    Ok(chart_record(component, &reference, &fetched.digest))
}

/// The Secret with the credentials for the chart of a component. Properties that cannot be read name none.
pub fn secret_of(properties: Option<&Value>) -> Option<&str> {
    let name = properties?
        .pointer("/chart/auth/secretRef/name")?
        .as_str()?;
    Some(name).filter(|name| !name.is_empty())
}

/// Where values of a component come from besides its properties. Properties that cannot be read name none.
pub fn values_references(properties: Option<&Value>) -> Vec<ValuesReference> {
    let listed = properties.and_then(|properties| properties.get("valuesFrom"));
    let listed = listed.cloned().unwrap_or_default();
    serde_json::from_value(listed).unwrap_or_default()
}

/// The objects that the chart of a component is rendered to.
pub(crate) fn objects(
    component: &Component,
    app: &AppContext,
    target: &Target,
    version: &ClusterVersion,
) -> Result<Vec<Value>, RenderError> {
    let name = &component.spec.name;
    let Some(outside) = &app.outside else {
        return Err(invalid(
            name,
            "charts have to be fetched, and nothing is fetched offline; see what `bellwether helm template` prints",
        ));
    };
    let properties = read(name, component.spec.properties.as_ref())?;
    let reference = reference(name, &app.namespace, component.spec.properties.as_ref())?;
    let fetched = outside.chart(&reference);
    let fetched = fetched.map_err(|error| error.about(&format!("component {name}")))?;
    let namespace = [
        &properties.release.namespace,
        &target.namespace,
        &app.namespace,
    ]
    .into_iter()
    .find(|namespace| !namespace.is_empty())
    .cloned()
    .unwrap_or_default();
    let request = Request {
        name: non_empty(&properties.release.name, name).to_owned(),
        namespace: namespace.clone(),
        kube_version: version.git_version.clone(),
        include_crds: properties.options.include_crds,
        skip_tests: properties.options.skip_tests,
        no_hooks: properties.options.skip_hooks,
        ..Request::default()
    };
    let release_namespace = properties.release.namespace.clone();
    let creates_namespace = properties.options.create_namespace;
    let values = values(name, app, outside, properties)?;
    let mut objects = rendered(outside, app, component, &fetched, &values, &request)?;
    if !release_namespace.is_empty() {
        for object in &mut objects {
            let is_bare = str_at(object, &["metadata", "namespace"]).is_none_or(str::is_empty);
            if is_bare && !crate::label::is_cluster_scoped(object) {
                object["metadata"]["namespace"] = namespace.as_str().into();
            }
        }
    }
    if creates_namespace {
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        objects.insert(0, object);
    }
    Ok(objects)
}

fn rendered(
    outside: &Outside,
    app: &AppContext,
    component: &Component,
    fetched: &FetchedChart,
    values: &Map<String, Value>,
    request: &Request,
) -> Result<Vec<Value>, RenderError> {
    let name = &component.spec.name;
    let random = fetched.random(&format!("{}/{}/{name}", app.namespace, app.name));
    let world = TemplateWorld {
        facts: &NoCluster,
        now: outside.now(),
        random: &random,
    };
    let rendered =
        template(&fetched.chart, values, request, &world).map_err(|error| invalid(name, error))?;
    let Templated::Release(release) = rendered else {
        return Err(invalid(
            name,
            "the chart asks for something that only an installation knows",
        ));
    };
    let is_test = |hook: &&bellwether_helm::Hook| hook.events.iter().all(|event| event == "test");
    let is_run = |hook: &&bellwether_helm::Hook| !(request.skip_tests && is_test(hook));
    let mut hooks = release.hooks.iter().filter(is_run);
    if !request.no_hooks
        && let Some(hook) = hooks.next()
    {
        return Err(invalid(
            name,
            format!(
                "the chart has a hook ({}, {}), and hooks are not run; set parameter.options.skipHooks to true to leave hooks out",
                hook.path,
                hook.events.join(", "),
            ),
        ));
    }
    let mut objects = Vec::new();
    for (path, text) in release.documents(request) {
        let read = from_yaml(text).map_err(|error| invalid(name, format!("{path}: {error}")))?;
        objects.extend(read.into_iter().filter(Value::is_object));
    }
    Ok(objects)
}

/// All values: those of ConfigMaps and Secrets in order, then those of the component.
fn values(
    component: &str,
    app: &AppContext,
    outside: &Outside,
    properties: Properties,
) -> Result<Map<String, Value>, RenderError> {
    let mut merged = json!({});
    for from in &properties.values_from {
        let key = non_empty(&from.key, VALUES_KEY);
        let what = format!(
            "component {component}: valuesFrom: {} {}",
            from.kind, from.name
        );
        let missing = |message: String| RenderError::new(Stage::Render, Class::NotFound, message);
        let data = outside.values(&from.kind, &app.namespace, &from.name);
        let data = data.map_err(|error| error.about(&what))?;
        let Some(text) = data[key].as_str() else {
            if from.optional {
                continue;
            }
            let problem = if data.is_null() {
                "does not exist".to_owned()
            } else {
                format!("has no key {key:?}")
            };
            return Err(missing(format!("{what} {problem}")));
        };
        let values = value_from_yaml(text)
            .map_err(|error| invalid(component, format!("{what}, key {key:?}: {error}")))?;
        if !values.is_object() && !values.is_null() {
            return Err(invalid(
                component,
                format!("{what}, key {key:?}: values have to be an object"),
            ));
        }
        if values.is_object() {
            overrides::merge(&mut merged, &values);
        }
    }
    let own = Value::Object(properties.values.unwrap_or_default());
    overrides::merge(&mut merged, &own);
    match merged {
        Value::Object(values) => Ok(values),
        _ => Ok(Map::new()),
    }
}

fn non_empty<'a>(text: &'a str, other: &'a str) -> &'a str {
    if text.is_empty() { other } else { text }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bellwether_helm::Chart;
    use jiff::Timestamp;

    use super::*;
    use crate::admission::check;
    use crate::appfile;
    use crate::catalog::Catalog;
    use crate::deliver::deliver;
    use crate::outside::Content;
    use crate::world::World;

    const TEMPLATE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {colour: {{ .Values.colour }}, \
                            secret: {{ randAlphaNum 8 }}, version: {{ .Capabilities.KubeVersion.Version }}}\n";
    const CLUSTER_ROLE: &str =
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: role}\n";

    fn world() -> World {
        let files = [
            ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
            ("values.yaml", "colour: red\n"),
            ("templates/a.yaml", TEMPLATE),
            ("templates/b.yaml", CLUSTER_ROLE),
        ];
        let outside = Outside::new(Timestamp::UNIX_EPOCH);
        let reference = ChartReference {
            source: "oci://example.org/web".to_owned(),
            ..ChartReference::default()
        };
        let fetched = FetchedChart {
            chart: Chart::from_directory(files).unwrap(),
            digest: "sha256:1".to_owned(),
            seed: [1; 32],
        };
        let wanted = crate::outside::Wanted::Chart(reference, String::new());
        outside.add(wanted, Ok(Content::Chart(Arc::new(fetched))));
        World {
            outside: Some(Arc::new(outside)),
            ..World::default()
        }
    }

    fn application(properties: Value) -> bellwether_api::oam::Application {
        let mut properties = properties;
        properties["chart"]["source"] = "oci://example.org/web".into();
        let spec =
            json!({"components": [{"name": "c", "type": "helmchart", "properties": properties}]});
        serde_json::from_value(json!({"metadata": {"name": "shop"}, "spec": spec})).unwrap()
    }

    fn delivered(properties: Value) -> Result<Vec<Value>, RenderError> {
        let (catalog, world) = (Catalog::default(), world());
        let appfile = appfile::parse(&application(properties), &catalog, &world, 1)?;
        let component = deliver(&appfile)?.components.remove(0);
        Ok(component
            .manifests
            .into_iter()
            .map(|it| it.object)
            .collect())
    }

    #[test]
    fn a_chart_is_rendered_with_release_and_values() {
        let objects = delivered(
            json!({"values": {"colour": "blue"}, "release": {"name": "r", "namespace": "far"}}),
        )
        .unwrap();
        assert_eq!(objects.len(), 2);
        let (role, map) = match objects[0]["kind"].as_str() {
            Some("ClusterRole") => (&objects[0], &objects[1]),
            _ => (&objects[1], &objects[0]),
        };
        assert_eq!(map["data"]["colour"], "blue");
        assert_eq!(map["data"]["version"], "v1.31.0");
        assert_eq!(map["metadata"]["name"], "r");
        assert_eq!(map["metadata"]["namespace"], "far");
        assert!(role["metadata"]["namespace"].is_null());
        let again = delivered(
            json!({"values": {"colour": "blue"}, "release": {"name": "r", "namespace": "far"}}),
        );
        assert_eq!(again.unwrap(), objects, "random values stay the same");
    }

    #[test]
    fn what_is_not_supported_is_named() {
        for (properties, expected) in [
            (
                json!({"options": {"atomic": true}}),
                "parameter.options.atomic",
            ),
            (
                json!({"chart": {"auth": {"secretRef": {"name": "s", "namespace": "far"}}}}),
                "parameter.chart.auth.secretRef.namespace",
            ),
            (json!({"chart": {"auth": {"token": "t"}}}), "token"),
            (json!({"values": []}), "component c"),
        ] {
            let error = delivered(properties).unwrap_err();
            assert!(error.message.contains(expected), "{error}");
        }
        assert!(delivered(json!({"options": {"atomic": false, "timeout": "5m"}})).is_ok());
    }

    #[test]
    fn a_chart_with_credentials_is_another_one() {
        let with = json!({"chart": {"source": "oci://example.org/web", "auth": {"secretRef": {"name": "s"}}}});
        assert_eq!(reference("c", "n", Some(&with)).unwrap().secret, "s");
        assert_eq!(secret_of(Some(&with)), Some("s"));
        let error =
            delivered(json!({"chart": {"auth": {"secretRef": {"name": "s"}}}})).unwrap_err();
        assert_eq!(error.class, Class::Outside, "{error}");
    }

    #[test]
    fn parameters_are_checked_without_the_chart() {
        let (catalog, world) = (Catalog::default(), World::default());
        let accepted = check(&application(json!({"values": {"a": 1}})), &catalog, &world);
        assert!(accepted.is_empty(), "{accepted:?}");
        let refused = check(
            &application(json!({"valuesFrom": [{"kind": "Pod", "name": "p"}]})),
            &catalog,
            &world,
        );
        assert!(
            refused
                .iter()
                .any(|found| found.detail.contains("parameter.valuesFrom")),
            "{refused:?}"
        );
    }
}
