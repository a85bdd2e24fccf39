//! JSON lines for scripts: a template of a policy and the objects of a cluster in, its value out.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether_api::cluster::GROUP as CLUSTER_GROUP;
use bellwether_json::label::LabelSelector;
use bellwether_json::number;
use bellwether_json::yaml::from_yaml;
use bellwether_template::World;
use serde::{Deserialize, Serialize as _};
use serde_json::ser::{Formatter, Serializer};
use serde_json::{Value, json};

use super::{
    Answer, Cluster, Context, EncryptionError, HubContext, Keys, ManagedContext, Question, Request,
    Resolved, Resource, Restriction, Side, Source, resolve,
};

#[derive(Debug, Deserialize)]
struct Case {
    #[serde(default)]
    id: Value,
    side: CaseSide,
    template: Value,
    #[serde(default)]
    objects: Vec<String>,
    #[serde(default)]
    context: Value,
    #[serde(default)]
    options: Flags,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum CaseSide {
    Hub,
    Managed,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
struct Flags {
    raw: bool,
    service_account: bool,
    encrypt: bool,
    decrypt: bool,
    key: Option<String>,
    previous_key: Option<String>,
    iv: Option<String>,
    deny_functions: Vec<String>,
    kinds: Vec<ServedKind>,
}

#[derive(Debug, Deserialize)]
struct ServedKind {
    #[serde(default)]
    group: String,
    version: String,
    kind: String,
    plural: String,
    scope: String,
}

/// Answers `{"id", "side", "template", "objects", "context", "options"}` with `{"id",
/// "hasTemplate", "value"}` or `{"id", "hasTemplate", "error"}`, and with `prepared`, `text`,
/// `skipped` and `sensitive` where they apply.
pub fn answer(line: &str, world: &World<'_>) -> String {
    let case: Case = match serde_json::from_str(line) {
        Ok(case) => case,
        Err(error) => return json!({"error": format!("unreadable case: {error}")}).to_string(),
    };
    let id = case.id.clone();
    let mut answer = answered(case, world).unwrap_or_else(|error| json!({"error": error}));
    answer["id"] = id;
    written(&answer)
}

/// Floats as Go writes them: all digits of those below `1e21`.
struct GoFloats;

impl Formatter for GoFloats {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, float: f64) -> io::Result<()> {
        writer.write_all(number::go_json_float(float).as_bytes())
    }
}

fn written(answer: &Value) -> String {
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, GoFloats);
    match answer.serialize(&mut serializer) {
        Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => answer.to_string(),
    }
}

fn answered(case: Case, world: &World<'_>) -> Result<Value, String> {
    let source = match case.template {
        Value::String(text) if case.options.raw => Source::Raw(text),
        definition => Source::Definition(definition),
    };
    let side = match case.side {
        CaseSide::Hub => Side::Hub,
        CaseSide::Managed => Side::Managed,
    };
    let mut answer = json!({"hasTemplate": side.has_template(&source.quoted())});
    let keys = match keys(&case.options) {
        Ok(keys) => keys,
        Err(error) => {
            answer["error"] = json!(format!("error validating EncryptionConfig: {error}"));
            return Ok(answer);
        }
    };
    let context = context(side, case.context)?;
    let is_definition = matches!(source, Source::Definition(_));
    let request = Request {
        restriction: restriction(&context, case.options.service_account),
        context,
        source,
        encrypt: keys.clone().filter(|_| case.options.encrypt),
        decrypt: keys.filter(|_| case.options.decrypt),
        denied: case.options.deny_functions,
    };
    let cluster = Fixture::new(&case.objects, case.options.kinds)?;
    let Resolved::Done(done) = resolve(&request, &cluster, world) else {
        return Err("the template asks for what the objects do not tell".to_owned());
    };
    if is_definition {
        answer["prepared"] = json!(done.prepared);
    }
    if let Some(text) = done.text {
        answer["text"] = json!(text);
    }
    match done.value {
        Ok(value) => answer["value"] = value,
        Err(error) => answer["error"] = json!(error.to_string()),
    }
    for (name, is_set) in [
        ("skipped", done.is_skipped),
        ("sensitive", done.is_sensitive),
    ] {
        if is_set {
            answer[name] = json!(true);
        }
    }
    Ok(answer)
}

