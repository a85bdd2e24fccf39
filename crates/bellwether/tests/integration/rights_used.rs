//! Rights that no controller uses: everything is done once on a fleet with an audit log, in which requests carry the name of
//! their controller, and what was not asked for is named.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bellwether_controllers::registry::{HUB, Rule, merge, to_rules};
use bellwether_controllers::rights::IN_SYSTEM_NAMESPACE;
use bellwether_testkit::process;
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::{Value, json};

use crate::fleet::{self, Fleet, Process};
use crate::site::{BELLWETHER, Site as _, until_available};

/// Rights as they are written here: `VERB RESOURCE.GROUP`. Verbs that read are one, `get`: `list` shows what `get` does.
type Rights = BTreeSet<String>;

/// Rights that no request of a whole run shows, and why they are needed.
const NOT_SEEN: &[(&str, &[(&str, &str)])] = &[
    (
        // Verbs that the API server asks about while it answers another request.
        "",
        &[
            ("approve signers.certificates.k8s.io", "approves requests"),
            (
                "bind clusterroles.rbac.authorization.k8s.io",
                "makes bindings for members",
            ),
            (
                "escalate clusterroles.rbac.authorization.k8s.io",
                "makes roles for members",
            ),
            (
                "execute-as manifestworks.work.open-cluster-management.io",
                "executors of works",
            ),
            ("patch events", "the same event again within ten minutes"),
            (
                "update managedclusters/accept.register.open-cluster-management.io",
                "accepts clusters that were promised it",
            ),
            (
                "update manifestworkreplicasets/finalizers.work.open-cluster-management.io",
                "owners that block deletion",
            ),
        ],
    ),
    (
        "application",
        &[
            (
                "create subjectaccessreviews.authorization.k8s.io",
                "accounts of applications",
            ),
            (
                "delete applicationrevisions.core.oam.dev",
                "more revisions than are kept",
            ),
            ("delete configmaps", "more revisions than are kept"),
            ("create secrets", "the key of random values in charts"),
            ("get secrets", "values of charts"),
            ("update configmaps", "steps that are debugged"),
        ],
    ),
    (
        "application-configuration",
        &[
            (
                "get controllerrevisions.apps",
                "components that name a revision",
            ),
            (
                "patch applicationconfigurations.core.oam.dev",
                "finalizers of traits that come later",
            ),
        ],
    ),
    (
        "certificate-approval",
        &[(
            "create subjectaccessreviews.authorization.k8s.io",
            "certificates that are renewed",
        )],
    ),
    (
        "cluster-set",
        &[
            (
                "patch managedclusters/status.cluster.open-cluster-management.io",
                "namespaces that sets want on their members",
            ),
            (
                "update managedclustersets.cluster.open-cluster-management.io",
                "sets that were changed by hand",
            ),
        ],
    ),
    (
        "component",
        &[(
            "delete controllerrevisions.apps",
            "more revisions than are kept",
        )],
    ),
    (
        "definition",
        &[(
            "delete definitionrevisions.core.oam.dev",
            "more revisions than are kept",
        )],
    ),
    (
        "helm-template",
        &[("get secrets", "credentials of sources")],
    ),
    (
        "kustomize-patch",
        &[("get secrets", "credentials of sources")],
    ),
    (
        "placement",
        &[
            (
                "delete placementdecisions.cluster.open-cluster-management.io",
                "fewer than before",
            ),
            (
                "patch placementdecisions.cluster.open-cluster-management.io",
                "groups that change",
            ),
        ],
    ),
    (
        "policy-propagator",
        &[
            ("create secrets", "keys for values from Secrets"),
            (
                "create subjectaccessreviews.authorization.k8s.io",
                "accounts of policies",
            ),
            ("get *.*", "what templates look up"),
            ("get secrets", "keys for values from Secrets"),
            (
                "patch policysets/status.policy.open-cluster-management.io",
                "sets of policies",
            ),
            ("update secrets", "keys that are replaced"),
        ],
    ),
    (
        "registration",
        &[
            (
                "delete managedclusteraddons.addon.open-cluster-management.io",
                "add-ons of a cluster that leaves",
            ),
            (
                "delete works.multicluster.x-k8s.io",
                "works of a cluster that leaves",
            ),
            (
                "patch clusterrolebindings.rbac.authorization.k8s.io",
                "what was changed by hand",
            ),
            (
                "patch clusterroles.rbac.authorization.k8s.io",
                "what was changed by hand",
            ),
            (
                "patch managedclustersets/status.cluster.open-cluster-management.io",
                "many silent members",
            ),
            ("patch namespaces", "what was changed by hand"),
            (
                "patch rolebindings.rbac.authorization.k8s.io",
                "what was changed by hand",
            ),
        ],
    ),
    (
        "work-ttl",
        &[(
            "delete manifestworks.work.open-cluster-management.io",
            "works that their agent does not remove in time",
        )],
    ),
    (
        "workflow-run",
        &[
            ("create secrets", "the key of approvals by token"),
            ("get secrets", "the key of approvals by token"),
            ("patch configmaps", "data that is passed on later"),
            ("update configmaps", "steps that are debugged"),
        ],
    ),
];

