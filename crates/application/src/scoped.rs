//! Policies that change the application itself before it is rendered: those whose definition has `scope: Application`.
//!
//! Their templates see the application as `context`, and say in `output` what it becomes: `components`, `workflow` and
//! `policies` take the place of what was there, `labels` and `annotations` are added, and `ctx` is what other templates see as
//! `context.custom`. Definitions with `global: true` apply to every application; they come first, in the order of their `priority`.

use std::sync::Arc;

use bellwether_api::oam::names::{annotation, policy as policy_type, policy_source};
use bellwether_api::oam::{Application, AppliedApplicationPolicy};
use bellwether_cue::bridge::from_json;
use bellwether_cue::host::{Budget, Evaluation};
use bellwether_json::path::str_at;
use serde_json::{Map, Value, json};

use crate::catalog::Catalog;
use crate::context::namespace;
use crate::definition::{Definition, DefinitionKind};
use crate::error::{Class, Problems, RenderError, Stage};

/// Fields of `output`.
const FIELDS: [&str; 6] = [
    "annotations",
    "components",
    "ctx",
    "labels",
    "policies",
    "workflow",
];

/// An application that policies changed.
#[derive(Debug, Clone)]
pub struct Changed {
    /// The application.
    pub application: Application,
    /// What templates see as `context.custom`.
    pub custom: Map<String, Value>,
    /// The definitions of the policies, in the order in which they were applied.
    pub definitions: Vec<Arc<Definition>>,
    /// What each of them did.
    pub applied: Vec<AppliedApplicationPolicy>,
}

/// A policy that may change the application.
struct Scoped {
    definition: Arc<Definition>,
    name: String,
    properties: Value,
    source: &'static str,
}

/// Whether policies of a definition change the application itself.
pub fn is_scoped(definition: &Definition) -> bool {
    definition.object["spec"]["scope"] == "Application"
}

/// Applies policies that change the application; none if there are none.
pub fn apply(application: &Application, catalog: &Catalog) -> Result<Option<Changed>, RenderError> {
    let namespace = namespace(application);
    let annotations = application.metadata.annotations.as_ref();
    let skips_global = annotations
        .and_then(|all| all.get(annotation::SKIP_GLOBAL_POLICIES))
        .is_some_and(|value| value == "true");
    let mut found: Vec<Scoped> = Vec::new();
    if !skips_global {
        for definition in catalog.global_policies(&namespace) {
            found.push(Scoped {
                name: definition.object_name().to_owned(),
                definition,
                properties: json!({}),
                source: policy_source::GLOBAL,
            });
        }
    }
    for (index, policy) in application.spec.policies.iter().enumerate() {
        if policy_type::BUILT_IN.contains(&policy.policy_type.as_str()) {
            continue;
        }
        let definition = catalog.find(
            DefinitionKind::Policy,
            &namespace,
            &policy.policy_type,
            false,
        );
        // One that does not exist is named when policies are rendered.
        let Some(definition) = definition.filter(|definition| is_scoped(definition)) else {
            continue;
        };
        let name = match policy.name.as_str() {
            "" => format!("{}-auto-gen-{index}", policy.policy_type),
            name => name.to_owned(),
        };
        let properties = policy.properties.clone().unwrap_or_else(|| json!({}));
        found.push(Scoped {
            definition,
            name,
            properties,
            source: policy_source::EXPLICIT,
        });
    }
    if found.is_empty() {
        return Ok(None);
    }
    let mut changed = Changed {
        application: application.clone(),
        custom: Map::new(),
        definitions: Vec::new(),
        applied: Vec::new(),
    };
    for policy in &found {
        changed.take(policy)?;
    }
    Ok(Some(changed))
}

