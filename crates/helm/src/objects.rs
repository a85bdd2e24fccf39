//! What templates see beside values and files: the chart and the cluster.

use std::collections::BTreeMap;

use bellwether_go::value::{Kind, List, Map, Method, Named, Object, Text, Type, Value};
use serde_json::Value as Json;

use crate::capabilities::{HELM_VERSION, KubeVersion};
use crate::chart::Chart;
use crate::files::text_of;
use crate::metadata::Metadata;

/// `.Chart`
#[derive(Debug)]
pub(crate) struct ChartObject {
    metadata: Metadata,
    is_root: bool,
}

static CHART: Named = Named {
    name: "struct { chart.Metadata; IsRoot bool }",
    methods: &[],
};

/// The JSON keys of `chart.Metadata` in the order of its fields.
const MEMBERS: [&str; 17] = [
    "name",
    "home",
    "sources",
    "version",
    "description",
    "keywords",
    "maintainers",
    "icon",
    "apiVersion",
    "condition",
    "tags",
    "appVersion",
    "deprecated",
    "annotations",
    "kubeVersion",
    "dependencies",
    "type",
];

impl ChartObject {
    pub(crate) fn value(chart: &Chart, is_root: bool) -> Value {
        Value::object(Self {
            metadata: chart.metadata.clone(),
            is_root,
        })
    }
}

/// What a chart says about itself, which `.Chart` embeds.
#[derive(Debug)]
struct Embedded(Vec<(&'static str, Value)>);

static METADATA: Named = Named {
    name: "chart.Metadata",
    methods: &[],
};

impl Object for Embedded {
    fn named(&self) -> &'static Named {
        &METADATA
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        self.0.clone()
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl ChartObject {
    fn metadata_fields(&self) -> Vec<(&'static str, Value)> {
        let metadata = &self.metadata;
        let text = |text: &String| Value::from(text.as_str());
        vec![
            ("Name", text(&metadata.name)),
            ("Home", text(&metadata.home)),
            ("Sources", Value::strings(metadata.sources.iter())),
            ("Version", text(&metadata.version)),
            ("Description", text(&metadata.description)),
            ("Keywords", Value::strings(metadata.keywords.iter())),
            ("Maintainers", records(&MAINTAINER, &metadata.maintainers)),
            ("Icon", text(&metadata.icon)),
            ("APIVersion", text(&metadata.api_version)),
            ("Condition", text(&metadata.condition)),
            ("Tags", text(&metadata.tags)),
            ("AppVersion", text(&metadata.app_version)),
            ("Deprecated", Value::from(metadata.deprecated)),
            ("Annotations", texts(&metadata.annotations)),
            ("KubeVersion", text(&metadata.kube_version)),
            ("Dependencies", records(&DEPENDENCY, &metadata.dependencies)),
            ("Type", text(&metadata.chart_type)),
        ]
    }
}

impl Object for ChartObject {
    fn named(&self) -> &'static Named {
        &CHART
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        let mut fields = self.metadata_fields();
        fields.push(("IsRoot", Value::from(self.is_root)));
        fields
    }

    fn printed(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("Metadata", Value::object(Embedded(self.metadata_fields()))),
            ("IsRoot", Value::from(self.is_root)),
        ]
    }

    fn members(&self) -> Option<Vec<(&'static str, Value)>> {
        let data = serde_json::to_value(&self.metadata).unwrap_or_default();
        let value = |key: &str| match key {
            "maintainers" => records(&MAINTAINER, &self.metadata.maintainers),
            "dependencies" => records(&DEPENDENCY, &self.metadata.dependencies),
            key => Value::from_json(&data[key]),
        };
        let present = MEMBERS.iter().filter(|key| data.get(key).is_some());
        let mut members: Vec<_> = present.map(|key| (*key, value(key))).collect();
        members.push(("IsRoot", Value::from(self.is_root)));
        Some(members)
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

fn texts(texts: &BTreeMap<String, String>) -> Value {
    let entries = texts
        .iter()
        .map(|(key, text)| (Text::from(key), Value::from(text.as_str())));
    Value::Map(Map::new(&Type::String, entries.collect()))
}

/// A struct of a chart that is known by its JSON form: fields of Go's names and their JSON keys.
#[derive(Debug)]
struct Record {
    kind: &'static RecordKind,
    data: Json,
}

struct RecordKind {
    named: &'static Named,
    /// The type of elements of lists of it: pointers.
    pointer: &'static Type,
    fields: &'static [(&'static str, &'static str)],
}

impl std::fmt::Debug for RecordKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.named.name)
    }
}

static MAINTAINER_TYPE: Named = Named {
    name: "chart.Maintainer",
    methods: &[],
};

static DEPENDENCY_TYPE: Named = Named {
    name: "chart.Dependency",
    methods: &[],
};

static MAINTAINER: RecordKind = RecordKind {
    named: &MAINTAINER_TYPE,
    pointer: &Type::Named(&MAINTAINER_TYPE, Kind::Pointer),
    fields: &[("Name", "name"), ("Email", "email"), ("URL", "url")],
};

