//! Which objects an object template is about: namespaces, names, and templates resolved for each.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use bellwether_api::policy::ObjectTemplate;
use bellwether_apply::compliance;
use bellwether_json::label::LabelSelector;
use bellwether_template::World;
use regex::Regex;
use serde_json::{Map, Value};

use super::evaluation::Situation;
use super::identity::{Identity, identity, version};
use super::{Finding, duty, namespaces, reason};
use crate::template::{
    Answer, Context, ManagedContext, Question, Request, Resolved, Resource, Side, Source, resolve,
};

/// The objects that have to be, or must not be, as defined.
#[derive(Debug, Clone)]
pub(super) struct Desired {
    pub(super) kind: TargetKind,
    pub(super) objects: Vec<Value>,
    /// Objects that a selector selects, but that have nothing of what must not be.
    pub(super) spared: Vec<Value>,
    /// Whether a template read a Secret or decrypted a text.
    pub(super) is_sensitive: bool,
}

/// How the kind of an object template is served.
#[derive(Debug, Clone)]
pub(super) struct TargetKind {
    pub(super) api_version: String,
    pub(super) kind: String,
    /// The plural name, without the group.
    pub(super) plural: String,
    pub(super) is_namespaced: bool,
}

/// Why there are no objects to look at.
#[derive(Debug, Clone)]
pub(super) enum Stop {
    /// Something has to be known first.
    Needs(Vec<Question>),
    /// It is over: this was found.
    Found {
        finding: Finding,
        /// The plural name of the kind, if it is known.
        plural: Option<String>,
        /// An error that is worth another evaluation, and keeps objects from being pruned.
        error: Option<String>,
    },
}

impl Stop {
    pub(super) fn found(
        finding: Finding,
        kind: Option<&TargetKind>,
        error: Option<String>,
    ) -> Self {
        Self::Found {
            finding,
            plural: kind.map(|kind| kind.plural.clone()),
            error,
        }
    }
}

static USES_OBJECT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\.Object\W").ok());
static USES_NAME: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\.ObjectName\W").ok());
static USES_NAMESPACE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\.ObjectNamespace\W").ok());

fn uses(pattern: &LazyLock<Option<Regex>>, text: &str) -> bool {
    pattern
        .as_ref()
        .is_some_and(|pattern| pattern.is_match(text))
}

/// Works out the objects of one object template.
pub(super) fn desired(
    situation: &Situation<'_>,
    template: &ObjectTemplate,
    world: &World<'_>,
) -> Result<Desired, Stop> {
    let identity = identity(&template.object_definition)?;
    if identity.kind.is_empty() || version(identity.api_version).is_empty() {
        let message = format!(
            "The kind and apiVersion fields are required on the object template at index {} in policy {}",
            situation.index, situation.policy_name
        );
        let finding = Finding::with_message(false, reason::DECODE_ERROR, message);
        return Err(Stop::found(finding, None, None));
    }
    let kind = target_kind(situation, &identity)?;
    let expansion = Expansion {
        situation,
        template,
        kind: &kind,
        name: literal(identity.name),
        namespace: literal(identity.namespace),
        is_namespace_templated: has_template(identity.namespace),
        has_own_name: !identity.name.is_empty(),
        has_own_namespace: !identity.namespace.is_empty(),
        text: template.object_definition.to_string(),
    };
    let places = expansion.places()?;
    let (mut objects, is_sensitive) = expansion.objects(&places, world)?;
    let mut spared = Vec::new();
    if template.compliance_type.is_must_not_have()
        && !expansion.has_own_name
        && template.object_selector.is_some()
    {
        (objects, spared) = expansion.matching(objects)?;
    }
    Ok(Desired {
        kind,
        objects,
        spared,
        is_sensitive,
    })
}

fn has_template(text: &str) -> bool {
    Side::Managed.has_template(text)
}

/// A text that is not a template, or nothing.
fn literal(text: &str) -> &str {
    if has_template(text) { "" } else { text }
}

fn target_kind(situation: &Situation<'_>, identity: &Identity<'_>) -> Result<TargetKind, Stop> {
    let question = Question::Resource {
        api_version: identity.api_version.to_owned(),
        kind: identity.kind.to_owned(),
    };
    match situation.facts.get(&question) {
        None => Err(Stop::Needs(vec![question])),
        Some(Answer::Resource(Resource {
            name,
            is_namespaced,
        })) => {
            let plural = name.split_once('.').map_or(name.as_str(), |(name, _)| name);
            Ok(TargetKind {
                api_version: identity.api_version.to_owned(),
                kind: identity.kind.to_owned(),
                plural: plural.to_owned(),
                is_namespaced: *is_namespaced,
            })
        }
        Some(Answer::Failed(error)) => {
            let finding = Finding::with_message(false, reason::MAPPING_ERROR, error.clone());
            Err(Stop::found(finding, None, Some(error.clone())))
        }
        Some(_) => {
            let message = format!(
                "couldn't find mapping resource with kind {} in API version {}, please check if you have CRD deployed",
                identity.kind, identity.api_version
            );
            let finding = Finding::with_message(false, reason::MAPPING_ERROR, message.clone());
            Err(Stop::found(finding, None, Some(message)))
        }
    }
}