/// True if a right need not be seen.
fn is_known(controller: &str, right: &str) -> bool {
    NOT_SEEN
        .iter()
        .filter(|(name, _)| name.is_empty() || *name == controller)
        .flat_map(|(_, rights)| rights.iter())
        .any(|(known, _)| *known == right)
}

fn written(verb: &str, resource: &str, group: &str) -> String {
    let dot = if group.is_empty() { "" } else { "." };
    let verb = match verb {
        "list" | "watch" => "get",
        other => other,
    };
    format!("{verb} {resource}{dot}{group}")
}

fn rights_of(rules: &[PolicyRule]) -> Rights {
    let mut rights = Rights::new();
    for rule in rules {
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                rights.extend(rule.verbs.iter().map(|verb| written(verb, resource, group)));
            }
        }
    }
    rights
}

/// What each controller asked for, by its name; what shared caches asked for has no name.
fn used(log: &str, used: &mut BTreeMap<String, Rights>) {
    for line in log.lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let text = |pointer: &str| line.pointer(pointer).and_then(Value::as_str).unwrap_or("");
        let agent = text("/userAgent");
        let is_hub = text("/annotations/bellwether.dev~1cluster") == "hub";
        let name = match agent.strip_prefix("bellwether/") {
            Some(named) => named.split(' ').nth(1).unwrap_or(""),
            None => "",
        };
        if !is_hub || line["objectRef"].is_null() {
            continue;
        }
        let resource = match text("/objectRef/subresource") {
            "" => text("/objectRef/resource").to_owned(),
            subresource => format!("{}/{subresource}", text("/objectRef/resource")),
        };
        let right = written(text("/verb"), &resource, text("/objectRef/apiGroup"));
        used.entry(name.to_owned()).or_default().insert(right);
    }
}

