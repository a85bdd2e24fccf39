//! The rights of processes: what they need besides what each controller declares, and which of them are missing.
//!
//! A process asks the API server at its start, and then from time to time, what it may do. A controller that lacks a right is named with
//! it, before a reconcile fails.

use std::fmt;

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, ResourceRule, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
    SelfSubjectRulesReview, SelfSubjectRulesReviewSpec,
};
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::api::PostParams;
use kube::{Api, Client};

use crate::registry::{READ, Rule};

/// The lease of a process, in the namespace of the process.
pub const LEASE: &[Rule] = &[Rule {
    group: "coordination.k8s.io",
    resources: &["leases"],
    // A process that stands by follows it.
    verbs: &["get", "list", "watch", "create", "update"],
}];

/// The definitions that a hub creates.
pub const DEFINITIONS: &[Rule] = &[Rule {
    group: "apiextensions.k8s.io",
    resources: &["customresourcedefinitions"],
    verbs: &["get", "list", "watch", "create"],
}];

/// What answering webhooks takes.
pub const WEBHOOKS: &[Rule] = &[
    Rule {
        group: "authorization.k8s.io",
        resources: &["subjectaccessreviews"],
        verbs: &["create"],
    },
    Rule {
        group: "admissionregistration.k8s.io",
        resources: &[
            "mutatingwebhookconfigurations",
            "validatingwebhookconfigurations",
        ],
        verbs: &["create", "get", "list", "watch", "update"],
    },
    // Whether the namespace of a cluster that is accepted is being deleted.
    Rule {
        group: "",
        resources: &["namespaces"],
        verbs: &["get"],
    },
    // What Applications and definitions refer to.
    Rule {
        group: "apiextensions.k8s.io",
        resources: &["customresourcedefinitions"],
        verbs: &["get"],
    },
    Rule {
        group: bellwether_api::oam::GROUP,
        resources: &[
            "componentdefinitions",
            "definitionrevisions",
            "policies",
            "policydefinitions",
            "traitdefinitions",
            "workflows",
            "workflowstepdefinitions",
            "workloaddefinitions",
        ],
        verbs: &["get"],
    },
];

/// The namespace with what belongs to the cluster itself: bootstrap tokens, and the keys of a hub.
pub const SYSTEM_NAMESPACE: &str = "kube-system";

/// What answering webhooks is called in [`IN_SYSTEM_NAMESPACE`].
pub const WEBHOOK_SERVER: &str = "the webhook server";

/// What controllers do to Secrets in [`SYSTEM_NAMESPACE`] only, by who does it.
pub const IN_SYSTEM_NAMESPACE: &[(&str, &[Rule])] = &[
    // The key that random values of charts are made of.
    ("application", &[secrets(&["get", "create"])]),
    // What was promised to the holder of a bootstrap token, which ends when it was used.
    ("certificate-approval", &[secrets(&["get", "patch"])]),
    // Bootstrap tokens of a cluster that leaves.
    ("registration", &[secrets(&["list", "delete"])]),
    // The key that tokens for approval are signed with.
    ("workflow-run", &[secrets(&["get", "create"])]),
    // What was promised to the holder of a bootstrap token.
    (WEBHOOK_SERVER, &[secrets(&["get"])]),
];

const fn secrets(verbs: &'static [&'static str]) -> Rule {
    Rule {
        group: "",
        resources: &["secrets"],
        verbs,
    }
}

/// The Secret with the authority of the webhooks, in the namespace of the process.
pub const WEBHOOK_SECRET: &[Rule] = &[Rule {
    group: "",
    resources: &["secrets"],
    verbs: &["get", "create", "update"],
}];

/// A part of an agent, and the requests that it makes on the member.
#[derive(Debug, Clone, Copy)]
pub struct AgentPart {
    /// What it is called in reports.
    pub name: &'static str,
    /// What it needs to do on the member, besides writing what is delivered.
    pub rights: &'static [Rule],
}

