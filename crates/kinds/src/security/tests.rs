use serde_json::json;

use super::*;

fn latest(level: Level) -> LevelVersion {
    LevelVersion { level, minor: None }
}

/// What the latest version of a level says of a pod with this spec.
#[track_caller]
fn check(level: Level, spec: Value, expected: &str) {
    let found = violations(latest(level), &json!({"spec": spec}));
    assert_eq!(describe(&found), expected, "{spec}");
}

/// A pod that every level allows.
fn hardened() -> Value {
    json!({
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "volumes": [{"name": "v", "emptyDir": {}}],
        "containers": [{"name": "a", "securityContext": {
            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
        }}],
    })
}

#[test]
fn an_ordinary_pod_is_baseline_and_not_restricted() {
    let spec = json!({"containers": [{"name": "a"}, {"name": "b"}]});
    check(Level::Privileged, spec.clone(), "");
    check(Level::Baseline, spec.clone(), "");
    check(
        Level::Restricted,
        spec,
        "allowPrivilegeEscalation != false (containers \"a\", \"b\" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (containers \"a\", \"b\" must set securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or containers \"a\", \"b\" must set securityContext.runAsNonRoot=true), seccompProfile (pod or containers \"a\", \"b\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")",
    );
    check(Level::Restricted, hardened(), "");
}

#[test]
fn baseline_forbids_what_reaches_the_host() {
    let of = |context: Value| json!({"containers": [{"name": "a", "securityContext": context}]});
    let cases = [
        (
            json!({"hostNetwork": true, "hostIPC": true}),
            "host namespaces (hostNetwork=true, hostIPC=true)",
        ),
        (
            of(json!({"privileged": true})),
            "privileged (container \"a\" must not set securityContext.privileged=true)",
        ),
        (
            of(json!({"capabilities": {"add": ["NET_ADMIN", "CHOWN"]}})),
            "non-default capabilities (container \"a\" must not include \"NET_ADMIN\" in securityContext.capabilities.add)",
        ),
        (
            json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}}, {"name": "w", "emptyDir": {}}]}),
            "hostPath volumes (volume \"v\")",
        ),
        (
            json!({"containers": [{"name": "a", "ports": [{"hostPort": 80}, {"hostPort": 443}]}]}),
            "hostPort (container \"a\" uses hostPorts 443, 80)",
        ),
        (
            json!({"containers": [{"name": "a", "livenessProbe": {"httpGet": {"host": "1.2.3.4"}}}]}),
            "probe or lifecycle host (container \"a\" uses probe or lifecycle host \"1.2.3.4\")",
        ),
        (
            of(json!({"procMount": "Unmasked"})),
            "procMount (container \"a\" must not set securityContext.procMount to \"Unmasked\")",
        ),
        (
            json!({"securityContext": {"seLinuxOptions": {"type": "x", "user": "y"}}}),
            "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type \"x\"; user may not be set)",
        ),
        (
            json!({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}),
            "seccompProfile (pod must not set securityContext.seccompProfile.type to \"Unconfined\")",
        ),
        (
            json!({"securityContext": {"sysctls": [{"name": "kernel.msgmax"}, {"name": "net.ipv4.tcp_rmem"}]}}),
            "forbidden sysctls (kernel.msgmax)",
        ),
        (
            json!({"securityContext": {"windowsOptions": {"hostProcess": true}}}),
            "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)",
        ),
        (
            json!({"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}),
            "forbidden AppArmor profile (pod must not set AppArmor profile type to \"Unconfined\")",
        ),
    ];
    for (spec, expected) in cases {
        check(Level::Baseline, spec, expected);
    }
}

#[test]
fn restricted_replaces_what_it_is_stricter_about() {
    let mut spec = hardened();
    spec["volumes"] = json!([{"name": "v", "hostPath": {"path": "/"}}]);
    check(
        Level::Restricted,
        spec,
        "restricted volume types (volume \"v\" uses restricted volume type \"hostPath\")",
    );
    let mut spec = hardened();
    spec["securityContext"]["runAsUser"] = 0.into();
    spec["securityContext"]["runAsNonRoot"] = false.into();
    check(
        Level::Restricted,
        spec,
        "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false), runAsUser=0 (pod must not set runAsUser=0)",
    );
    let mut spec = hardened();
    spec["containers"][0]["securityContext"]["capabilities"]["add"] = json!(["CHOWN"]);
    check(
        Level::Restricted,
        spec,
        "unrestricted capabilities (container \"a\" must not include \"CHOWN\" in securityContext.capabilities.add)",
    );
}

/// The root of such a pod is nobody on its node.
#[test]
fn users_of_its_own_allow_a_pod_more() {
    let mut spec = hardened();
    spec["hostUsers"] = false.into();
    spec["securityContext"]["runAsUser"] = 0.into();
    spec["securityContext"]["runAsNonRoot"] = false.into();
    check(Level::Restricted, spec.clone(), "");
    spec["containers"][0]["securityContext"]["procMount"] = "Unmasked".into();
    check(Level::Baseline, spec.clone(), "");
    check(
        Level::Restricted,
        spec,
        "procMount (container \"a\" must not set securityContext.procMount to \"Unmasked\")",
    );
}

#[test]
fn an_older_version_has_fewer_checks() {
    let old = LevelVersion {
        level: Level::Restricted,
        minor: Some(21),
    };
    let spec = json!({"spec": {"containers": [{"name": "a"}]}});
    assert_eq!(violations(old, &spec).len(), 3);
    assert_eq!(old.to_string(), "restricted:v1.21");
}

#[test]
fn labels_choose_the_levels() {
    let of = |labels: Value| Policy::of_namespace(&json!({"metadata": {"labels": labels}}));
    let (policy, errors) = of(json!({}));
    assert_eq!((policy, errors), (Policy::default(), vec![]));
    let (policy, errors) = of(json!({
        "pod-security.kubernetes.io/enforce": "baseline",
        "pod-security.kubernetes.io/enforce-version": "v1.30",
        "pod-security.kubernetes.io/warn": "restricted",
    }));
    assert_eq!(errors, []);
    assert_eq!(policy.enforce.to_string(), "baseline:v1.30");
    assert_eq!(policy.warn.to_string(), "restricted:latest");
    let (policy, errors) = of(json!({
        "pod-security.kubernetes.io/enforce": "strict",
        "pod-security.kubernetes.io/audit-version": "1.3",
    }));
    assert_eq!(policy.enforce.level, Level::Restricted);
    let messages: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        [
            "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"strict\": must be one of privileged, baseline, restricted",
            "metadata.labels[pod-security.kubernetes.io/audit-version]: Invalid value: \"1.3\": must be \"latest\" or \"v1.x\"",
        ]
    );
}

#[test]
fn templates_are_found_in_workloads() {
    let template = json!({"spec": {"hostPID": true}});
    let deployment = json!({"spec": {"template": template}});
    assert_eq!(pod_of("apps", "deployments", &deployment), Some(&template));
    let job = json!({"spec": {"jobTemplate": {"spec": {"template": template}}}});
    assert_eq!(pod_of("batch", "cronjobs", &job), Some(&template));
    assert_eq!(pod_of("", "configmaps", &json!({})), None);
    assert_eq!(
        pod_of("", "replicationcontrollers", &json!({"spec": {}})),
        None
    );
}
