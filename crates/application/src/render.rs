//! Rendering a component: its template, then its traits, which change the value while it is still open.
//!
//! A component is evaluated with its parameters and [context](crate::context). Traits follow in order: each
//! sees what came out so far as `context.output` and `context.outputs`, may add outputs of its own, and may patch
//! the component (`patch`) and the outputs so far (`patchOutputs`). Values stay open until the end, so that a
//! trait can still override a default of the component.

use std::sync::Arc;

use bellwether_api::oam::names::{component_type, label};
use bellwether_api::oam::{ApplicationComponent, TraitStage};
use bellwether_cue::bridge::from_json;
use bellwether_cue::diagnostic::Diagnostic;
use bellwether_cue::host::{Budget, Evaluation, FieldOptions, Handle, SyntaxOptions, Template};
use bellwether_cue::patch::{self, Operand, Strategy};
use bellwether_cue::value::Value as CueValue;
use serde_json::Value;

use crate::chart;
use crate::context::{AppContext, Field, Target, component_context, field};
use crate::definition::{CompiledTemplate, Definition};
use crate::error::{Class, Problems, RenderError, Stage};
use crate::terraform;
use crate::world::ClusterVersion;

/// A component with its definitions.
#[derive(Debug, Clone)]
pub struct Component {
    /// As it is written, after overrides.
    pub spec: ApplicationComponent,
    /// By what it is rendered.
    pub definition: Arc<Definition>,
    /// Its traits, in order.
    pub traits: Vec<Trait>,
}

/// A trait with its definition.
#[derive(Debug, Clone)]
pub struct Trait {
    /// Its parameters; absent where none are written.
    pub properties: Option<Value>,
    /// By what it is rendered.
    pub definition: Arc<Definition>,
}

/// What a component is rendered to, without labels yet.
#[derive(Debug, Clone, Default)]
pub struct Rendered {
    /// What the component is; `None` for a policy without output.
    pub workload: Option<Value>,
    /// Whether a trait applies the workload itself.
    pub skip_workload: bool,
    /// Further objects: outputs of the component, then those of its traits.
    pub outputs: Vec<Output>,
}

/// A further object of a component.
#[derive(Debug, Clone)]
pub struct Output {
    /// Type of the trait that it belongs to; that of further outputs of the component is special.
    pub trait_type: String,
    /// Name of the output.
    pub resource: String,
    /// The definition of the trait, if it belongs to one.
    pub definition: Option<Arc<Definition>>,
    /// The object.
    pub object: Value,
}

impl Output {
    /// When the object is applied.
    pub fn stage(&self) -> TraitStage {
        self.definition
            .as_ref()
            .map_or(TraitStage::DefaultDispatch, |definition| definition.stage())
    }
}

/// How far a component is rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// To objects.
    Objects,
    /// Only so far that contradictions show. Parameters may be missing, outputs must have different names.
    Check,
}

/// Renders a component with its traits.
pub fn render(
    component: &Component,
    app: &AppContext,
    target: &Target,
    version: &ClusterVersion,
    mode: Mode,
) -> Result<Rendered, RenderError> {
    if let Some(object) = terraform::render(component, app) {
        return object.map(|object| Rendered {
            workload: Some(object),
            ..Rendered::default()
        });
    }
    let mut context = component_context(app, &component.spec, target, version);
    if component.definition.object_name() == component_type::HELM_CHART {
        // Parameters can be checked without the chart.
        let objects = match mode {
            Mode::Objects => chart::objects(component, app, target, version)?,
            Mode::Check => Vec::new(),
        };
        context.push(field("rendered", from_json(&objects.into())));
    }
    let mut rendering = Rendering::start(component, app, context, mode)?;
    for (index, applied) in component.traits.iter().enumerate() {
        if mode == Mode::Check && applied.definition.stage() == TraitStage::PostDispatch {
            continue;
        }
        match rendering.apply(index, applied) {
            // What is missing may still be given, and traits after it cannot be checked without it.
            Err(error) if mode == Mode::Check && error.class == Class::Incomplete => break,
            result => result?,
        }
    }
    match mode {
        Mode::Objects => rendering.finish(),
        Mode::Check => Ok(Rendered::default()),
    }
}

/// A value on its way: an evaluation and the place in it.
#[derive(Debug, Clone, Copy)]
struct Object {
    evaluation: usize,
    value: Handle,
}