static DEPENDENCY: RecordKind = RecordKind {
    named: &DEPENDENCY_TYPE,
    pointer: &Type::Named(&DEPENDENCY_TYPE, Kind::Pointer),
    fields: &[
        ("Name", "name"),
        ("Version", "version"),
        ("Repository", "repository"),
        ("Condition", "condition"),
        ("Tags", "tags"),
        ("Enabled", "enabled"),
        ("ImportValues", "import-values"),
        ("Alias", "alias"),
    ],
};

fn records<T: serde::Serialize>(kind: &'static RecordKind, items: &[T]) -> Value {
    let record = |item: &T| {
        let data = serde_json::to_value(item).unwrap_or_default();
        Value::object(Record { kind, data })
    };
    Value::List(List::new(kind.pointer, items.iter().map(record).collect()))
}

impl Object for Record {
    fn named(&self) -> &'static Named {
        self.kind.named
    }

    fn kind(&self) -> Kind {
        Kind::Pointer
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        let field = |(name, key): &(&'static str, &'static str)| {
            let value = match (self.data.get(key), *name) {
                (tags, "Tags") => {
                    let tags = tags.and_then(Json::as_array).into_iter().flatten();
                    Value::strings(tags.filter_map(Json::as_str))
                }
                (Some(value), _) => Value::from_json(value),
                (None, "Enabled") => Value::from(false),
                (None, "ImportValues") => Value::list(Vec::new()),
                (None, _) => Value::from(""),
            };
            (*name, value)
        };
        self.kind.fields.iter().map(field).collect()
    }

    fn members(&self) -> Option<Vec<(&'static str, Value)>> {
        let member = |(_, key): &(&'static str, &'static str)| {
            let value = self.data.get(key)?;
            Some((*key, Value::from_json(value)))
        };
        Some(self.kind.fields.iter().filter_map(member).collect())
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// `.Capabilities`
#[derive(Debug)]
pub(crate) struct Capabilities {
    kube_version: KubeVersion,
    api_versions: Vec<String>,
}

static CAPABILITIES: Named = Named {
    name: "chartutil.Capabilities",
    methods: &[],
};

static VERSION_SET: Named = Named {
    name: "chartutil.VersionSet",
    methods: &[Method {
        name: "Has",
        parameters: &[Type::String],
        is_variadic: false,
        body: |receiver, arguments, meter| {
            let Value::List(versions) = receiver else {
                return Ok(Value::from(false));
            };
            meter.charge(versions.len())?;
            let wanted = text_of(arguments.first());
            let is_there = versions
                .iter()
                .any(|version| text_of(Some(version)) == wanted);
            Ok(Value::from(is_there))
        },
    }],
};

impl Capabilities {
    pub(crate) fn value(kube_version: KubeVersion, api_versions: Vec<String>) -> Value {
        Value::object(Self {
            kube_version,
            api_versions,
        })
    }
}

impl Object for Capabilities {
    fn named(&self) -> &'static Named {
        &CAPABILITIES
    }

    fn kind(&self) -> Kind {
        Kind::Pointer
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        let versions = self.api_versions.iter();
        let versions = versions.map(|version| Value::from(version.as_str()));
        let versions = List::new(&Type::String, versions.collect()).with_name(&VERSION_SET);
        vec![
            ("KubeVersion", Value::object(self.kube_version.clone())),
            ("APIVersions", Value::List(versions)),
            ("HelmVersion", Value::object(HelmVersion)),
        ]
    }

    fn members(&self) -> Option<Vec<(&'static str, Value)>> {
        Some(self.fields())
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

static KUBE_VERSION: Named = Named {
    name: "chartutil.KubeVersion",
    methods: &[
        Method {
            name: "GitVersion",
            parameters: &[],
            is_variadic: false,
            body: |receiver, _, _| Ok(kube_version(receiver)),
        },
        Method {
            name: "String",
            parameters: &[],
            is_variadic: false,
            body: |receiver, _, _| Ok(kube_version(receiver)),
        },
    ],
};

fn kube_version(receiver: &Value) -> Value {
    match receiver {
        Value::Object(object) => object.field(b"Version").unwrap_or_default(),
        _ => Value::default(),
    }
}

impl Object for KubeVersion {
    fn named(&self) -> &'static Named {
        &KUBE_VERSION
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("Version", Value::from(self.version.as_str())),
            ("Major", Value::from(self.major.as_str())),
            ("Minor", Value::from(self.minor.as_str())),
        ]
    }

    fn members(&self) -> Option<Vec<(&'static str, Value)>> {
        Some(self.fields())
    }

    fn pointer_string(&self) -> Option<String> {
        Some(self.version.clone())
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

#[derive(Debug)]
struct HelmVersion;

/// The version of Go whose templates these are.
const GO_VERSION: &str = "go1.26.8";

static BUILD_INFO: Named = Named {
    name: "version.BuildInfo",
    methods: &[],
};

impl Object for HelmVersion {
    fn named(&self) -> &'static Named {
        &BUILD_INFO
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("Version", Value::from(HELM_VERSION)),
            ("GitCommit", Value::from("")),
            ("GitTreeState", Value::from("")),
            ("GoVersion", Value::from(GO_VERSION)),
        ]
    }

    fn members(&self) -> Option<Vec<(&'static str, Value)>> {
        Some(vec![
            ("version", Value::from(HELM_VERSION)),
            ("go_version", Value::from(GO_VERSION)),
        ])
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}