/// Namespaces, and in each the names with the live objects where templates read them. An empty name
/// stands for any object.
type Places = BTreeMap<String, BTreeMap<String, Option<Value>>>;

/// One object template on its way to objects.
struct Expansion<'e> {
    situation: &'e Situation<'e>,
    template: &'e ObjectTemplate,
    kind: &'e TargetKind,
    /// The name and the namespace, unless they are templates.
    name: &'e str,
    namespace: &'e str,
    is_namespace_templated: bool,
    has_own_name: bool,
    has_own_namespace: bool,
    /// The definition as JSON.
    text: String,
}

impl Expansion<'_> {
    fn ask(&self, question: Question) -> Result<&Answer, Stop> {
        match self.situation.facts.get(&question) {
            Some(answer) => Ok(answer),
            None => Err(Stop::Needs(vec![question])),
        }
    }

    fn list(&self, namespace: &str, selector: &str) -> Result<&Answer, Stop> {
        self.ask(Question::List {
            api_version: self.kind.api_version.clone(),
            kind: self.kind.kind.clone(),
            namespace: namespace.to_owned(),
            selector: selector.to_owned(),
        })
    }

    fn failed(&self, reason: &str, message: String, error: Option<String>) -> Stop {
        let finding = Finding::with_message(false, reason, message);
        Stop::found(finding, Some(self.kind), error)
    }

    /// Names in a namespace before the object selector is looked at.
    fn default_names(&self) -> BTreeMap<String, Option<Value>> {
        let is_known = !self.name.is_empty() || self.template.object_selector.is_none();
        let names = is_known.then(|| (self.name.to_owned(), None));
        names.into_iter().collect()
    }

    /// Where objects are, by namespaces and selectors.
    fn places(&self) -> Result<Places, Stop> {
        let mut places = Places::new();
        if !self.kind.is_namespaced {
            places.insert(String::new(), self.default_names());
        } else if !self.namespace.is_empty() {
            places.insert(self.namespace.to_owned(), self.default_names());
        } else {
            for namespace in self.selected_namespaces()? {
                places.insert(namespace, self.default_names());
            }
            // What a template makes of it is checked later.
            if places.is_empty() && self.is_namespace_templated {
                places.insert(String::new(), self.default_names());
            }
        }
        if places.is_empty() {
            let name = spaced(self.name);
            let message = format!(
                "namespaced object{name} of kind {} has no namespace specified from the policy namespaceSelector nor the object metadata",
                self.kind.kind
            );
            return Err(self.failed(reason::MISSING_NAMESPACE, message, None));
        }
        if self.name.is_empty() {
            self.select(&mut places)?;
        } else if uses(&USES_OBJECT, &self.text) {
            self.fetch(&mut places)?;
        }
        Ok(places)
    }

    fn selected_namespaces(&self) -> Result<Vec<String>, Stop> {
        let Some(selector) = self.situation.namespace_selector else {
            return Ok(Vec::new());
        };
        if namespaces::is_empty(selector) {
            return Ok(Vec::new());
        }
        let answer = self.ask(Question::List {
            api_version: "v1".to_owned(),
            kind: "Namespace".to_owned(),
            namespace: String::new(),
            selector: String::new(),
        })?;
        let selected = match answer {
            Answer::Objects(objects) => namespaces::selected(selector, objects),
            Answer::Failed(error) => Err(error.clone()),
            _ => Ok(Vec::new()),
        };
        selected.map_err(|error| {
            let message =
                format!("Error filtering namespaces with provided namespaceSelector: {error}");
            self.failed(reason::NAMESPACE_SELECTOR, message, Some(error))
        })
    }

    /// Adds the names that the object selector selects.
    fn select(&self, places: &mut Places) -> Result<(), Stop> {
        let Some(selector) = &self.template.object_selector else {
            return Ok(());
        };
        let index = self.situation.index;
        let selector = LabelSelector::from_object(Some(selector)).map_err(|error| {
            let message = format!(
                "Error parsing provided objectSelector in the object-template at index [{index}]: {error}"
            );
            self.failed(reason::OBJECT_SELECTOR, message, Some(error.to_string()))
        })?;
        let needs_object = uses(&USES_OBJECT, &self.text);
        let mut needs = Vec::new();
        for (namespace, names) in places {
            match self.list(namespace, &selector.to_string()) {
                Ok(Answer::Objects(objects)) => {
                    for object in objects {
                        let name = object["metadata"]["name"].as_str().unwrap_or_default();
                        let object = needs_object.then(|| object.clone());
                        names.insert(name.to_owned(), object);
                    }
                }
                Ok(Answer::Failed(error)) => {
                    let message = format!(
                        "Error listing resources with provided objectSelector in the object-template at index [{index}]: {error}"
                    );
                    return Err(self.failed(reason::OBJECT_SELECTOR, message, Some(error.clone())));
                }
                Ok(_) => {}
                Err(Stop::Needs(more)) => needs.extend(more),
                Err(stop) => return Err(stop),
            }
        }
        none_or(needs)
    }

    /// Adds the live objects, for templates that read them.
    fn fetch(&self, places: &mut Places) -> Result<(), Stop> {
        if self.kind.is_namespaced && self.namespace.is_empty() && self.has_own_namespace {
            return Ok(());
        }
        let mut needs = Vec::new();
        for (namespace, names) in places {
            for (name, live) in names {
                let answer = self.ask(Question::Object {
                    api_version: self.kind.api_version.clone(),
                    kind: self.kind.kind.clone(),
                    namespace: namespace.clone(),
                    name: name.clone(),
                });
                match answer {
                    Ok(Answer::Object(object)) => *live = Some(object.clone()),
                    Ok(_) => {}
                    Err(Stop::Needs(more)) => needs.extend(more),
                    Err(stop) => return Err(stop),
                }
            }
        }
        none_or(needs)
    }

    /// The objects, with templates resolved.
    fn objects(&self, places: &Places, world: &World<'_>) -> Result<(Vec<Value>, bool), Stop> {
        let has_template = self.situation.resolves_templates && has_template(&self.text);
        let per_namespace = has_template && uses(&USES_NAMESPACE, &self.text);
        let per_name =
            has_template && (uses(&USES_NAME, &self.text) || uses(&USES_OBJECT, &self.text));
        let mut objects = Vec::new();
        let mut is_sensitive = false;
        let mut is_skipped = false;
        let mut shared: Option<Value> = None;
        let mut needs = Vec::new();
        for (namespace, names) in places {
            if per_namespace {
                shared = None;
            }
            for (name, live) in names {
                if per_name {
                    shared = None;
                }
                if let Some(shared) = &shared {
                    objects.push(renamed(shared, namespace, name));
                    continue;
                }
                let object = if has_template {
                    match self.resolved(namespace, name, live.as_ref(), world) {
                        Ok(Some((object, sensitive))) => {
                            is_sensitive |= sensitive;
                            object
                        }
                        Ok(None) => {
                            is_skipped = true;
                            continue;
                        }
                        Err(Stop::Needs(more)) => {
                            needs.extend(more);
                            continue;
                        }
                        Err(stop) => return Err(stop),
                    }
                } else {
                    self.template.object_definition.clone()
                };
                let object = self.completed(object, namespace, name)?;
                shared = Some(object.clone());
                objects.push(object);
            }
        }
        none_or(needs)?;
        if objects.is_empty() {
            return Err(self.nothing_left(is_skipped));
        }
        Ok((objects, is_sensitive))
    }

    /// The definition with its templates resolved; nothing if it asks to be skipped.
    fn resolved(
        &self,
        namespace: &str,
        name: &str,
        live: Option<&Value>,
        world: &World<'_>,
    ) -> Result<Option<(Value, bool)>, Stop> {
        let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let live = live.map(|live| {
            let mut live = live.clone();
            if let Some(metadata) = live.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("managedFields");
            }
            live
        });
        let request = Request {
            context: Context::Managed(ManagedContext {
                object_name: known(name),
                object_namespace: known(namespace),
                object: live,
            }),
            source: Source::Definition(self.template.object_definition.clone()),
            restriction: None,
            encrypt: None,
            decrypt: self.situation.options.keys.clone(),
            denied: Vec::new(),
        };
        match resolve(&request, self.situation.facts, world) {
            Resolved::Needs(questions) => Err(Stop::Needs(questions)),
            Resolved::Done(done) if done.is_skipped => Ok(None),
            Resolved::Done(done) => match done.value {
                Ok(value) => Ok(Some((value, done.is_sensitive))),
                Err(error) => {
                    let error = error.to_string();
                    Err(self.failed(reason::TEMPLATE_ERROR, error.clone(), Some(error)))
                }
            },
        }
    }

    /// A resolved definition with name and namespace filled in.
    fn completed(&self, mut object: Value, namespace: &str, name: &str) -> Result<Value, Stop> {
        if !object.is_object() || object["kind"].as_str().is_none_or(str::is_empty) {
            let quoted = object.to_string();
            let error = format!("Object 'Kind' is missing in '{quoted}'");
            let message = format!(
                "Decoding error, please check your policy file! Aborting handling the object template at index [{}] in policy `{}` with error = `{error}`",
                self.situation.index, self.situation.policy_name
            );
            return Err(self.failed(reason::DECODE_ERROR, message, Some(error)));
        }
        if !object["metadata"].is_object() {
            object["metadata"] = Value::Object(Map::new());
        }
        let kind = object["kind"]
            .as_str()
            .unwrap_or_default()
            .trim()
            .to_owned();
        object["kind"] = Value::String(kind);
        let own = |object: &Value, key: &str, default: &str| {
            let own = object["metadata"][key].as_str().unwrap_or_default();
            let own = if own.is_empty() { default } else { own };
            own.trim().to_owned()
        };
        let own_name = own(&object, "name", name);
        let own_namespace = own(&object, "namespace", namespace);
        set_or_remove(&mut object, "name", &own_name);
        set_or_remove(&mut object, "namespace", &own_namespace);
        let selector = self.situation.namespace_selector;
        let has_selector = selector.is_some_and(|selector| !namespaces::is_empty(selector));
        if has_selector && own_namespace != namespace {
            let message = "The object definition's namespace must match the result from the namespace selector after template resolution";
            return Err(self.failed(reason::TEMPLATE_ERROR, message.to_owned(), None));
        }
        if self.kind.is_namespaced && self.is_namespace_templated && own_namespace.is_empty() {
            let message = format!(
                "namespaced object{} of kind {} has no namespace specified after template resolution",
                spaced(self.name),
                self.kind.kind
            );
            return Err(self.failed(reason::TEMPLATE_ERROR, message, None));
        }
        if self.template.object_selector.is_some() && own_name != name {
            let message = "The object definition's name must match the result from the object selector after template resolution";
            return Err(self.failed(reason::TEMPLATE_ERROR, message.to_owned(), None));
        }
        Ok(object)
    }

    fn nothing_left(&self, is_skipped: bool) -> Stop {
        let kind = &self.kind.kind;
        let message = if is_skipped {
            format!("All objects of kind {kind} were skipped by the `skipObject` template function")
        } else if self.template.object_selector.is_some() {
            format!("No objects of kind {kind} were matched from the policy objectSelector")
        } else {
            format!("No objects of kind {kind} were matched from the objectDefinition metadata")
        };
        Stop::found(
            Finding::with_message(true, "", message),
            Some(self.kind),
            None,
        )
    }

    /// Of selected objects those that have what must not be, and the others.
    fn matching(&self, objects: Vec<Value>) -> Result<(Vec<Value>, Vec<Value>), Stop> {
        let (mut matching, mut spared) = (Vec::new(), Vec::new());
        for object in objects {
            let metadata = &object["metadata"];
            let namespace = metadata["namespace"].as_str().unwrap_or_default();
            let name = metadata["name"].as_str().unwrap_or_default();
            let answer = self.ask(Question::Object {
                api_version: self.kind.api_version.clone(),
                kind: self.kind.kind.clone(),
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            })?;
            let mut unnamed = object.clone();
            set_or_remove(&mut unnamed, "name", "");
            if let Answer::Object(live) = answer
                && compliance::matches(&unnamed, live, duty(&self.template.compliance_type))
            {
                matching.push(object);
            } else {
                spared.push(object);
            }
        }
        Ok((matching, spared))
    }
}

fn none_or(needs: Vec<Question>) -> Result<(), Stop> {
    if needs.is_empty() {
        Ok(())
    } else {
        Err(Stop::Needs(needs))
    }
}

fn spaced(name: &str) -> String {
    if name.is_empty() {
        String::new()
    } else {
        format!(" {name}")
    }
}

fn set_or_remove(object: &mut Value, key: &str, value: &str) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    if value.is_empty() {
        metadata.remove(key);
    } else {
        metadata.insert(key.to_owned(), Value::String(value.to_owned()));
    }
}

/// The same object elsewhere. A name that a template gave stays where no other is known.
fn renamed(object: &Value, namespace: &str, name: &str) -> Value {
    let mut renamed = object.clone();
    if !name.is_empty() {
        set_or_remove(&mut renamed, "name", name.trim());
    }
    set_or_remove(&mut renamed, "namespace", namespace.trim());
    renamed
}