/// Plays an example with an audit log, and returns the log.
fn play(name: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.log");
    copy(&fleet::root().join("examples").join(name), folder.path());
    let path = folder.path().join("script.yaml");
    let script = std::fs::read_to_string(&path).unwrap();
    let arguments = format!("--audit-log, {}, --audit-reads", log.display());
    let script = if script.contains("\n  arguments: [") {
        script.replace(
            "\n  arguments: [",
            &format!("\n  arguments: [{arguments}, "),
        )
    } else {
        script.replace(
            "\nfleet:\n",
            &format!("\nfleet:\n  arguments: [{arguments}]\n"),
        )
    };
    std::fs::write(path, script).unwrap();
    let mut command = fleet::bellwether();
    command.args(["examples", "run"]).arg(folder.path());
    let (succeeded, output, errors) = process::run(&mut command);
    assert!(succeeded, "{output}\n{errors}");
    std::fs::read_to_string(log).unwrap()
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            std::fs::create_dir_all(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// What the examples leave out: each object is created, changed and deleted.
fn the_rest() -> String {
    let fleet = Fleet::start_with(&["--clusters", "1", "--audit-reads"]);
    let member = Fleet::only_server();
    let bellwether = |arguments: &str| fleet.shell(&format!("{BELLWETHER} {arguments}"));
    let bootstrap = fleet.scratch().join("edge1.yaml").display().to_string();
    bellwether(&format!(
        "token create --cluster-name edge1 --write {bootstrap}"
    ));
    let kubeconfig = member.kubeconfig();
    let agent = format!(
        "agent --cluster-name edge1 --bootstrap-kubeconfig {bootstrap} --kubeconfig {}",
        kubeconfig.display()
    );
    let _agent = Process::start(&agent, "the agent of edge1 is ready");
    until_available(&fleet, "edge1");
    // Each file twice: as it is, and changed.
    let files = [
        ("examples/rollout/fleet.yaml", ("shop:1", "shop:2")),
        (
            "examples/policy/enforce.yaml",
            ("severity: low", "severity: high"),
        ),
        ("examples/apply-once/example.yaml", ("app:1.0", "app:2.0")),
        (
            "crates/bellwether/testdata/install/application.yaml",
            ("nginx:1.27", "nginx:1.28"),
        ),
        ("examples/application-policies/definitions.yaml", ("", "")),
        ("examples/case-3-data-passing/definitions.yaml", ("", "")),
        ("examples/work/work-api.yaml", ("", "")),
        ("examples/workflow/release.yaml", ("", "")),
        ("examples/work/job-ttl.yaml", ("", "")),
    ];
    let path = fleet.scratch().join("applied.yaml").display().to_string();
    let apply = |is_second: bool| {
        for (file, (before, after)) in files {
            let text = std::fs::read_to_string(fleet::root().join(file)).unwrap();
            let mut text =
                text.replace("ttlSecondsAfterFinished: 30", "ttlSecondsAfterFinished: 1");
            if is_second && !before.is_empty() {
                text = text.replace(before, after);
            }
            std::fs::write(&path, text).unwrap();
            bellwether(&format!("apply -f {path}"));
        }
        bellwether(
            "wait --for=condition=PlacementRolledOut --timeout=60s manifestworkreplicaset/shop",
        );
        let policy = "policies.policy.open-cluster-management.io enforce";
        fleet.until_field(policy, ".status.compliant", "Compliant");
        for name in ["front", "back"] {
            fleet.until_field(&format!("application {name}"), ".status.status", "running");
        }
    };
    let step = json!({"apiVersion": "core.oam.dev/v1beta1", "kind": "WorkflowStepDefinition",
        "metadata": {"name": "nothing", "namespace": "default"},
        "spec": {"schematic": {"cue": {"template": "parameter: {}"}}}});
    fleet.apply_objects("step.json", &[step]);
    apply(false);
    bellwether("workflow resume release");
    apply(true);
    fleet.until_field("workflowrun release", ".status.status", "succeeded");
    fleet.until_gone("manifestwork job-ttl -n cluster1");
    // An Application that names a cluster goes first: it would bring its work back while the cluster leaves.
    bellwether("delete application front back --timeout=60s");
    bellwether("cluster detach edge1 --timeout 60");
    for (file, _) in &files[..3] {
        bellwether(&format!(
            "delete -f {file} --ignore-not-found --timeout=60s"
        ));
    }
    std::fs::read_to_string(fleet.directory().join("audit.log")).unwrap()
}

#[test]
fn no_controller_has_a_right_that_it_does_not_use() {
    let mut seen = BTreeMap::new();
    for name in [
        "case-1-multi-cluster",
        "case-2-blue-green",
        "case-5-templates",
    ] {
        used(&play(name), &mut seen);
    }
    used(&the_rest(), &mut seen);
    let nothing = Rights::new();
    let mut unused = Vec::new();
    for entry in HUB {
        let used = seen.get(entry.name).unwrap_or(&nothing);
        let rules = entry.rights.iter().copied();
        let in_system = IN_SYSTEM_NAMESPACE.iter();
        let in_system = in_system.filter(|(name, _)| *name == entry.name);
        let in_system = in_system.flat_map(|(_, rules)| rules.iter().copied());
        let rules: Vec<Rule> = rules.chain(in_system).collect();
        let granted = rights_of(&merge(to_rules(&rules)));
        let left = granted.difference(used);
        let left = left.filter(|right| !is_known(entry.name, right));
        unused.extend(left.map(|right| format!("{}: {right}", entry.name)));
    }
    assert!(unused.is_empty(), "{unused:#?}");
}
