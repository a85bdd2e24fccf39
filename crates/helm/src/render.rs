//! Renders the templates of a chart and of those inside of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bellwether_go::value::{Map as GoMap, Named, Numbers, Text, Value};
use bellwether_template::{
    Budget, Functions, MissingKey, Options, Phase, Query, Rendered, Set, TemplateError, World,
};
use serde_json::{Map, Value as Json};

use crate::chart::Chart;
use crate::error::{Error, Result};
use crate::files;
use crate::functions::{MARK_END, MARK_START, TABLE, WITHOUT};
use crate::objects::ChartObject;

/// The type of `.Values`.
static VALUES: Named = Named {
    name: "chartutil.Values",
    methods: &[],
};

/// What rendering came to.
pub(crate) enum Output {
    /// Texts by the paths of their templates.
    Files(BTreeMap<String, String>),
    /// What has to be looked up first.
    Needs(Vec<Query>),
}

/// What all templates of a release see.
pub(crate) struct Scene {
    pub(crate) release: Value,
    pub(crate) capabilities: Value,
}

struct Renderable {
    path: String,
    base_path: String,
    data: Arc<[u8]>,
    dot: GoMap,
}

/// Templates that were parsed before. A chart that is rendered often is parsed once, as long as the
/// same subcharts are enabled.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cache(Arc<Mutex<Option<Parsed>>>);

#[derive(Debug)]
struct Parsed {
    sources: Vec<(String, Arc<[u8]>)>,
    set: Arc<Set>,
}

impl Cache {
    /// The parsed templates, in the order in which they are given.
    fn set(&self, templates: &[Renderable]) -> Result<Arc<Set>> {
        // A poisoned lock still guards a whole entry: it is replaced at once.
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |parsed: &Parsed| {
            parsed.sources.len() == templates.len()
                && parsed
                    .sources
                    .iter()
                    .zip(templates)
                    .all(|((path, data), template)| {
                        *path == template.path && Arc::ptr_eq(data, &template.data)
                    })
        };
        if let Some(parsed) = cached.as_ref().filter(|parsed| is_same(parsed)) {
            return Ok(Arc::clone(&parsed.set));
        }
        let mut set = Set::new(options());
        for template in templates {
            set.add(&template.path, &String::from_utf8_lossy(&template.data))
                .map_err(|error| parse_error(&template.path, &error))?;
        }
        let set = Arc::new(set);
        let source = |template: &Renderable| (template.path.clone(), Arc::clone(&template.data));
        *cached = Some(Parsed {
            sources: templates.iter().map(source).collect(),
            set: Arc::clone(&set),
        });
        Ok(set)
    }
}

/// Renders all templates over values that are complete.
pub(crate) fn render(
    chart: &Chart,
    values: &Map<String, Json>,
    scene: &Scene,
    world: &World<'_>,
    budget: Budget,
) -> Result<Output> {
    let mut templates = Vec::new();
    let values = Value::from_json_with(&Json::Object(values.clone()), Numbers::Integers);
    add(chart, values, scene, chart.name(), true, &mut templates);
    // Deeper ones first, then by name from the end: of two equal definitions the last one counts.
    templates.sort_by_cached_key(|template| {
        let depth = template.path.matches('/').count();
        std::cmp::Reverse((depth, template.path.clone()))
    });
    let set = chart.parsed.set(&templates)?;
    let mut session = set.session(world, budget);
    let mut files = BTreeMap::new();
    let mut needs: Vec<Query> = Vec::new();
    for template in &templates {
        let name = template.path.rsplit('/').next().unwrap_or_default();
        if name.starts_with('_') {
            continue;
        }
        let about = [
            ("Name", Value::from(template.path.as_str())),
            ("BasePath", Value::from(template.base_path.as_str())),
        ];
        let about = about.map(|(name, value)| (Text::from(name), value));
        let about = GoMap::from_iter(about).with_name(&VALUES);
        template.dot.set(Text::from("Template"), Value::Map(about));
        let dot = Value::Map(template.dot.clone());
        match session.render(&template.path, &dot) {
            Ok(Rendered::Text(text)) => {
                let text = String::from_utf8_lossy(&text).replace("<no value>", "");
                files.insert(template.path.clone(), text);
            }
            Ok(Rendered::Needs(queries)) => needs.extend(queries),
            Err(error) => return Err(execution_error(&error)),
        }
    }
    if needs.is_empty() {
        return Ok(Output::Files(files));
    }
    Ok(Output::Needs(needs))
}

fn options() -> Options {
    let functions = Functions::sprig()
        .with(bellwether_template::toml::TABLE)
        .with(TABLE)
        .without(WITHOUT);
    let mut options = Options::new(functions);
    options.missing_key = MissingKey::Zero;
    options
}

/// Adds the templates of a chart; returns what they see.
fn add(
    chart: &Chart,
    values: Value,
    scene: &Scene,
    path: &str,
    is_root: bool,
    templates: &mut Vec<Renderable>,
) -> Value {
    let values = match values {
        Value::Map(values) => values,
        _ => GoMap::from_iter([]),
    };
    let subcharts = GoMap::from_iter([]);
    let dot = GoMap::from_iter([
        (Text::from("Chart"), ChartObject::value(chart, is_root)),
        (Text::from("Files"), files::value(&chart.files)),
        (Text::from("Release"), scene.release.clone()),
        (Text::from("Capabilities"), scene.capabilities.clone()),
        (
            Text::from("Values"),
            Value::Map(values.clone().with_name(&VALUES)),
        ),
        (Text::from("Subcharts"), Value::Map(subcharts.clone())),
    ]);
    let dot = if is_root { dot.with_name(&VALUES) } else { dot };
    for dependency in &chart.dependencies {
        let name = dependency.name();
        let own = values.get(name.as_bytes()).unwrap_or_default();
        let path = format!("{path}/charts/{name}");
        let seen = add(dependency, own, scene, &path, false, templates);
        subcharts.set(Text::from(name), seen);
    }
    for template in &chart.templates {
        let name = template.name.rsplit('/').next().unwrap_or_default();
        if chart.is_library() && !name.starts_with('_') {
            continue;
        }
        templates.push(Renderable {
            path: format!("{path}/{}", template.name),
            base_path: format!("{path}/templates"),
            data: Arc::clone(&template.data),
            dot: dot.clone(),
        });
    }
    Value::Map(dot)
}

fn parse_error(path: &str, error: &TemplateError) -> Error {
    let message = error.message();
    let last = message.rsplit(": ").next().unwrap_or(message);
    Error::Render(match error.location() {
        Some(location) => format!("parse error at ({location}): {last}"),
        None => format!("parse error in ({path}): {last}"),
    })
}

/// Messages of `fail` and `required` are shown without what led to them.
fn execution_error(error: &TemplateError) -> Error {
    let text = error.to_string();
    let marked = text
        .find(MARK_START)
        .zip(text.rfind(MARK_END))
        .filter(|(start, end)| start < end);
    if let (Some((start, end)), Some(location)) = (marked, error.location()) {
        let message = &text[start + MARK_START.len()..end];
        return Error::Render(format!("execution error at ({location}): {message}"));
    }
    if error.phase() == Phase::Budget {
        return Error::Render(format!(
            "{text}: the chart is refused because it costs too much"
        ));
    }
    Error::Render(text)
}