impl Changed {
    /// Applies one policy.
    fn take(&mut self, policy: &Scoped) -> Result<(), RenderError> {
        let Scoped {
            definition,
            name,
            properties,
            source,
        } = policy;
        let what = format!("policy {name}");
        let error = |message: String| {
            let message = format!("{what}: {message}");
            RenderError::new(Stage::Parse, Class::Template, message)
        };
        let mut evaluation = self.evaluate(definition, name, properties)?;
        self.definitions.push(Arc::clone(definition));
        let namespace = str_at(&definition.object, &["metadata", "namespace"]);
        let mut applied = AppliedApplicationPolicy {
            name: name.clone(),
            policy_type: definition.type_name.clone(),
            namespace: namespace.unwrap_or_default().to_owned(),
            source: (*source).to_owned(),
            applied: is_enabled(&mut evaluation),
            ..AppliedApplicationPolicy::default()
        };
        let root = evaluation.root();
        let output = evaluation.lookup(root, "output");
        let Some(output) = output.filter(|_| applied.applied) else {
            if !applied.applied {
                NOT_ENABLED.clone_into(&mut applied.message);
            }
            self.applied.push(applied);
            return Ok(());
        };
        let output = evaluation.export_json(output).map_err(|problem| {
            let problems = Problems {
                found: vec![problem],
                ..Problems::default()
            };
            problems.into_error(Stage::Parse, &what)
        })?;
        let Value::Object(fields) = output else {
            return Err(error("output has to be an object".to_owned()));
        };
        for (field, value) in fields {
            note(&mut applied, &field, &value);
            self.set(&field, value).map_err(error)?;
        }
        self.applied.push(applied);
        Ok(())
    }

    fn evaluate(
        &self,
        definition: &Definition,
        name: &str,
        properties: &Value,
    ) -> Result<Evaluation, RenderError> {
        let what = format!("policy {name}");
        let failed = |found| {
            let problems = Problems {
                found,
                ..Problems::default()
            };
            problems.into_error(Stage::Parse, &what)
        };
        let compiled = definition.template();
        let compiled = compiled.map_err(|found| failed(found.to_vec()))?;
        let mut evaluation = compiled.template.evaluate(Budget::default());
        evaluation.fill_json(&[compiled.parameter], properties);
        let application = &self.application;
        let metadata = &application.metadata;
        let context = json!({
            "name": metadata.name,
            "appName": metadata.name,
            "namespace": namespace(application),
            "appLabels": metadata.labels.clone().unwrap_or_default(),
            "appAnnotations": metadata.annotations.clone().unwrap_or_default(),
            "appComponents": application.spec.components,
            "appWorkflow": application.spec.workflow,
            "appPolicies": application.spec.policies,
            "policyName": name,
            "policyType": definition.type_name,
            "custom": self.custom,
        });
        evaluation.fill(&["context"], from_json(&context));
        let root = evaluation.root();
        match evaluation.validate(root) {
            found if found.is_empty() => Ok(evaluation),
            found => Err(failed(found)),
        }
    }

    fn set(&mut self, field: &str, value: Value) -> Result<(), String> {
        let wrong = |error: serde_json::Error| format!("output.{field}: {error}");
        let spec = &mut self.application.spec;
        let metadata = &mut self.application.metadata;
        match field {
            "components" => spec.components = serde_json::from_value(value).map_err(wrong)?,
            "workflow" => spec.workflow = serde_json::from_value(value).map_err(wrong)?,
            "policies" => spec.policies = serde_json::from_value(value).map_err(wrong)?,
            "labels" | "annotations" => {
                let texts = serde_json::from_value(value).map_err(wrong)?;
                let texts: std::collections::BTreeMap<String, String> = texts;
                let all = if field == "labels" {
                    &mut metadata.labels
                } else {
                    &mut metadata.annotations
                };
                all.get_or_insert_default().extend(texts);
            }
            "ctx" => match value {
                Value::Object(values) => self.custom.extend(values),
                _ => return Err("output.ctx has to be an object".to_owned()),
            },
            other => {
                return Err(format!(
                    "output.{other} has no meaning; a policy of scope Application may have {}",
                    FIELDS.join(", ")
                ));
            }
        }
        Ok(())
    }
}

/// What is said of a policy whose template says that it is off.
const NOT_ENABLED: &str = "its template says enabled: false";

/// Notes what a field of `output` changes.
fn note(applied: &mut AppliedApplicationPolicy, field: &str, value: &Value) {
    let count = value.as_object().map_or(0, Map::len);
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    match field {
        "labels" => applied.labels_count = count,
        "annotations" => applied.annotations_count = count,
        "ctx" => applied.has_context = true,
        _ => applied.spec_modified = true,
    }
}

