//! The checks that `restricted` adds, in the order of their names in Kubernetes.

use serde_json::Value;

use super::baseline::{is_confined, unconfined, unmasked};
use super::{Check, PodView, Violation, containers, of_container, plural, quoted, sorted};
use crate::value::{at, entries, has, list, text, texts};

pub(super) const CHECKS: &[Check] = &[
    check(8, privilege_escalation),
    check(22, capabilities),
    check(0, unmasked),
    check(0, volumes),
    check(0, non_root),
    check(23, root_user),
    check(19, seccomp),
];

const fn check(since: u32, run: fn(&PodView<'_>) -> Option<Violation>) -> Check {
    Check {
        since,
        is_replaced: false,
        run,
    }
}

fn privilege_escalation(pod: &PodView<'_>) -> Option<Violation> {
    if pod.is_windows() {
        return None;
    }
    let names = pod.names(|it| *of_container(it, &["allowPrivilegeEscalation"]) != false);
    if names.is_empty() {
        return None;
    }
    let who = containers(&names);
    Some(Violation::new(
        "allowPrivilegeEscalation != false",
        format!("{who} must set securityContext.allowPrivilegeEscalation=false"),
    ))
}

fn capabilities(pod: &PodView<'_>) -> Option<Violation> {
    if pod.is_windows() {
        return None;
    }
    let keeping = pod.names(|container| {
        let mut dropped = texts(container, &["securityContext", "capabilities", "drop"]);
        !dropped.any(|name| name == "ALL")
    });
    let mut added = Vec::new();
    let adding = pod.names(|container| {
        let before = added.len();
        let all = texts(container, &["securityContext", "capabilities", "add"]);
        let others = all.filter(|name| *name != "NET_BIND_SERVICE");
        added.extend(others.map(str::to_owned));
        added.len() > before
    });
    let mut details = Vec::new();
    if !keeping.is_empty() {
        let who = containers(&keeping);
        details.push(format!(
            "{who} must set securityContext.capabilities.drop=[\"ALL\"]"
        ));
    }
    if !adding.is_empty() {
        let who = containers(&adding);
        let what = quoted(&sorted(added));
        details.push(format!(
            "{who} must not include {what} in securityContext.capabilities.add"
        ));
    }
    if details.is_empty() {
        return None;
    }
    Some(Violation::new(
        "unrestricted capabilities",
        details.join("; "),
    ))
}

fn volumes(pod: &PodView<'_>) -> Option<Violation> {
    const TYPES: [&str; 9] = [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    let (mut names, mut types) = (Vec::new(), Vec::new());
    for volume in list(pod.spec(), &["volumes"]) {
        if TYPES.iter().any(|kind| has(volume, &[kind])) {
            continue;
        }
        names.push(text(volume, &["name"]));
        let kind = entries(volume, &[]).find(|(name, value)| *name != "name" && !value.is_null());
        types.push(kind.map_or("unknown", |(name, _)| name.as_str()).to_owned());
    }
    if names.is_empty() {
        return None;
    }
    let types = sorted(types);
    Some(Violation::new(
        "restricted volume types",
        format!(
            "{} {} {} {} {}",
            plural("volume", "volumes", names.len()),
            quoted(&names),
            plural("uses", "use", names.len()),
            plural(
                "restricted volume type",
                "restricted volume types",
                types.len()
            ),
            quoted(&types)
        ),
    ))
}

fn non_root(pod: &PodView<'_>) -> Option<Violation> {
    const REASON: &str = "runAsNonRoot != true";
    if pod.is_relaxed {
        return None;
    }
    let path = ["runAsNonRoot"];
    let setters = pod.setters(&path, |value| *value == false);
    if !setters.is_empty() {
        let who = setters.join(" and ");
        return Some(Violation::new(
            REASON,
            format!("{who} must not set securityContext.runAsNonRoot=false"),
        ));
    }
    let by_pod = *pod.security(&path) == true;
    let names = pod.names(|container| !by_pod && of_container(container, &path).is_null());
    if names.is_empty() {
        return None;
    }
    let who = containers(&names);
    Some(Violation::new(
        REASON,
        format!("pod or {who} must set securityContext.runAsNonRoot=true"),
    ))
}

fn root_user(pod: &PodView<'_>) -> Option<Violation> {
    if pod.is_relaxed {
        return None;
    }
    let setters = pod.setters(&["runAsUser"], |user| *user == 0);
    if setters.is_empty() {
        return None;
    }
    let who = setters.join(" and ");
    Some(Violation::new(
        "runAsUser=0",
        format!("{who} must not set runAsUser=0"),
    ))
}

fn seccomp(pod: &PodView<'_>) -> Option<Violation> {
    if pod.is_windows() {
        return None;
    }
    let bad = unconfined(pod);
    if bad.is_some() {
        return bad;
    }
    let profile = |context: &Value| is_confined(at(context, &["seccompProfile", "type"]));
    let by_pod = profile(pod.security(&[]));
    let names = pod.names(|container| !by_pod && !profile(of_container(container, &[])));
    if names.is_empty() {
        return None;
    }
    let who = containers(&names);
    Some(Violation::new(
        "seccompProfile",
        format!(
            "pod or {who} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\""
        ),
    ))
}
