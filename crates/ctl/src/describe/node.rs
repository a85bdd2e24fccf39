//! Nodes, and what is on them.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_json::quantity::Quantity;
use serde_json::Value;

use super::page::{Page, sorted};
use super::read::{items, joined, number, or_none, quantity, shown, text, truth};
use super::subject::Subject;

const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE: &str = "kubernetes.io/role";

/// Amounts by resource.
type Amounts = BTreeMap<String, Quantity>;

/// Describes a node.
pub(super) fn describe(subject: &Subject<'_>, page: &mut Page) {
    let (metadata, spec, status) = (subject.metadata(), subject.spec(), subject.status());
    page.pair(0, "Name", text(&metadata["name"]));
    page.pair(0, "Roles", or_none(&roles(&metadata["labels"])));
    page.labels("Labels", &metadata["labels"]);
    page.annotations("Annotations", &metadata["annotations"]);
    let created = subject.moment.date(&metadata["creationTimestamp"]);
    page.pair(0, "CreationTimestamp", created);
    page.list("Taints", &taints(&spec["taints"]));
    page.pair(0, "Unschedulable", truth(&spec["unschedulable"]));
    lease(subject, page);
    conditions(subject, page);
    page.line(0, "Addresses:");
    for address in items(&status["addresses"]) {
        page.pair(1, text(&address["type"]), text(&address["address"]));
    }
    for (label, name) in [("Capacity", "capacity"), ("Allocatable", "allocatable")] {
        let amounts = sorted(&status[name]);
        if !amounts.is_empty() {
            page.line(0, format_args!("{label}:"));
        }
        for (resource, amount) in amounts {
            page.pair(1, resource, quantity(amount));
        }
    }
    page.line(0, "System Info:");
    for (label, name) in [
        ("Machine ID", "machineID"),
        ("System UUID", "systemUUID"),
        ("Boot ID", "bootID"),
        ("Kernel Version", "kernelVersion"),
        ("OS Image", "osImage"),
        ("Operating System", "operatingSystem"),
        ("Architecture", "architecture"),
        ("Container Runtime Version", "containerRuntimeVersion"),
        ("Kubelet Version", "kubeletVersion"),
        ("Kube-Proxy Version", "kubeProxyVersion"),
    ] {
        page.pair(1, label, text(&status["nodeInfo"][name]));
    }
    page.pair_if(0, "PodCIDR", text(&spec["podCIDR"]));
    page.pair_if(0, "PodCIDRs", &joined(&spec["podCIDRs"], ","));
    page.pair_if(0, "ProviderID", text(&spec["providerID"]));
    if subject.related.no_pods {
        page.pair(0, "Pods", "not authorized");
    } else {
        pods(subject, page);
    }
}

