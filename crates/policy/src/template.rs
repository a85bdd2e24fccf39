//! The Go templates in policies.
//!
//! A definition goes through these steps: JSON to YAML, decryption, rewriting (`prepare`),
//! `text/template` with the functions of `functions`, and YAML to JSON. Objects that a template
//! looks up are asked for ([`Resolved::Needs`]) and never fetched: the caller answers the questions
//! and resolves again. Error texts are those of go-template-utils 7.3.

mod context;
mod encryption;
mod functions;
mod lookup;
mod prepare;
pub mod probe;
mod scene;
#[cfg(test)]
mod tests;
mod yaml;

use bellwether_go::value::JsonError;
use bellwether_json::yaml::{NodeError, first_node, to_yaml_with};
use bellwether_template::{Budget, Options, Phase, Rendered, Set, TemplateError, World};
use serde_json::Value as Json;

pub use context::{Context, HubContext, ManagedContext, PolicyMetadata};
pub use encryption::{EncryptionError, Keys, PREFIX};
pub use lookup::{Answer, Cluster, Question, Resource, Restriction};

use scene::Scene;

/// The name of the template in errors.
const NAME: &str = "tmpl";

/// Where a template is resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// On the hub: `{{hub … hub}}`.
    Hub,
    /// On the managed cluster: `{{ … }}`.
    Managed,
}

impl Side {
    const fn delimiters(self) -> (&'static str, &'static str) {
        match self {
            Self::Hub => ("{{hub", "hub}}"),
            Self::Managed => ("{{", "}}"),
        }
    }

    /// Columns that `indent` adds: a definition stands deeper in a policy of the hub.
    const fn indentation(self) -> i64 {
        match self {
            Self::Hub => 8,
            Self::Managed => 0,
        }
    }

    /// Whether a text has anything to resolve on this side.
    pub fn has_template(self, text: &str) -> bool {
        text.contains(self.delimiters().0) || (self == Self::Managed && text.contains(PREFIX))
    }
}

/// What is resolved.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// An object definition or a part of one.
    Definition(Json),
    /// The text of `object-templates-raw`.
    Raw(String),
}

impl Source {
    /// The text that errors quote.
    pub fn quoted(&self) -> String {
        match self {
            Self::Definition(definition) => definition.to_string(),
            Self::Raw(text) => text.clone(),
        }
    }

    fn to_yaml(&self) -> String {
        match self {
            Self::Definition(definition) => to_yaml_with(definition, yaml::STYLE),
            Self::Raw(text) => text.clone(),
        }
    }
}

/// One resolution.
#[derive(Debug, Clone)]
pub struct Request {
    /// Where it takes place; the context says it.
    pub context: Context,
    /// What is resolved.
    pub source: Source,
    /// What may be looked up; without one, everything.
    pub restriction: Option<Restriction>,
    /// The keys that `protect`, `fromSecret` and `copySecretData` encrypt with.
    pub encrypt: Option<Keys>,
    /// The keys that encrypted texts are decrypted with.
    pub decrypt: Option<Keys>,
    /// Functions that may not be called, besides those that read the environment.
    pub denied: Vec<String>,
}

/// What came of a resolution.
#[derive(Debug, Clone, PartialEq)]
pub enum Resolved {
    /// It ended.
    Done(Box<Resolution>),
    /// What has to be known first: answer these, and resolve again.
    Needs(Vec<Question>),
}

/// A resolution that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolution {
    /// The text that was executed: positions in errors refer to it. Empty if there was none.
    pub prepared: String,
    /// What the template wrote.
    pub text: Option<String>,
    /// The value, or what is wrong.
    pub value: Result<Json, ResolveError>,
    /// Whether `skipObject` asked to leave the object out.
    pub is_skipped: bool,
    /// Whether a Secret was read or a text decrypted, so that differences have to be redacted.
    pub is_sensitive: bool,
}

/// Why a template has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// An encrypted text cannot be decrypted.
    #[error("decryption of {0} failed: {1}")]
    Decrypt(String, EncryptionError),
    /// The text is not a template.
    #[error("failed to parse the template JSON string {0}: {1}")]
    Parse(String, String),
    /// The template failed.
    #[error("failed to resolve the template {0}: {1}")]
    Execute(String, String),
    /// What it wrote is not YAML.
    #[error("failed to convert the resolved template to JSON: {0}")]
    Yaml(NodeError),
    /// What it wrote is YAML that JSON cannot hold.
    #[error("failed to convert the resolved template to JSON: {0}")]
    Json(JsonError),
}

/// Resolves the templates of a definition.
pub fn resolve(request: &Request, cluster: &dyn Cluster, world: &World<'_>) -> Resolved {
    let scene = Scene::new(request, cluster);
    let Some(dot) = scene.dot() else {
        return Resolved::Needs(scene.into_needs());
    };
    let mut resolution = Resolution {
        prepared: String::new(),
        text: None,
        value: Ok(Json::Null),
        is_skipped: false,
        is_sensitive: false,
    };
    match prepare::prepare(request) {
        Err(error) => {
            resolution.is_sensitive = true;
            resolution.value = Err(error);
        }
        Ok(prepared) => {
            let world = World {
                facts: &scene,
                ..*world
            };
            let rendered = render(request, &prepared.text, &dot, &world);
            resolution.prepared = prepared.text;
            match rendered {
                Ok(Rendered::Needs(_)) => return Resolved::Needs(scene.into_needs()),
                Ok(Rendered::Text(text)) => {
                    let text = String::from_utf8(text);
                    resolution.value = match &text {
                        Ok(text) => value_of(text),
                        Err(_) => Err(ResolveError::Yaml(NodeError("invalid UTF-8".to_owned()))),
                    };
                    resolution.text = text.ok();
                }
                Err(error) => resolution.value = Err(failed(request, &error)),
            }
            resolution.is_skipped = scene.is_skipped();
            resolution.is_sensitive = prepared.is_decrypted || scene.is_sensitive();
        }
    }
    Resolved::Done(Box::new(resolution))
}

fn render(
    request: &Request,
    text: &str,
    dot: &bellwether_template::Value,
    world: &World<'_>,
) -> Result<Rendered, TemplateError> {
    let (left, right) = request.context.side().delimiters();
    let mut set = Set::new(Options {
        delimiters: (left.to_owned(), right.to_owned()),
        ..Options::new(functions::of(request))
    });
    set.add(NAME, text)?;
    set.render(NAME, dot, world, &mut Budget::default())
}

fn failed(request: &Request, error: &TemplateError) -> ResolveError {
    let quoted = request.source.quoted();
    match error.phase() {
        Phase::Parse => ResolveError::Parse(quoted, error.to_string()),
        Phase::Execute | Phase::Budget => {
            ResolveError::Execute(quoted, functions::name_denied(&error.to_string()))
        }
    }
}

/// The value of what a template wrote.
fn value_of(text: &str) -> Result<Json, ResolveError> {
    let node = first_node(text).map_err(ResolveError::Yaml)?;
    yaml::to_json(node).map_err(ResolveError::Json)
}