/// The parts of an agent.
pub const AGENT: &[AgentPart] = &[
    AgentPart {
        name: "registration",
        rights: &[
            Rule {
                group: "",
                resources: &["nodes"],
                verbs: READ,
            },
            Rule {
                group: bellwether_api::cluster::GROUP,
                resources: &["clusterclaims"],
                verbs: READ,
            },
            Rule {
                group: bellwether_api::about::GROUP,
                resources: &["clusterproperties"],
                verbs: READ,
            },
            // Namespaces that all members of a set have, and the one of the agent.
            Rule {
                group: "",
                resources: &["namespaces"],
                verbs: &["get", "list", "create", "patch"],
            },
        ],
    },
    AgentPart {
        name: "work",
        rights: &[
            Rule {
                group: bellwether_api::work::GROUP,
                resources: &["appliedmanifestworks"],
                verbs: &["get", "list", "watch", "create", "patch", "delete"],
            },
            Rule {
                group: bellwether_api::work::GROUP,
                resources: &["appliedmanifestworks/status"],
                verbs: &["patch"],
            },
            Rule {
                group: bellwether_api::multicluster::GROUP,
                resources: &["appliedworks"],
                verbs: &["get", "list", "watch", "create", "patch", "delete"],
            },
            Rule {
                group: bellwether_api::multicluster::GROUP,
                resources: &["appliedworks/status"],
                verbs: &["patch"],
            },
            // Objects that wait for a namespace or for a definition are applied when it arrives.
            Rule {
                group: "",
                resources: &["namespaces"],
                verbs: READ,
            },
            Rule {
                group: "apiextensions.k8s.io",
                resources: &["customresourcedefinitions"],
                verbs: READ,
            },
            // What the executor of a work may do.
            Rule {
                group: "authorization.k8s.io",
                resources: &["subjectaccessreviews"],
                verbs: &["create"],
            },
            Rule {
                group: "",
                resources: &["serviceaccounts"],
                verbs: &["impersonate"],
            },
            Rule {
                group: "rbac.authorization.k8s.io",
                resources: &[
                    "roles",
                    "rolebindings",
                    "clusterroles",
                    "clusterrolebindings",
                ],
                verbs: READ,
            },
        ],
    },
    AgentPart {
        name: "policy",
        rights: &[
            Rule {
                group: bellwether_api::policy::GROUP,
                resources: &[
                    "policies",
                    "configurationpolicies",
                    "certificatepolicies",
                    "operatorpolicies",
                ],
                verbs: &[
                    "get", "list", "watch", "create", "update", "patch", "delete",
                ],
            },
            Rule {
                group: bellwether_api::policy::GROUP,
                resources: &[
                    "policies/status",
                    "configurationpolicies/status",
                    "certificatepolicies/status",
                    "operatorpolicies/status",
                ],
                verbs: &["update"],
            },
            Rule {
                group: "",
                resources: &["events"],
                verbs: &["create"],
            },
            Rule {
                group: "",
                resources: &["namespaces"],
                verbs: &["create"],
            },
            // What policies inspect.
            Rule {
                group: "*",
                resources: &["*"],
                verbs: READ,
            },
        ],
    },
];

/// The definitions that an agent creates on a member that lacks them.
pub const MEMBER_DEFINITIONS: &[Rule] = &[Rule {
    group: "apiextensions.k8s.io",
    resources: &["customresourcedefinitions"],
    verbs: &["create"],
}];

/// The credentials of an agent, in its namespace on the member.
pub const CREDENTIALS: &[Rule] = &[Rule {
    group: "",
    resources: &["secrets"],
    verbs: &["get", "list", "watch", "create", "patch", "delete"],
}];

/// A right that a part of a process needs and does not have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MissingRight {
    /// Who needs it, such as the name of a controller.
    pub part: String,
    /// What cannot be done.
    pub verb: String,
    /// With which resource, and its subresource.
    pub resource: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The namespace; nothing for all of them.
    pub namespace: Option<&'static str>,
}

impl fmt::Display for MissingRight {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            part,
            verb,
            resource,
            group,
            namespace,
        } = self;
        let (plural, subresource) = match resource.split_once('/') {
            Some((plural, subresource)) => (plural, format!("/{subresource}")),
            None => (resource.as_str(), String::new()),
        };
        let dot = if group.is_empty() { "" } else { "." };
        write!(
            formatter,
            "{part} may not {verb} {plural}{dot}{group}{subresource}"
        )?;
        match namespace {
            Some(namespace) => write!(formatter, " in namespace {namespace}"),
            None => Ok(()),
        }
    }
}

/// Returns the rights that parts of a process need and that rules do not grant, sorted.
pub fn missing(needed: &[(&str, Vec<PolicyRule>)], granted: &[ResourceRule]) -> Vec<MissingRight> {
    let mut missing = Vec::new();
    for (part, rules) in needed {
        for rule in rules {
            for group in rule.api_groups.iter().flatten() {
                for resource in rule.resources.iter().flatten() {
                    let verbs = rule.verbs.iter();
                    let verbs = verbs.filter(|verb| !grants(granted, group, resource, verb));
                    missing.extend(verbs.map(|verb| MissingRight {
                        part: (*part).to_owned(),
                        verb: verb.clone(),
                        resource: resource.clone(),
                        group: group.clone(),
                        namespace: None,
                    }));
                }
            }
        }
    }
    missing.sort();
    missing.dedup();
    missing
}

