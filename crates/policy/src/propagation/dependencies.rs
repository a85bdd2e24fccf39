//! Dependencies in the form in which clusters find them: replicas are named after their root policies.

use bellwether_api::policy::names::replica_name;
use bellwether_api::policy::{GROUP, Policy, PolicyDependency, PolicySpec};

/// Answers which policies a set has, by its namespace and name; nothing if there is no such set.
pub type SetMembers<'a> = dyn Fn(&str, &str) -> Option<Vec<String>> + 'a;

/// Returns the sets that a policy waits for, each with its namespace and name.
pub fn awaited_sets(root: &Policy) -> Vec<(&str, &str)> {
    let own = root.metadata.namespace.as_deref().unwrap_or_default();
    let templates = root.spec.policy_templates.iter();
    let extra = templates.flat_map(|template| &template.extra_dependencies);
    let all = root.spec.dependencies.iter().chain(extra);
    all.filter(|it| is_policy_kind(it, "PolicySet"))
        .map(|it| (namespace_of(it, own), it.name.as_str()))
        .collect()
}

/// Rewrites all dependencies of a spec.
pub(super) fn canonicalise(spec: &mut PolicySpec, namespace: &str, sets: &SetMembers<'_>) {
    let rewrite = |list: &mut Vec<PolicyDependency>| {
        let written = std::mem::take(list);
        list.extend(written.into_iter().flat_map(|it| one(it, namespace, sets)));
    };
    rewrite(&mut spec.dependencies);
    for template in &mut spec.policy_templates {
        rewrite(&mut template.extra_dependencies);
    }
}

fn one(
    dependency: PolicyDependency,
    own_namespace: &str,
    sets: &SetMembers<'_>,
) -> Vec<PolicyDependency> {
    let namespace = namespace_of(&dependency, own_namespace).to_owned();
    if is_policy_kind(&dependency, "PolicySet") {
        let Some(members) = sets(&namespace, &dependency.name) else {
            return vec![PolicyDependency {
                namespace: Some(namespace),
                ..dependency
            }];
        };
        let member = |name: String| PolicyDependency {
            api_version: format!("{GROUP}/v1"),
            kind: "Policy".to_owned(),
            name: replica_name(&namespace, &name),
            namespace: None,
            ..dependency.clone()
        };
        return members.into_iter().map(member).collect();
    }
    // A name with a dot is that of a replica already, unless a namespace is given.
    let is_named = dependency.name.contains('.') && given(&dependency).is_none();
    if is_policy_kind(&dependency, "Policy") && !is_named {
        return vec![PolicyDependency {
            name: replica_name(&namespace, &dependency.name),
            namespace: None,
            ..dependency
        }];
    }
    vec![dependency]
}

fn is_policy_kind(dependency: &PolicyDependency, kind: &str) -> bool {
    let group = dependency.api_version.split('/').next();
    dependency.kind == kind && group == Some(GROUP)
}

fn given(dependency: &PolicyDependency) -> Option<&str> {
    dependency.namespace.as_deref().filter(|it| !it.is_empty())
}

fn namespace_of<'a>(dependency: &'a PolicyDependency, own: &'a str) -> &'a str {
    given(dependency).unwrap_or(own)
}
