//! The checks of the level `baseline`, in the order of their names in Kubernetes.

use serde_json::Value;

use super::{Check, PodView, Violation, containers, of_container, plural, quoted, sorted};
use crate::value::{at, entries, flag, has, int, list, text, texts};

pub(super) const CHECKS: &[Check] = &[
    check(0, app_armor),
    replaced(0, capabilities),
    check(0, host_namespaces),
    replaced(0, host_paths),
    check(0, host_ports),
    check(34, probe_hosts),
    check(0, privileged),
    replaced(0, proc_mount),
    check(0, selinux),
    replaced(19, seccomp),
    check(0, sysctls),
    check(0, host_process),
];

const fn check(since: u32, run: fn(&PodView<'_>) -> Option<Violation>) -> Check {
    Check {
        since,
        is_replaced: false,
        run,
    }
}

/// A check that `restricted` replaces by its own.
const fn replaced(since: u32, run: fn(&PodView<'_>) -> Option<Violation>) -> Check {
    Check {
        since,
        is_replaced: true,
        run,
    }
}

const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

fn app_armor(pod: &PodView<'_>) -> Option<Violation> {
    let mut values = Vec::new();
    let mut setters = pod.setters(&["appArmorProfile", "type"], |kind| {
        let bad = !kind.is_null() && kind != "RuntimeDefault" && kind != "Localhost";
        if bad {
            values.push(kind.as_str().unwrap_or_default().to_owned());
        }
        bad
    });
    let mut annotations = Vec::new();
    for (name, value) in entries(pod.pod, &["metadata", "annotations"]) {
        let profile = value.as_str().unwrap_or_default();
        let allowed =
            matches!(profile, "" | "runtime/default") || profile.starts_with("localhost/");
        if name.starts_with(APP_ARMOR) && !allowed {
            annotations.push(format!("{name}={profile:?}"));
            values.push(profile.to_owned());
        }
    }
    if !annotations.is_empty() {
        let word = plural("annotation", "annotations", annotations.len());
        setters.push(format!("{word} {}", sorted(annotations).join(", ")));
    }
    if setters.is_empty() {
        return None;
    }
    let values = sorted(values);
    let reason = plural(
        "forbidden AppArmor profile",
        "forbidden AppArmor profiles",
        values.len(),
    );
    Some(Violation::new(
        reason,
        format!(
            "{} must not set AppArmor profile type to {}",
            setters.join(" and "),
            quoted(&values)
        ),
    ))
}

const DEFAULT_CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

fn capabilities(pod: &PodView<'_>) -> Option<Violation> {
    let mut added = Vec::new();
    let names = pod.names(|container| {
        let before = added.len();
        let all = texts(container, &["securityContext", "capabilities", "add"]);
        let others = all.filter(|name| !DEFAULT_CAPABILITIES.contains(name));
        added.extend(others.map(str::to_owned));
        added.len() > before
    });
    if names.is_empty() {
        return None;
    }
    Some(Violation::new(
        "non-default capabilities",
        format!(
            "{} must not include {} in securityContext.capabilities.add",
            containers(&names),
            quoted(&sorted(added))
        ),
    ))
}

fn host_namespaces(pod: &PodView<'_>) -> Option<Violation> {
    let used: Vec<String> = ["hostNetwork", "hostPID", "hostIPC"]
        .iter()
        .filter(|field| flag(pod.spec(), &[field]))
        .map(|field| format!("{field}=true"))
        .collect();
    if used.is_empty() {
        return None;
    }
    Some(Violation::new("host namespaces", used.join(", ")))
}

fn host_paths(pod: &PodView<'_>) -> Option<Violation> {
    let volumes = list(pod.spec(), &["volumes"]).iter();
    let names: Vec<&str> = volumes
        .filter(|volume| has(volume, &["hostPath"]))
        .map(|volume| text(volume, &["name"]))
        .collect();
    if names.is_empty() {
        return None;
    }
    let word = plural("volume", "volumes", names.len());
    Some(Violation::new(
        "hostPath volumes",
        format!("{word} {}", quoted(&names)),
    ))
}

fn host_ports(pod: &PodView<'_>) -> Option<Violation> {
    let mut ports = Vec::new();
    let names = pod.names(|container| {
        let before = ports.len();
        let all = list(container, &["ports"]).iter();
        let used = all
            .map(|port| int(port, &["hostPort"]))
            .filter(|port| *port != 0);
        ports.extend(used.map(|port| port.to_string()));
        ports.len() > before
    });
    if names.is_empty() {
        return None;
    }
    let ports = sorted(ports);
    Some(Violation::new(
        "hostPort",
        format!(
            "{} {} {} {}",
            containers(&names),
            plural("uses", "use", names.len()),
            plural("hostPort", "hostPorts", ports.len()),
            ports.join(", ")
        ),
    ))
}

fn probe_hosts(pod: &PodView<'_>) -> Option<Violation> {
    const HANDLERS: [&[&str]; 5] = [
        &["livenessProbe"],
        &["readinessProbe"],
        &["startupProbe"],
        &["lifecycle", "postStart"],
        &["lifecycle", "preStop"],
    ];
    let mut hosts = Vec::new();
    let names = pod.names(|container| {
        let before = hosts.len();
        for handler in HANDLERS {
            let handler = at(container, handler);
            for kind in ["httpGet", "tcpSocket"] {
                let host = text(handler, &[kind, "host"]);
                if !host.is_empty() {
                    hosts.push(host.to_owned());
                }
            }
        }
        hosts.len() > before
    });
    if names.is_empty() {
        return None;
    }
    let names = sorted(names.into_iter().map(str::to_owned).collect());
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let hosts = sorted(hosts);
    Some(Violation::new(
        "probe or lifecycle host",
        format!(
            "{} {} {} {}",
            containers(&names),
            plural("uses", "use", names.len()),
            plural(
                "probe or lifecycle host",
                "probe or lifecycle hosts",
                hosts.len()
            ),
            quoted(&hosts)
        ),
    ))
}

fn privileged(pod: &PodView<'_>) -> Option<Violation> {
    let names = pod.names(|container| flag(container, &["securityContext", "privileged"]));
    if names.is_empty() {
        return None;
    }
    let who = containers(&names);
    Some(Violation::new(
        "privileged",
        format!("{who} must not set securityContext.privileged=true"),
    ))
}

fn proc_mount(pod: &PodView<'_>) -> Option<Violation> {
    if pod.is_relaxed {
        return None;
    }
    unmasked(pod)
}

/// Who sees more of the node's processes than is usual.
pub(super) fn unmasked(pod: &PodView<'_>) -> Option<Violation> {
    let mut values = Vec::new();
    let names = pod.names(|container| {
        let value = text(container, &["securityContext", "procMount"]);
        let bad = !matches!(value, "" | "Default");
        if bad {
            values.push(value.to_owned());
        }
        bad
    });
    if names.is_empty() {
        return None;
    }
    Some(Violation::new(
        "procMount",
        format!(
            "{} must not set securityContext.procMount to {}",
            containers(&names),
            quoted(&sorted(values))
        ),
    ))
}

fn selinux(pod: &PodView<'_>) -> Option<Violation> {
    const TYPES: [&str; 5] = [
        "",
        "container_t",
        "container_init_t",
        "container_kvm_t",
        "container_engine_t",
    ];
    let (mut types, mut user, mut role) = (Vec::new(), false, false);
    let setters = pod.setters(&["seLinuxOptions"], |options| {
        let kind = text(options, &["type"]);
        let bad_type = !TYPES.contains(&kind);
        if bad_type {
            types.push(kind.to_owned());
        }
        let (sets_user, sets_role) = (
            !text(options, &["user"]).is_empty(),
            !text(options, &["role"]).is_empty(),
        );
        user |= sets_user;
        role |= sets_role;
        bad_type || sets_user || sets_role
    });
    if setters.is_empty() {
        return None;
    }
    let mut data = Vec::new();
    if !types.is_empty() {
        let types = sorted(types);
        let word = plural("type", "types", types.len());
        data.push(format!("{word} {}", quoted(&types)));
    }
    if user {
        data.push("user may not be set".to_owned());
    }
    if role {
        data.push("role may not be set".to_owned());
    }
    Some(Violation::new(
        "seLinuxOptions",
        format!(
            "{} set forbidden securityContext.seLinuxOptions: {}",
            setters.join(" and "),
            data.join("; ")
        ),
    ))
}

/// Whether a profile keeps containers from system calls that they should not make.
pub(super) fn is_confined(kind: &Value) -> bool {
    kind == "RuntimeDefault" || kind == "Localhost"
}

/// Who sets a profile that confines nothing.
pub(super) fn unconfined(pod: &PodView<'_>) -> Option<Violation> {
    let mut values = Vec::new();
    let setters = pod.setters(&["seccompProfile", "type"], |kind| {
        let bad = !kind.is_null() && !is_confined(kind);
        if bad {
            values.push(kind.as_str().unwrap_or_default().to_owned());
        }
        bad
    });
    if setters.is_empty() {
        return None;
    }
    Some(Violation::new(
        "seccompProfile",
        format!(
            "{} must not set securityContext.seccompProfile.type to {}",
            setters.join(" and "),
            quoted(&sorted(values))
        ),
    ))
}

fn seccomp(pod: &PodView<'_>) -> Option<Violation> {
    unconfined(pod)
}

fn sysctls(pod: &PodView<'_>) -> Option<Violation> {
    const SAFE: [&str; 12] = [
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    ];
    let all = pod.security(&["sysctls"]).as_array().into_iter().flatten();
    let names: Vec<&str> = all
        .map(|sysctl| text(sysctl, &["name"]))
        .filter(|name| !SAFE.contains(name))
        .collect();
    if names.is_empty() {
        return None;
    }
    Some(Violation::new("forbidden sysctls", names.join(", ")))
}

fn host_process(pod: &PodView<'_>) -> Option<Violation> {
    let path = ["windowsOptions", "hostProcess"];
    let mut setters = Vec::new();
    if *pod.security(&path) == true {
        setters.push("pod".to_owned());
    }
    let names = pod.names(|container| *of_container(container, &path) == true);
    if !names.is_empty() {
        setters.push(containers(&names));
    }
    if setters.is_empty() {
        return None;
    }
    let who = setters.join(" and ");
    Some(Violation::new(
        "hostProcess",
        format!("{who} must not set securityContext.windowsOptions.hostProcess=true"),
    ))
}