/// Whether rules allow something for objects of any name.
fn grants(rules: &[ResourceRule], group: &str, resource: &str, verb: &str) -> bool {
    let any_of_subresource = resource.split_once('/').map(|(_, sub)| format!("*/{sub}"));
    rules.iter().any(|rule| {
        let has = |list: Option<&Vec<String>>, wanted: &str| {
            list.is_some_and(|list| list.iter().any(|it| it == "*" || it == wanted))
        };
        let names = rule.resource_names.as_ref();
        names.is_none_or(Vec::is_empty)
            && has(rule.api_groups.as_ref(), group)
            && has(Some(&rule.verbs), verb)
            && (has(rule.resources.as_ref(), resource)
                || any_of_subresource
                    .as_ref()
                    .is_some_and(|any| has(rule.resources.as_ref(), any)))
    })
}

/// Asks the API server which of these rights the client does not have.
///
/// One request tells most; rights that it does not confirm are asked for one by one, because not all authorizers can list what they
/// allow.
pub async fn review(
    client: &Client,
    needed: &[(&str, Vec<PolicyRule>)],
) -> Result<Vec<MissingRight>, kube::Error> {
    review_in(client, None, needed).await
}

/// The same about rights in one namespace.
pub async fn review_in(
    client: &Client,
    namespace: Option<&'static str>,
    needed: &[(&str, Vec<PolicyRule>)],
) -> Result<Vec<MissingRight>, kube::Error> {
    let rules: Api<SelfSubjectRulesReview> = Api::all(client.clone());
    let question = SelfSubjectRulesReview {
        spec: SelfSubjectRulesReviewSpec {
            namespace: Some(namespace.unwrap_or(client.default_namespace()).to_owned()),
        },
        ..SelfSubjectRulesReview::default()
    };
    let answer = rules.create(&PostParams::default(), &question).await?;
    let granted = answer.status.map(|status| status.resource_rules);
    let mut missing = missing(needed, &granted.unwrap_or_default());
    for right in &mut missing {
        right.namespace = namespace;
    }
    let mut confirmed = Vec::with_capacity(missing.len());
    for right in &missing {
        confirmed.push(is_allowed(client, right).await?);
    }
    let mut confirmed = confirmed.into_iter();
    missing.retain(|_| confirmed.next() == Some(false));
    Ok(missing)
}

async fn is_allowed(client: &Client, right: &MissingRight) -> Result<bool, kube::Error> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let (resource, subresource) = match right.resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
        None => (right.resource.as_str(), None),
    };
    let question = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                group: Some(right.group.clone()),
                resource: Some(resource.to_owned()),
                subresource,
                verb: Some(right.verb.clone()),
                namespace: right.namespace.map(str::to_owned),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let answer = reviews.create(&PostParams::default(), &question).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn granted(group: &str, resource: &str, verbs: &[&str], names: &[&str]) -> ResourceRule {
        ResourceRule {
            api_groups: Some(texts(&[group])),
            resources: Some(texts(&[resource])),
            resource_names: Some(texts(names)),
            verbs: texts(verbs),
        }
    }

    #[track_caller]
    fn check(granted: ResourceRule, expected: &[&str]) {
        let rule = PolicyRule {
            api_groups: Some(texts(&["apps"])),
            resources: Some(texts(&["deployments/status"])),
            verbs: vec!["get".to_owned(), "patch".to_owned()],
            ..PolicyRule::default()
        };
        let found = missing(&[("rollout", vec![rule])], &[granted]);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_not_granted_is_named() {
        let get = "rollout may not get deployments.apps/status";
        let patch = "rollout may not patch deployments.apps/status";
        check(granted("apps", "deployments/status", &["*"], &[]), &[]);
        check(granted("*", "*", &["get", "patch"], &[]), &[]);
        check(granted("apps", "*/status", &["get", "patch"], &[]), &[]);
        check(
            granted("apps", "deployments/status", &["get"], &[]),
            &[patch],
        );
        check(granted("apps", "deployments", &["*"], &[]), &[get, patch]);
        check(
            granted("", "deployments/status", &["*"], &[]),
            &[get, patch],
        );
        check(
            granted("apps", "deployments/status", &["*"], &["web"]),
            &[get, patch],
        );
    }
}