/// A policy may be off: `enabled`, or `config.enabled`.
fn is_enabled(evaluation: &mut Evaluation) -> bool {
    let root = evaluation.root();
    let paths: [&[&str]; 2] = [&["enabled"], &["config", "enabled"]];
    paths.into_iter().all(|path| {
        let found = evaluation.lookup_path(root, path);
        let found = found.and_then(|found| evaluation.export_json(found).ok());
        found != Some(Value::Bool(false))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::appfile;
    use crate::deliver::deliver;
    use crate::world::World;

    fn definition(name: &str, spec: Value, template: &str) -> Value {
        let mut spec = spec;
        spec["scope"] = "Application".into();
        spec["schematic"] = json!({"cue": {"template": template}});
        json!({"kind": "PolicyDefinition", "metadata": {"name": name, "namespace": "vela-system"}, "spec": spec})
    }

    fn catalog() -> Catalog {
        let mut catalog = Catalog::default();
        for (name, spec, template) in [
            (
                "team",
                json!({}),
                "parameter: {name: string, on: *true | bool}\nenabled: parameter.on\noutput: {\n\tlabels: team: parameter.name\n\tctx: owner: parameter.name\n\tcomponents: [for c in context.appComponents {c & {properties: cmd: [context.policyName]}}]\n}",
            ),
            (
                "second",
                json!({"global": true, "priority": 2}),
                "output: annotations: order: \"\\(context.appAnnotations.order) second\"",
            ),
            (
                "first",
                json!({"global": true, "priority": 1}),
                "output: annotations: order: \"first\"",
            ),
            ("wrong", json!({}), "output: metadata: {}"),
        ] {
            assert!(catalog.insert(definition(name, spec, template)));
        }
        assert!(catalog.insert(json!({"kind": "ComponentDefinition", "metadata": {"name": "note"}, "spec": {"schematic": {"cue": {
            "template": "output: {apiVersion: \"v1\", kind: \"ConfigMap\", data: {owner: context.custom.owner, cmd: parameter.cmd[0]}}\nparameter: cmd?: [...string]"}}}})));
        catalog
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "tables read better without borrows"
    )]
    fn delivered(policy: Value) -> Result<Value, RenderError> {
        let application = json!({"metadata": {"name": "shop"}, "spec": {"components": [{"name": "n", "type": "note"}], "policies": [policy]}});
        let application = serde_json::from_value(application).unwrap();
        let (catalog, world) = (catalog(), World::default());
        let appfile = appfile::parse(&application, &catalog, &world, 1)?;
        let mut delivery = deliver(&appfile)?;
        assert!(delivery.policies.is_empty());
        Ok(delivery.components.remove(0).manifests.remove(0).object)
    }

    #[test]
    fn policies_change_the_application_before_it_is_rendered() {
        let policy = json!({"name": "mine", "type": "team", "properties": {"name": "sea"}});
        let object = delivered(policy).unwrap();
        assert_eq!(object["data"], json!({"owner": "sea", "cmd": "mine"}));
        assert_eq!(object["metadata"]["labels"]["team"], "sea");
        assert_eq!(object["metadata"]["annotations"]["order"], "first second");
    }

    #[test]
    fn what_policies_did_is_told_in_order() {
        let policy = |on: bool| json!({"name": "mine", "type": "team", "properties": {"name": "sea", "on": on}});
        let told = |on: bool| {
            let application = json!({"metadata": {"name": "shop"}, "spec": {"components": [], "policies": [policy(on)]}});
            let application = serde_json::from_value(application).unwrap();
            apply(&application, &catalog()).unwrap().unwrap().applied
        };
        let applied = told(true);
        let names: Vec<(&str, &str)> = applied
            .iter()
            .map(|it| (it.name.as_str(), it.source.as_str()))
            .collect();
        assert_eq!(
            names,
            [
                ("first", "global"),
                ("second", "global"),
                ("mine", "explicit")
            ]
        );
        let expected = json!({"name": "mine", "type": "team", "namespace": "vela-system", "applied": true,
            "source": "explicit", "specModified": true, "labelsCount": 1, "hasContext": true});
        assert_eq!(serde_json::to_value(&applied[2]).unwrap(), expected);
        let off = &told(false)[2];
        assert!(!off.applied && !off.spec_modified && off.message == NOT_ENABLED);
    }

    #[test]
    fn what_is_wrong_names_the_policy() {
        let off =
            json!({"name": "mine", "type": "team", "properties": {"name": "sea", "on": false}});
        let error = delivered(off).unwrap_err();
        assert!(error.message.contains("component n"), "{error}");
        let wrong = json!({"name": "w", "type": "wrong", "properties": {}});
        let error = delivered(wrong).unwrap_err();
        assert!(
            error
                .message
                .contains("policy w: output.metadata has no meaning"),
            "{error}"
        );
        let typed = json!({"name": "mine", "type": "team", "properties": {"name": 1}});
        let error = delivered(typed).unwrap_err();
        assert!(
            error.message.contains("policy mine") && error.message.contains("parameter.name"),
            "{error}"
        );
    }
}
