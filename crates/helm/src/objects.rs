//! What templates see beside values: the chart, its files, and the cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use bellwether_go::value::{
    Kind, List, Map, Meter, Method, Named, Object, Text, Type, UintKind, Value,
};
use serde_json::Value as Json;

use crate::capabilities::{HELM_VERSION, KubeVersion};
use crate::chart::{Chart, File};
use crate::glob;
use crate::metadata::Metadata;

static BYTE: Type = Type::Uint(UintKind::Uint8);
static BYTES: Type = Type::List(&BYTE);

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

impl Object for ChartObject {
    fn named(&self) -> &'static Named {
        &CHART
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
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
    named: Named,
    fields: &'static [(&'static str, &'static str)],
}

impl std::fmt::Debug for RecordKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.named.name)
    }
}

static MAINTAINER: RecordKind = RecordKind {
    named: Named {
        name: "chart.Maintainer",
        methods: &[],
    },
    fields: &[("Name", "name"), ("Email", "email"), ("URL", "url")],
};

static DEPENDENCY: RecordKind = RecordKind {
    named: Named {
        name: "chart.Dependency",
        methods: &[],
    },
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
    Value::list(items.iter().map(record).collect())
}

impl Object for Record {
    fn named(&self) -> &'static Named {
        &self.kind.named
    }

    fn kind(&self) -> Kind {
        Kind::Pointer
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        let field = |(name, key): &(&'static str, &'static str)| {
            let value = match (self.data.get(key), *name) {
                (Some(value), _) => Value::from_json(value),
                (None, "Enabled") => Value::from(false),
                (None, "Tags" | "ImportValues") => Value::list(Vec::new()),
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

/// `.Files`
#[derive(Debug, Clone)]
pub(crate) struct Files(Arc<BTreeMap<String, Arc<[u8]>>>);

static FILES: Named = Named {
    name: "engine.files",
    methods: &[
        Method {
            name: "Get",
            parameters: &[Type::String],
            is_variadic: false,
            body: |receiver, arguments, meter| {
                let content = Files::of(receiver)?.content(arguments);
                meter.charge(content.len())?;
                Ok(Value::String(Text::from(&content[..])))
            },
        },
        Method {
            name: "GetBytes",
            parameters: &[Type::String],
            is_variadic: false,
            body: |receiver, arguments, meter| {
                let content = Files::of(receiver)?.content(arguments);
                bytes(&content, meter)
            },
        },
        Method {
            name: "Glob",
            parameters: &[Type::String],
            is_variadic: false,
            body: |receiver, arguments, meter| Files::of(receiver)?.glob(arguments, meter),
        },
        Method {
            name: "AsConfig",
            parameters: &[],
            is_variadic: false,
            body: |receiver, _, meter| {
                let text = |content: &[u8]| String::from_utf8_lossy(content).into_owned();
                Files::of(receiver)?.as_yaml(text, meter)
            },
        },
        Method {
            name: "AsSecrets",
            parameters: &[],
            is_variadic: false,
            body: |receiver, _, meter| {
                let engine = base64::engine::general_purpose::STANDARD;
                Files::of(receiver)?.as_yaml(|content| engine.encode(content), meter)
            },
        },
        Method {
            name: "Lines",
            parameters: &[Type::String],
            is_variadic: false,
            body: |receiver, arguments, meter| {
                let content = Files::of(receiver)?.content(arguments);
                meter.charge(content.len())?;
                let text = String::from_utf8_lossy(&content);
                let text = text.strip_suffix('\n').unwrap_or(&text);
                if content.is_empty() {
                    return Ok(Value::strings(Vec::<String>::new()));
                }
                Ok(Value::strings(text.split('\n')))
            },
        },
    ],
};

impl Files {
    pub(crate) fn value(files: &[File]) -> Value {
        let files = files
            .iter()
            .map(|file| (file.name.to_string(), Arc::clone(&file.data)));
        Value::object(Self(Arc::new(files.collect())))
    }

    /// The files behind a receiver: `.Files` itself, or what a glob returned.
    fn of(receiver: &Value) -> Result<Self, String> {
        match receiver {
            Value::Object(object) => {
                let files = object.as_any().downcast_ref::<Self>().cloned();
                files.ok_or_else(|| "not files".to_owned())
            }
            Value::Map(map) => {
                let entries = map.entries();
                let files = entries.iter().map(|(name, content)| {
                    let content: Arc<[u8]> = match content {
                        Value::List(list) => list.iter().filter_map(byte).collect(),
                        _ => Arc::from(&[][..]),
                    };
                    (name.to_str().into_owned(), content)
                });
                Ok(Self(Arc::new(files.collect())))
            }
            _ => Err("not files".to_owned()),
        }
    }

    fn content(&self, arguments: &[Value]) -> Arc<[u8]> {
        let name = text_of(arguments.first());
        self.0
            .get(&name)
            .cloned()
            .unwrap_or_else(|| Arc::from(&[][..]))
    }

    fn glob(&self, arguments: &[Value], meter: &mut dyn Meter) -> Result<Value, String> {
        let pattern = text_of(arguments.first());
        let mut found = BTreeMap::new();
        for (name, content) in self.0.iter() {
            meter.charge(name.len() * pattern.len())?;
            if glob::matches(&pattern, name) == Some(true) {
                found.insert(Text::from(name), bytes(content, meter)?);
            }
        }
        Ok(Value::Map(Map::new(&BYTES, found).with_name(&FILES)))
    }

    fn as_yaml(
        &self,
        text: impl Fn(&[u8]) -> String,
        meter: &mut dyn Meter,
    ) -> Result<Value, String> {
        if self.0.is_empty() {
            return Ok(Value::from(""));
        }
        let mut members = serde_json::Map::new();
        for (name, content) in self.0.iter() {
            meter.charge(content.len())?;
            let base = name.rsplit('/').next().unwrap_or(name);
            members.insert(base.to_owned(), Json::String(text(content)));
        }
        let yaml = bellwether_json::yaml::to_yaml(&Json::Object(members));
        Ok(Value::from(yaml.trim_end_matches('\n')))
    }
}

fn byte(value: &Value) -> Option<u8> {
    match value {
        Value::Uint(_, value) => u8::try_from(*value).ok(),
        _ => None,
    }
}

fn bytes(content: &[u8], meter: &mut dyn Meter) -> Result<Value, String> {
    meter.charge(content.len().saturating_mul(size_of::<Value>()))?;
    let items = content
        .iter()
        .map(|byte| Value::Uint(UintKind::Uint8, u64::from(*byte)));
    Ok(Value::List(List::new(&BYTE, items.collect())))
}

fn text_of(argument: Option<&Value>) -> String {
    match argument {
        Some(Value::String(text)) => text.to_str().into_owned(),
        _ => String::new(),
    }
}

impl Object for Files {
    fn named(&self) -> &'static Named {
        &FILES
    }

    fn kind(&self) -> Kind {
        Kind::Map
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

    fn string(&self) -> Option<String> {
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