fn roles(labels: &Value) -> String {
    let labels = sorted(labels).into_iter();
    let roles: BTreeSet<&str> = labels
        .filter_map(|(key, value)| match key.strip_prefix(ROLE_PREFIX) {
            Some(role) => Some(role),
            None if key == ROLE => Some(text(value)),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.into_iter().collect::<Vec<_>>().join(",")
}

fn taints(taints: &Value) -> Vec<String> {
    let mut taints: Vec<&Value> = items(taints).iter().collect();
    taints.sort_by_key(|taint| format!("{},{}", text(&taint["effect"]), text(&taint["key"])));
    let lines = taints.into_iter().map(|taint| {
        let [key, value, effect] = ["key", "value", "effect"].map(|name| text(&taint[name]));
        match (value, effect) {
            ("", "") => key.to_owned(),
            ("", effect) => format!("{key}:{effect}"),
            (value, "") => format!("{key}={value}:"),
            (value, effect) => format!("{key}={value}:{effect}"),
        }
    });
    lines.collect()
}

fn lease(subject: &Subject<'_>, page: &mut Page) {
    match &subject.related.lease {
        None => {}
        Some(Err(why)) => page.pair(0, "Lease", format_args!("Failed to get lease: {why}")),
        Some(Ok(lease)) => {
            page.line(0, "Lease:");
            let spec = &lease["spec"];
            let date = |value: &Value| match value {
                Value::Null => "<unset>".to_owned(),
                time => subject.moment.date(time),
            };
            let holder = super::read::shown_or(&spec["holderIdentity"], "<unset>");
            page.pair(1, "HolderIdentity", holder);
            page.pair(1, "AcquireTime", date(&spec["acquireTime"]));
            page.pair(1, "RenewTime", date(&spec["renewTime"]));
        }
    }
}

fn conditions(subject: &Subject<'_>, page: &mut Page) {
    let conditions = items(&subject.status()["conditions"]);
    if conditions.is_empty() {
        return;
    }
    page.line(0, "Conditions:");
    page.line(
        1,
        "Type\tStatus\tLastHeartbeatTime\tLastTransitionTime\tReason\tMessage",
    );
    page.line(
        1,
        "----\t------\t-----------------\t------------------\t------\t-------",
    );
    for found in conditions {
        let [kind, status, reason, message] =
            ["type", "status", "reason", "message"].map(|name| text(&found[name]));
        let [heard, since] = ["lastHeartbeatTime", "lastTransitionTime"]
            .map(|name| subject.moment.date(&found[name]));
        page.line(
            1,
            format_args!("{kind} \t{status} \t{heard} \t{since} \t{reason} \t{message}"),
        );
    }
}

/// The pods of a node, and what they take of it.
fn pods(subject: &Subject<'_>, page: &mut Page) {
    let pods = &subject.related.pods;
    page.pair(
        0,
        "Non-terminated Pods",
        format_args!("({} in total)", pods.len()),
    );
    page.line(
        1,
        "Namespace\tName\t\tCPU Requests\tCPU Limits\tMemory Requests\tMemory Limits\tAge",
    );
    page.line(
        1,
        "---------\t----\t\t------------\t----------\t---------------\t-------------\t---",
    );
    let whole = whole(subject);
    let mut totals = [Amounts::new(), Amounts::new()];
    for pod in pods {
        let parts = amounts_of(pod);
        let share = |part: usize, name: &str| share(parts[part].get(name), whole.get(name), name);
        let metadata = &pod["metadata"];
        let (namespace, name) = (text(&metadata["namespace"]), text(&metadata["name"]));
        let [cpu, most_cpu] = [0, 1].map(|part| share(part, "cpu"));
        let [memory, most_memory] = [0, 1].map(|part| share(part, "memory"));
        let age = subject.moment.since(&metadata["creationTimestamp"]);
        page.line(
            1,
            format_args!(
                "{namespace}\t{name}\t\t{cpu}\t{most_cpu}\t{memory}\t{most_memory}\t{age}"
            ),
        );
        for (total, part) in totals.iter_mut().zip(&parts) {
            add(total, part);
        }
    }
    page.line(0, "Allocated resources:");
    page.line(
        1,
        "(Total limits may be over 100 percent, i.e., overcommitted.)",
    );
    page.line(1, "Resource\tRequests\tLimits");
    page.line(1, "--------\t--------\t------");
    let names = ["cpu", "memory", "ephemeral-storage"].map(str::to_owned);
    let huge = whole
        .keys()
        .filter(|name| name.starts_with("hugepages-"))
        .cloned();
    for name in names.iter().cloned().chain(huge) {
        let [requests, limits] =
            [0, 1].map(|part: usize| share(totals[part].get(&name), whole.get(&name), &name));
        page.line(1, format_args!("{name}\t{requests}\t{limits}"));
    }
    let is_other = |name: &&String| {
        !names.contains(name)
            && *name != "pods"
            && *name != "storage"
            && !name.starts_with("hugepages-")
    };
    for name in whole.keys().filter(is_other) {
        let [requests, limits] = [0, 1].map(|part: usize| amount(totals[part].get(name)));
        page.line(1, format_args!("{name}\t{requests}\t{limits}"));
    }
}

/// What a node has to give.
fn whole(subject: &Subject<'_>) -> Amounts {
    let status = subject.status();
    let given = match sorted(&status["allocatable"]) {
        none if none.is_empty() => &status["capacity"],
        _ => &status["allocatable"],
    };
    read(given)
}

fn read(amounts: &Value) -> Amounts {
    let amounts = sorted(amounts).into_iter();
    amounts
        .filter_map(|(name, amount)| Some((name.clone(), shown(amount).parse().ok()?)))
        .collect()
}

fn add(total: &mut Amounts, part: &Amounts) {
    for (name, amount) in part {
        let sum = total
            .get(name)
            .map_or_else(|| amount.clone(), |known| known.add(amount));
        total.insert(name.clone(), sum);
    }
}

/// What a pod asks for, and what it may take.
fn amounts_of(pod: &Value) -> [Amounts; 2] {
    let spec = &pod["spec"];
    ["requests", "limits"].map(|which| {
        let mut sum = Amounts::new();
        for container in items(&spec["containers"]) {
            add(&mut sum, &read(&container["resources"][which]));
        }
        // Containers that run before the others need no more than what is there already.
        let mut beside = Amounts::new();
        let mut before = Amounts::new();
        for container in items(&spec["initContainers"]) {
            let mut needed = read(&container["resources"][which]);
            if container["restartPolicy"] == "Always" {
                add(&mut sum, &needed);
                add(&mut beside, &needed);
                needed.clone_from(&beside);
            } else {
                add(&mut needed, &beside);
            }
            raise(&mut before, needed);
        }
        raise(&mut sum, before);
        if which == "requests" || !sum.is_empty() {
            add(&mut sum, &read(&spec["overhead"]));
        }
        sum
    })
}

fn raise(amounts: &mut Amounts, least: Amounts) {
    for (name, amount) in least {
        if amounts.get(&name).is_none_or(|known| *known < amount) {
            amounts.insert(name, amount);
        }
    }
}

fn amount(amount: Option<&Quantity>) -> String {
    amount.map_or_else(|| "0".to_owned(), ToString::to_string)
}

/// An amount, and how much of the whole that is.
fn share(part: Option<&Quantity>, whole: Option<&Quantity>, name: &str) -> String {
    let value = |amount: &Quantity| {
        if name == "cpu" {
            amount.milli_value()
        } else {
            amount.value()
        }
    };
    let (part_value, whole_value) = (part.map_or(0, value), whole.map_or(0, value));
    let percent = match whole_value {
        0 => 0,
        whole => i128::from(part_value) * 100 / i128::from(whole),
    };
    format!("{} ({percent}%)", amount(part))
}

/// Describes a priority class.
pub(super) fn priority_class(subject: &Subject<'_>, page: &mut Page) {
    let object = subject.object;
    page.pair(0, "Name", text(&subject.metadata()["name"]));
    page.pair(0, "Value", number(&object["value"]));
    page.pair(0, "GlobalDefault", truth(&object["globalDefault"]));
    page.pair(0, "PreemptionPolicy", text(&object["preemptionPolicy"]));
    page.pair(0, "Description", text(&object["description"]));
    let annotations = super::read::flat_labels(&subject.metadata()["annotations"]);
    page.pair(0, "Annotations", annotations);
}