struct Auxiliary {
    name: Arc<str>,
    /// Index of the trait that it belongs to.
    origin: Option<usize>,
    object: Object,
}

struct Rendering<'a> {
    component: &'a Component,
    app: &'a AppContext,
    context: Vec<Field>,
    mode: Mode,
    evaluations: Vec<Evaluation>,
    base: Option<Object>,
    auxiliaries: Vec<Auxiliary>,
}

impl<'a> Rendering<'a> {
    fn start(
        component: &'a Component,
        app: &'a AppContext,
        context: Vec<Field>,
        mode: Mode,
    ) -> Result<Self, RenderError> {
        let what = format!("component {}", component.spec.name);
        let properties = component.spec.properties.as_ref();
        let empty = CueValue::structure([]);
        let parameter = properties.map_or(empty, from_json);
        let context_value = CueValue::structure(context.iter().cloned());
        let evaluation = evaluate(&component.definition, Some(parameter), context_value, &what)?;
        let mut rendering = Self {
            component,
            app,
            context,
            mode,
            evaluations: vec![evaluation],
            base: None,
            auxiliaries: Vec::new(),
        };
        rendering.base = rendering.lookup(0, "output");
        rendering.collect_outputs(0, None)?;
        Ok(rendering)
    }

    fn lookup(&mut self, evaluation: usize, name: &str) -> Option<Object> {
        let root = self.evaluations[evaluation].root();
        let value = self.evaluations[evaluation].lookup(root, name)?;
        Some(Object { evaluation, value })
    }

    fn collect_outputs(
        &mut self,
        evaluation: usize,
        origin: Option<usize>,
    ) -> Result<(), RenderError> {
        let Some(outputs) = self.lookup(evaluation, "outputs") else {
            return Ok(());
        };
        let fields = self.evaluations[evaluation].fields(outputs.value, FieldOptions::default());
        for entry in fields {
            let is_known = self
                .auxiliaries
                .iter()
                .any(|known| known.name == entry.name);
            if self.mode == Mode::Check && is_known {
                return Err(self.error(
                    Class::Template,
                    &format!(
                        "two outputs are called {:?}; the later one hides the earlier one",
                        entry.name
                    ),
                ));
            }
            self.auxiliaries.push(Auxiliary {
                name: entry.name,
                origin,
                object: Object {
                    evaluation,
                    value: entry.value,
                },
            });
        }
        Ok(())
    }

    fn error(&self, class: Class, message: &str) -> RenderError {
        let name = &self.component.spec.name;
        RenderError::new(Stage::Render, class, format!("component {name}: {message}"))
    }

    /// The trait's outputs are added, then its patches are applied.
    fn apply(&mut self, index: usize, applied: &Trait) -> Result<(), RenderError> {
        let trait_type = &applied.definition.type_name;
        let what = format!(
            "trait {trait_type} of component {}",
            self.component.spec.name
        );
        // Parameters may be missing when it is checked, and then traits are not: that shows here.
        let reads_outputs = applied.definition.template();
        let reads_outputs = reads_outputs.is_ok_and(|template| template.reads_outputs);
        let context = self.trait_context(reads_outputs || self.mode == Mode::Check)?;
        let parameter = applied.properties.as_ref().map(from_json);
        let mut evaluation = evaluate(&applied.definition, parameter, context, &what)?;
        self.process(&mut evaluation, &what)?;
        let own = self.evaluations.len();
        self.evaluations.push(evaluation);
        self.collect_outputs(own, Some(index))?;
        if let (Some(base), Some(patch)) = (self.base, self.lookup(own, "patch")) {
            let strategy = patch::strategy(&mut self.evaluations[own], patch.value);
            let patched = self.patched(base, patch, strategy).map_err(|error| {
                RenderError::new(
                    Stage::Render,
                    Class::Patch,
                    format!("{what} contradicts it: {error}"),
                )
            })?;
            self.base = Some(patched);
        }
        let Some(patches) = self.lookup(own, "patchOutputs") else {
            return Ok(());
        };
        for position in 0..self.auxiliaries.len() {
            let name = self.auxiliaries[position].name.clone();
            let Some(value) = self.evaluations[own].lookup(patches.value, &name) else {
                continue;
            };
            let object = self.auxiliaries[position].object;
            let change = Object {
                evaluation: own,
                value,
            };
            let changed = self
                .patched(object, change, Strategy::Unify)
                .map_err(|error| {
                    let message = format!("{what} contradicts output {name}: {error}");
                    RenderError::new(Stage::Render, Class::Patch, message)
                })?;
            self.auxiliaries[position].object = changed;
        }
        Ok(())
    }

