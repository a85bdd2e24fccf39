//! What templates see as `context`.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_api::oam::names::{LOCAL_CLUSTER, annotation};
use bellwether_api::oam::{Application, ApplicationComponent};
use bellwether_cue::bridge::from_json;
use bellwether_cue::value::Value as CueValue;
use serde_json::{Value, json};

use crate::outside::Outside;
use crate::revision::component_hash;
use crate::world::ClusterVersion;

/// What all components of an application see.
#[derive(Debug, Clone)]
pub struct AppContext {
    /// Name of the application.
    pub name: String,
    /// Namespace of the application.
    pub namespace: String,
    /// Name of the revision.
    pub revision: String,
    /// What identifies the content of the revision.
    pub revision_hash: String,
    /// Number of the revision.
    pub revision_number: i64,
    /// Labels of the application.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the application.
    pub annotations: BTreeMap<String, String>,
    /// What rendering needs from outside; none where nothing can be fetched.
    pub outside: Option<Arc<Outside>>,
    /// What policies that change the application hand to templates; empty if there are none.
    pub custom: serde_json::Map<String, Value>,
    /// All components, as they are written.
    components: CueValue,
}

impl AppContext {
    /// What components of this revision of an application see.
    pub fn new(application: &Application, revision_number: i64, revision_hash: &str) -> Self {
        let metadata = &application.metadata;
        let name = metadata.name.clone().unwrap_or_default();
        let components = serde_json::to_value(&application.spec.components).unwrap_or_default();
        Self {
            revision: format!("{name}-v{revision_number}"),
            namespace: namespace(application),
            revision_hash: revision_hash.to_owned(),
            revision_number,
            labels: metadata.labels.clone().unwrap_or_default(),
            annotations: metadata.annotations.clone().unwrap_or_default(),
            outside: None,
            custom: serde_json::Map::new(),
            components: from_json(&components),
            name,
        }
    }

    /// Makes it the context of another revision.
    pub(crate) fn set_revision(&mut self, number: i64) {
        self.revision = format!("{}-v{number}", self.name);
        self.revision_number = number;
    }

    fn annotation(&self, key: &str) -> &str {
        self.annotations.get(key).map_or("", String::as_str)
    }
}

/// The namespace of an application.
pub fn namespace(application: &Application) -> String {
    let namespace = application.metadata.namespace.clone();
    namespace
        .filter(|namespace| !namespace.is_empty())
        .unwrap_or_else(|| "default".to_owned())
}

/// Where a component goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Target {
    /// Name of the cluster; empty for the hub where nothing is said.
    pub cluster: String,
    /// Namespace instead of that of the application; empty for none.
    pub namespace: String,
    /// Which copy it is; empty for the only one.
    pub replica_key: String,
}

impl Target {
    /// The cluster that is meant.
    pub fn cluster_name(&self) -> &str {
        if self.cluster.is_empty() {
            LOCAL_CLUSTER
        } else {
            &self.cluster
        }
    }
}

/// A field of a struct.
pub(crate) type Field = (Arc<str>, CueValue);

pub(crate) fn field(name: &str, value: CueValue) -> Field {
    (Arc::from(name), value)
}

/// The context of a component, as fields to which traits add theirs.
pub(crate) fn component_context(
    app: &AppContext,
    component: &ApplicationComponent,
    target: &Target,
    version: &ClusterVersion,
) -> Vec<Field> {
    let namespace = if target.namespace.is_empty() {
        &app.namespace
    } else {
        &target.namespace
    };
    let properties = component.properties.clone().unwrap_or_else(|| json!({}));
    let text = |text: &str| CueValue::string(text);
    let values = |map: &BTreeMap<String, String>| {
        CueValue::structure(map.iter().map(|(key, value)| field(key, text(value))))
    };
    let mut fields = vec![
        field("name", text(&component.name)),
        field("appName", text(&app.name)),
        field("namespace", text(namespace)),
        field("appRevision", text(&app.revision)),
        field(
            "appRevisionNum",
            CueValue::Number(app.revision_number.into()),
        ),
        field("revision", text(&component_hash(component))),
        field("appLabels", values(&app.labels)),
        field("appAnnotations", values(&app.annotations)),
        field("components", app.components.clone()),
        field(
            "workflowName",
            text(app.annotation(annotation::WORKFLOW_NAME)),
        ),
        field(
            "publishVersion",
            text(app.annotation(annotation::PUBLISH_VERSION)),
        ),
        field("replicaKey", text(&target.replica_key)),
        field("cluster", text(target.cluster_name())),
        field("clusterVersion", from_json(&version.context())),
        field("parameter", from_json(&properties)),
    ];
    if !app.custom.is_empty() {
        let custom = Value::Object(app.custom.clone());
        fields.push(field("custom", from_json(&custom)));
    }
    fields
}

/// The context of a status snippet.
pub fn status_context(app: &AppContext, component: &str) -> Value {
    json!({
        "name": component,
        "appName": app.name,
        "appRevision": app.revision,
        "namespace": app.namespace,
    })
}