fn context(side: Side, context: Value) -> Result<Context, String> {
    let context = if context.is_null() {
        json!({})
    } else {
        context
    };
    let wrong = |error: serde_json::Error| format!("unreadable context: {error}");
    Ok(match side {
        Side::Hub => Context::Hub(serde_json::from_value::<HubContext>(context).map_err(wrong)?),
        Side::Managed => {
            Context::Managed(serde_json::from_value::<ManagedContext>(context).map_err(wrong)?)
        }
    })
}

fn restriction(context: &Context, has_service_account: bool) -> Option<Restriction> {
    match context {
        Context::Hub(hub) if !has_service_account => Some(Restriction {
            namespace: hub.policy_metadata.namespace.clone(),
            cluster: hub.managed_cluster_name.clone(),
        }),
        _ => None,
    }
}

fn keys(flags: &Flags) -> Result<Option<Keys>, EncryptionError> {
    if !flags.encrypt && !flags.decrypt {
        return Ok(None);
    }
    let decoded = |text: &Option<String>| Some(STANDARD.decode(text.as_ref()?).unwrap_or_default());
    let vector = decoded(&flags.iv);
    Keys::new(
        decoded(&flags.key),
        decoded(&flags.previous_key),
        vector.as_deref(),
    )
    .map(Some)
}

/// A cluster of given objects.
struct Fixture {
    /// By namespace and name.
    objects: Vec<Value>,
    kinds: Vec<ServedKind>,
}

impl Fixture {
    fn new(texts: &[String], mut kinds: Vec<ServedKind>) -> Result<Self, String> {
        let mut objects = Vec::new();
        for text in texts {
            let found = from_yaml(text).map_err(|error| format!("unreadable object: {error}"))?;
            objects.extend(found);
        }
        objects.sort_by_key(|object| (metadata(object, "namespace"), metadata(object, "name")));
        let of_clusters = |version: &str, kind: &str, plural: &str| ServedKind {
            group: CLUSTER_GROUP.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            scope: "root".to_owned(),
        };
        kinds.push(of_clusters("v1alpha1", "ClusterClaim", "clusterclaims"));
        kinds.push(of_clusters("v1", "ManagedCluster", "managedclusters"));
        Ok(Self { objects, kinds })
    }

    fn resource(&self, api_version: &str, kind: &str) -> Option<Resource> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let (plural, is_namespaced) =
            if let Some(known) = bellwether_kinds::find_kind(group, version, kind) {
                (known.plural, known.namespaced)
            } else {
                let is_it =
                    |k: &&ServedKind| k.group == group && k.version == version && k.kind == kind;
                let served = self.kinds.iter().find(is_it)?;
                (served.plural.as_str(), served.scope != "root")
            };
        let name = match group {
            "" => plural.to_owned(),
            group => format!("{plural}.{group}"),
        };
        Some(Resource {
            name,
            is_namespaced,
        })
    }
}

fn metadata(object: &Value, field: &str) -> String {
    let text = object["metadata"][field].as_str();
    text.unwrap_or_default().to_owned()
}

impl Cluster for Fixture {
    fn answer(&self, question: &Question) -> Option<Answer> {
        let of = |api_version: &str, kind: &str| {
            let (api_version, kind) = (json!(api_version), json!(kind));
            self.objects
                .iter()
                .filter(move |o| o["apiVersion"] == api_version && o["kind"] == kind)
        };
        Some(match question {
            Question::Resource { api_version, kind } => self
                .resource(api_version, kind)
                .map_or(Answer::Nothing, Answer::Resource),
            Question::Object {
                api_version,
                kind,
                namespace,
                name,
            } => of(api_version, kind)
                .find(|o| metadata(o, "namespace") == *namespace && metadata(o, "name") == *name)
                .map_or(Answer::Nothing, |object| Answer::Object(object.clone())),
            Question::List {
                api_version,
                kind,
                namespace,
                selector,
            } => {
                let selector = LabelSelector::parse(selector).ok()?;
                let objects = of(api_version, kind)
                    .filter(|o| namespace.is_empty() || metadata(o, "namespace") == *namespace)
                    .filter(|o| selector.matches_object(o));
                Answer::Objects(objects.cloned().collect())
            }
        })
    }
}