    /// A trait may ask a server (`processing.http`): the answer is `processing.output`.
    fn process(&self, evaluation: &mut Evaluation, what: &str) -> Result<(), RenderError> {
        let root = evaluation.root();
        let Some(http) = evaluation.lookup_path(root, &["processing", "http"]) else {
            return Ok(());
        };
        let error = |class, message: String| {
            RenderError::new(
                Stage::Render,
                class,
                format!("{what}: processing.http: {message}"),
            )
        };
        if self.mode == Mode::Check {
            let message = "the answer is not known yet".to_owned();
            return Err(error(Class::Incomplete, message));
        }
        let mut request = evaluation
            .export_json(http)
            .map_err(|problem| error(Class::Incomplete, problem.to_string()))?;
        if request["method"].is_null() {
            request["method"] = "GET".into();
        }
        let Some(outside) = &self.app.outside else {
            let message = "the request has to be sent, and nothing is fetched offline".to_owned();
            return Err(error(Class::Outside, message));
        };
        let answer = outside.answer(&request);
        let answer = answer.map_err(|found| error(found.class, found.message))?;
        evaluation.fill_json(&["processing", "output"], &answer);
        let root = evaluation.root();
        let problems = Problems {
            found: evaluation.validate(root),
            ..Problems::default()
        };
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems.into_error(Stage::Render, what))
        }
    }

    /// The base with the patch in it.
    fn patched(
        &mut self,
        base: Object,
        patch: Object,
        strategy: Strategy,
    ) -> Result<Object, String> {
        let base = if base.evaluation == patch.evaluation {
            self.detached(base).map_err(|problem| problem.to_string())?
        } else {
            base
        };
        let Ok([base_evaluation, patch_evaluation]) = self
            .evaluations
            .get_disjoint_mut([base.evaluation, patch.evaluation])
        else {
            return Err("base and patch are the same".to_owned());
        };
        let base = Operand {
            evaluation: base_evaluation,
            value: base.value,
        };
        let patch = Operand {
            evaluation: patch_evaluation,
            value: patch.value,
        };
        let evaluation = patch::apply(base, patch, strategy, Budget::default())
            .map_err(|error| error.to_string())?;
        Ok(self.keep(evaluation))
    }

    /// A value on its own, so that it can be patched by another value of the same evaluation.
    fn detached(&mut self, object: Object) -> Result<Object, Diagnostic> {
        let options = SyntaxOptions {
            docs: true,
            imports: true,
            ..SyntaxOptions::default()
        };
        let source = self.evaluations[object.evaluation].source(object.value, options)?;
        let first = |problems: Vec<Diagnostic>| problems.into_iter().next();
        match Template::compile(&source).map_err(first) {
            Ok(template) => Ok(self.keep(template.evaluate(Budget::default()))),
            Err(Some(problem)) => Err(problem),
            Err(None) => Ok(object),
        }
    }

    fn keep(&mut self, evaluation: Evaluation) -> Object {
        let value = evaluation.root();
        self.evaluations.push(evaluation);
        Object {
            evaluation: self.evaluations.len() - 1,
            value,
        }
    }

    /// What a trait sees: what came out so far, with defaults taken.
    fn trait_context(&mut self, with_outputs: bool) -> Result<CueValue, RenderError> {
        let mut fields = self.context.clone();
        fields.push(field(
            "componentType",
            CueValue::string(self.component.definition.type_name.as_str()),
        ));
        if !with_outputs {
            return Ok(CueValue::structure(fields));
        }
        if let Some(base) = self.base {
            let output = self.exported(base, "its output")?;
            fields.push(field("output", output));
        }
        let mut outputs: Vec<Field> = Vec::new();
        for position in 0..self.auxiliaries.len() {
            let name = self.auxiliaries[position].name.clone();
            let value =
                self.exported(self.auxiliaries[position].object, &format!("output {name}"))?;
            match outputs.iter_mut().find(|(known, _)| *known == name) {
                Some((_, earlier)) => *earlier = value,
                None => outputs.push((name, value)),
            }
        }
        if !outputs.is_empty() {
            fields.push(field("outputs", CueValue::structure(outputs)));
        }
        Ok(CueValue::structure(fields))
    }

    fn exported(&mut self, object: Object, what: &str) -> Result<CueValue, RenderError> {
        let exported = self.evaluations[object.evaluation].export(object.value);
        exported.map_err(|problem| {
            self.error(
                Class::Incomplete,
                &format!("{what} is not complete: {problem}"),
            )
        })
    }

    fn finish(mut self) -> Result<Rendered, RenderError> {
        let mut rendered = Rendered::default();
        if let Some(base) = self.base {
            rendered.workload = Some(self.object(base, "its output")?);
        }
        for auxiliary in std::mem::take(&mut self.auxiliaries) {
            let object = self.object(auxiliary.object, &format!("output {}", auxiliary.name))?;
            let origin = auxiliary
                .origin
                .and_then(|index| self.component.traits.get(index));
            rendered.outputs.push(Output {
                trait_type: origin.map_or(label::AUXILIARY.to_owned(), |origin| {
                    origin.definition.type_name.clone()
                }),
                resource: auxiliary.name.to_string(),
                definition: origin.map(|origin| origin.definition.clone()),
                object,
            });
        }
        rendered.skip_workload = self
            .component
            .traits
            .iter()
            .any(|applied| applied.definition.flag("manageWorkload"));
        Ok(rendered)
    }

    /// Parameters that have no value, which is usually why an object is not complete.
    fn missing_parameters(&mut self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for evaluation in &mut self.evaluations {
            let root = evaluation.root();
            for name in ["parameter", "parameters"] {
                if let Some(parameter) = evaluation.lookup(root, name) {
                    found.extend(evaluation.validate_concrete(parameter));
                }
            }
        }
        found
    }

    /// A finished object.
    fn object(&mut self, object: Object, what: &str) -> Result<Value, RenderError> {
        let evaluation = &mut self.evaluations[object.evaluation];
        let exported = match evaluation.export_json(object.value) {
            Ok(exported) => exported,
            Err(first) => {
                let mut found = evaluation.validate_concrete(object.value);
                if found.is_empty() {
                    found.push(first);
                }
                found.extend(self.missing_parameters());
                let problems = Problems {
                    found,
                    ..Problems::default()
                };
                let what = format!("component {}", self.component.spec.name);
                return Err(problems.into_error(Stage::Render, &what));
            }
        };
        if exported["kind"].as_str().is_none_or(str::is_empty) {
            let message = format!("{what} has no kind; set apiVersion and kind in the template");
            return Err(self.error(Class::Incomplete, &message));
        }
        Ok(exported)
    }
}

