//! Rights that no controller uses: everything is done once on a fleet with an audit log, in which requests carry the name of
//! their controller, and what was not asked for is named.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bellwether_controllers::registry::{HUB, merge, to_rules};
use bellwether_testkit::process;
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::Value;

use crate::fleet::{self, Fleet};
use crate::site::{BELLWETHER, Site as _};

/// A right as it is written here: `VERB RESOURCE.GROUP`.
type Rights = BTreeSet<String>;

/// Rights that are checked by other means than a request with this verb, or that only faults and races lead to.
const NOT_SEEN: &[(&str, &str, &str)] = &[];

fn written(verb: &str, resource: &str, group: &str) -> String {
    let dot = if group.is_empty() { "" } else { "." };
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
        script.replace("\n  arguments: [", &format!("\n  arguments: [{arguments}, "))
    } else {
        script.replace("\nfleet:\n", &format!("\nfleet:\n  arguments: [{arguments}]\n"))
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
    let fleet = Fleet::start_with(&["--clusters", "2", "--audit-reads"]);
    let apply = |path: &str| fleet.shell(&format!("{BELLWETHER} apply -f {path}"));
    for path in [
        "examples/rollout/fleet.yaml",
        "examples/policy/enforce.yaml",
        "examples/policy/templates.yaml",
        "examples/apply-once/example.yaml",
        "examples/work/work-api.yaml",
        "examples/application/shop.yaml",
    ] {
        apply(path);
    }
    fleet.until_field("application shop", ".status.status", "running");
    let policy = "policies.policy.open-cluster-management.io enforce";
    fleet.until_field(policy, ".status.compliant", "Compliant");
    let rolled = "--for=condition=PlacementRolledOut --timeout=60s manifestworkreplicaset/shop";
    fleet.shell(&format!("{BELLWETHER} wait {rolled}"));
    fleet.shell(&format!("{BELLWETHER} cluster detach cluster2 --timeout 60"));
    fleet.shell(&format!("{BELLWETHER} delete application shop --timeout=60s"));
    std::fs::read_to_string(fleet.directory().join("audit.log")).unwrap()
}

#[test]
fn no_controller_has_a_right_that_it_does_not_use() {
    let mut seen = BTreeMap::new();
    for name in ["case-1-multi-cluster", "case-2-blue-green", "case-5-templates"] {
        used(&play(name), &mut seen);
    }
    used(&the_rest(), &mut seen);
    let nothing = Rights::new();
    let mut unused = Vec::new();
    for entry in HUB {
        let used = seen.get(entry.name).unwrap_or(&nothing);
        let granted = rights_of(&merge(to_rules(entry.rights)));
        let known = |right: &&String| {
            let is_it = |known: &&(&str, &str, &str)| known.0 == entry.name && known.1 == *right;
            !NOT_SEEN.iter().any(|known| is_it(&known))
        };
        let left = granted.difference(used).filter(known);
        unused.extend(left.map(|right| format!("{}: {right}", entry.name)));
    }
    assert!(unused.is_empty(), "{unused:#?}");
}
