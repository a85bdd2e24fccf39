//! Steps that need no definition in a cluster: those that are part of the engine, and those in `definitions/steps`.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::definition::Definition;

/// The template of `suspend`.
const SUSPEND: &str = r#"
import "vela/builtin"

suspend: builtin.#Suspend & {$params: {
	if parameter.duration != _|_ {
		duration: parameter.duration
	}
	if parameter.message != _|_ {
		message: parameter.message
	}
}}

// What somebody sent who approved over HTTP.
if suspend.$returns.payload != _|_ {
	output: suspend.$returns.payload
}

parameter: {
	// How long the workflow is suspended; without it until somebody resumes it.
	duration?: string
	// What people are shown.
	message?: string
	...
}
"#;

/// The template of `apply-component`, whose parameters are those that `bellwether_application::steps` makes.
const APPLY_COMPONENT: &str = r#"
import "vela/oam"

apply: oam.#ApplyComponent & {$params: {
	value:     parameter.value
	cluster:   parameter.cluster
	namespace: parameter.namespace
	if parameter.patch != _|_ {
		fieldPatch: parameter.patch
	}
}}
output:  apply.$returns.output
outputs: apply.$returns.outputs

parameter: {
	// The component.
	value: {...}
	// Name of the cluster; empty for the hub.
	cluster: *"" | string
	// The namespace; empty for that of the Application.
	namespace: *"" | string
	// A field of the workload that is set.
	patch?: {...}
	...
}
"#;

/// The definition of `apply-component`.
pub fn apply_component() -> Arc<Definition> {
    static DEFINITION: OnceLock<Arc<Definition>> = OnceLock::new();
    DEFINITION
        .get_or_init(|| Arc::new(Definition::new(APPLY_COMPONENT)))
        .clone()
}

/// The definition of `suspend`.
pub fn suspend() -> Arc<Definition> {
    static DEFINITION: OnceLock<Arc<Definition>> = OnceLock::new();
    DEFINITION
        .get_or_init(|| Arc::new(Definition::new(SUSPEND)))
        .clone()
}

/// Names and sources of the definitions in `definitions/steps`.
macro_rules! steps {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../definitions/steps/", $name, ".cue")))),*]
    };
}

/// The definitions in `definitions/steps`, with their documentation.
pub const STEPS: &[(&str, &str)] = steps![
    "addon-operation",
    "apply-app",
    "apply-application",
    "apply-application-in-parallel",
    "apply-deployment",
    "apply-job",
    "apply-object",
    "apply-remaining",
    "apply-terraform-config",
    "apply-terraform-provider",
    "blue-green-rollout",
    "build-push-image",
    "chat-gpt",
    "check-metrics",
    "clean-jobs",
    "collect-service-endpoints",
    "create-config",
    "delete-config",
    "depends-on-app",
    "deploy",
    "deploy-cloud-resource",
    "deploy2env",
    "deploy2runtime",
    "export-data",
    "export-service",
    "export2config",
    "export2secret",
    "generate-jdbc-connection",
    "gitops",
    "helm-template",
    "kustomize-patch",
    "list-config",
    "notification",
    "open-cluster-management",
    "print-message-in-status",
    "read-app",
    "read-config",
    "read-member-object",
    "read-object",
    "request",
    "restart-workflow",
    "rollback",
    "rollout-promotion",
    "share-cloud-resource",
    "traffic-shift",
    "vela-cli",
    "webhook",
];

/// The template of a definition in `definitions/steps`.
pub fn step(name: &str) -> Option<&'static str> {
    static TEMPLATES: OnceLock<BTreeMap<&'static str, String>> = OnceLock::new();
    let templates = TEMPLATES.get_or_init(|| {
        let templates = STEPS.iter();
        templates
            .map(|(name, source)| (*name, template_of(source)))
            .collect()
    });
    templates.get(name).map(String::as_str)
}

/// The template within a definition: its imports, and what is between the braces of `template`.
fn template_of(source: &str) -> String {
    let (head, body) = source.split_once("\ntemplate: {\n").unwrap_or(("", source));
    let body = body.trim_end();
    let body = body.strip_suffix('}').unwrap_or(body);
    let mut template = String::new();
    let mut is_block = false;
    for line in head.lines() {
        let is_import = line.starts_with("import ");
        if is_import || is_block {
            template.push_str(line);
            template.push('\n');
        }
        is_block = (is_block || is_import && line.ends_with('(')) && line != ")";
    }
    for line in body.lines() {
        template.push_str(line.strip_prefix('\t').unwrap_or(line));
        template.push('\n');
    }
    template
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::definition::StepData;

    #[test]
    fn all_steps_can_be_compiled() {
        for (name, _) in STEPS {
            let template = step(name).unwrap();
            let data = StepData {
                context: json!({"name": "r", "namespace": "ns", "stepName": "s", "stepSessionID": "id"}),
                parameter: json!({}),
            };
            let evaluated = Definition::new(template).evaluate(&data, &[]);
            assert!(
                evaluated.is_ok(),
                "{name}: {:?}\n{template}",
                evaluated.err()
            );
        }
    }
}