/// Evaluates a definition with its parameters and context, and checks what can be checked before all is given.
fn evaluate(
    definition: &Definition,
    parameter: Option<CueValue>,
    context: CueValue,
    what: &str,
) -> Result<Evaluation, RenderError> {
    let compiled = definition.template().map_err(|found| {
        let problems = Problems {
            found: found.to_vec(),
            ..Problems::default()
        };
        let mut error = problems.into_error(Stage::Render, what);
        error.class = Class::Template;
        error
    })?;
    let mut evaluation = fill(compiled, parameter, context);
    let root = evaluation.root();
    let problems = Problems {
        user: user_errors(&mut evaluation),
        found: evaluation.validate(root),
    };
    if problems.is_empty() {
        Ok(evaluation)
    } else {
        Err(problems.into_error(Stage::Render, what))
    }
}

fn fill(compiled: &CompiledTemplate, parameter: Option<CueValue>, context: CueValue) -> Evaluation {
    let mut evaluation = compiled.template.evaluate(Budget::default());
    if let Some(parameter) = parameter {
        evaluation.fill(&[compiled.parameter], parameter);
    }
    evaluation.fill(&["context"], context);
    evaluation
}

/// What the definition itself says against its parameters, in `errs`.
fn user_errors(evaluation: &mut Evaluation) -> Vec<String> {
    let root = evaluation.root();
    let Some(errors) = evaluation.lookup(root, "errs") else {
        return Vec::new();
    };
    // Errors that cannot be evaluated are found by validation.
    let Ok(CueValue::List(items)) = evaluation.export(errors) else {
        return Vec::new();
    };
    let text = |item: &CueValue| match item {
        CueValue::String(text) => text.to_string(),
        other => format!(
            "errs has to be a list of strings, but has a {}",
            other.kind()
        ),
    };
    items.iter().map(text).collect()
}
