//! What ResourceQuotas count: how much of a quota an object uses, and which quotas count it.

use bellwether_json::quantity::{Quantity, QuantityFormat};
use bellwether_json::time;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::amounts::{Amounts, of_pod};
use crate::core::pod::qos_class;
use crate::value::{at, has, int, list, text, texts};

/// Where a storage class is named in what quotas count.
const CLASS: &str = ".storageclass.storage.k8s.io/";

/// A resource as quotas name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The name in paths.
    pub plural: &'a str,
}

impl Counted<'_> {
    fn is_core(&self, plural: &str) -> bool {
        self.group.is_empty() && self.plural == plural
    }

    /// `count/deployments.apps`
    fn count_name(&self) -> String {
        match self.group {
            "" => format!("count/{}", self.plural),
            group => format!("count/{}.{group}", self.plural),
        }
    }

    /// Whether a change of an object can use more of a quota.
    pub fn can_grow(&self) -> bool {
        ["pods", "services", "persistentvolumeclaims"]
            .iter()
            .any(|plural| self.is_core(plural))
    }

    /// Whether a quota that names this among its `hard` resources counts objects of this resource.
    pub fn is_counted_by(&self, name: &str) -> bool {
        if name == self.count_name() {
            return true;
        }
        if !self.group.is_empty() {
            return false;
        }
        match self.plural {
            "pods" => is_of_pods(name),
            "services" => matches!(
                name,
                "services" | "services.nodeports" | "services.loadbalancers"
            ),
            "persistentvolumeclaims" => {
                matches!(name, "persistentvolumeclaims" | "requests.storage")
                    || name.contains(CLASS)
            }
            plural @ ("configmaps" | "secrets" | "replicationcontrollers" | "resourcequotas") => {
                name == plural
            }
            _ => false,
        }
    }

    /// What an object uses of whatever a quota may count.
    pub fn usage(&self, object: &Value, now: Timestamp) -> Amounts {
        let mut usage = Amounts::default();
        usage.set(self.count_name(), number(1));
        if !self.group.is_empty() {
            return usage;
        }
        match self.plural {
            "pods" => {
                if is_running(object, now) {
                    usage.add(&pod_usage(
                        &of_pod(object, "requests"),
                        &of_pod(object, "limits"),
                    ));
                }
            }
            "services" => add_service(object, &mut usage),
            "persistentvolumeclaims" => add_claim(object, &mut usage),
            plural => usage.set(plural, number(1)),
        }
        usage
    }

    /// Whether a quota counts an object: it names something that the object uses, and its scopes fit.
    pub fn matches(&self, quota: &Value, object: &Value) -> bool {
        let hard = Amounts::read(at(quota, &["spec", "hard"]));
        if !hard.0.keys().any(|name| self.is_counted_by(name)) {
            return false;
        }
        let mut scopes = texts(quota, &["spec", "scopes"]);
        let mut expressions = list(quota, &["spec", "scopeSelector", "matchExpressions"]).iter();
        let is_pod = self.is_core("pods");
        scopes.all(|scope| is_pod && has_scope(object, scope, None))
            && expressions.all(|expression| {
                is_pod && has_scope(object, text(expression, &["scopeName"]), Some(expression))
            })
    }
}

/// What of the `hard` resources containers of a pod have to say, but do not.
pub fn missing_amounts(pod: &Value, hard: &Amounts) -> Option<String> {
    let required = [
        "cpu",
        "limits.cpu",
        "limits.memory",
        "memory",
        "requests.cpu",
        "requests.memory",
    ];
    let mut missing = Vec::new();
    for name in required.iter().filter(|name| hard.get(name).is_some()) {
        let containers = ["containers", "initContainers"];
        let containers = containers
            .iter()
            .flat_map(|containers| list(pod, &["spec", containers]));
        let mut silent: Vec<&str> = containers
            .filter(|container| {
                let of = |field: &str| Amounts::read(at(container, &["resources", field]));
                let usage = pod_usage(&of("requests"), &of("limits"));
                usage.get(name).is_none()
            })
            .map(|container| text(container, &["name"]))
            .collect();
        silent.sort_unstable();
        silent.dedup();
        if !silent.is_empty() {
            missing.push(format!("{name} for: {}", silent.join(",")));
        }
    }
    (!missing.is_empty()).then(|| format!("must specify {}", missing.join("; ")))
}

fn number(count: usize) -> Quantity {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    Quantity::new(count, 0, QuantityFormat::DecimalSi)
}

/// Nothing at all, with which sums begin.
pub fn zero() -> Quantity {
    number(0)
}

fn is_of_pods(name: &str) -> bool {
    const NAMES: [&str; 10] = [
        "pods",
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
    ];
    let asked = name.strip_prefix("requests.").unwrap_or(name);
    NAMES.contains(&name)
        || asked.starts_with("hugepages-")
        || (name.starts_with("requests.") && is_extended(asked))
}

/// Whether a resource is one of somebody's own, such as `example.com/gpu`.
fn is_extended(name: &str) -> bool {
    name.split_once('/')
        .is_some_and(|(domain, _)| !domain.ends_with("kubernetes.io") && !name.contains(CLASS))
}

/// Pods that have ended use nothing but their place; nor do those that should be gone.
fn is_running(pod: &Value, now: Timestamp) -> bool {
    if matches!(text(pod, &["status", "phase"]), "Failed" | "Succeeded") {
        return false;
    }
    let deleted = text(pod, &["metadata", "deletionTimestamp"]);
    let Ok(deleted) = time::parse_time(deleted) else {
        return true;
    };
    let grace = int(pod, &["metadata", "deletionGracePeriodSeconds"]);
    let end = deleted.saturating_add(SignedDuration::from_secs(grace));
    end.is_ok_and(|end| now <= end)
}

/// What requests and limits mean to quotas.
fn pod_usage(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut usage = Amounts::default();
    usage.set("pods", number(1));
    for (name, amount) in &requests.0 {
        let basic = matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage");
        if basic || name.starts_with("hugepages-") {
            usage.set(name, amount.clone());
        }
        if basic || name.starts_with("hugepages-") || is_extended(name) {
            usage.set(format!("requests.{name}"), amount.clone());
        }
    }
    for (name, amount) in &limits.0 {
        if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") {
            usage.set(format!("limits.{name}"), amount.clone());
        }
    }
    usage
}

fn add_service(service: &Value, usage: &mut Amounts) {
    let ports = list(service, &["spec", "ports"]);
    let (node_ports, balancers) = match text(service, &["spec", "type"]) {
        "NodePort" => (ports.len(), 0),
        "LoadBalancer" => {
            let allocates = at(service, &["spec", "allocateLoadBalancerNodePorts"]);
            let count = if allocates == false {
                let given = ports.iter().filter(|port| int(port, &["nodePort"]) != 0);
                given.count()
            } else {
                ports.len()
            };
            (count, 1)
        }
        _ => (0, 0),
    };
    usage.set("services", number(1));
    usage.set("services.nodeports", number(node_ports));
    usage.set("services.loadbalancers", number(balancers));
}

fn add_claim(claim: &Value, usage: &mut Amounts) {
    usage.set("persistentvolumeclaims", number(1));
    let class = text(claim, &["spec", "storageClassName"]);
    if !class.is_empty() {
        usage.set(format!("{class}{CLASS}persistentvolumeclaims"), number(1));
    }
    let requests = Amounts::read(at(claim, &["spec", "resources", "requests"]));
    if let Some(storage) = requests.get("storage") {
        usage.set("requests.storage", storage.clone());
        if !class.is_empty() {
            usage.set(format!("{class}{CLASS}requests.storage"), storage.clone());
        }
    }
}

/// Whether a pod is in a scope of a quota; `expression` is what a selector says about it.
fn has_scope(pod: &Value, scope: &str, expression: Option<&Value>) -> bool {
    let terminating = has(pod, &["spec", "activeDeadlineSeconds"]);
    let best_effort = qos_class(pod) == "BestEffort";
    match scope {
        "Terminating" => terminating,
        "NotTerminating" => !terminating,
        "BestEffort" => best_effort,
        "NotBestEffort" => !best_effort,
        "PriorityClass" => {
            let class = text(pod, &["spec", "priorityClassName"]);
            match expression {
                Some(expression) => selects(expression, class),
                None => !class.is_empty(),
            }
        }
        "CrossNamespacePodAffinity" => crosses_namespaces(pod),
        _ => false,
    }
}

fn selects(expression: &Value, class: &str) -> bool {
    let named = texts(expression, &["values"]).any(|value| value == class);
    match text(expression, &["operator"]) {
        "In" => !class.is_empty() && named,
        "NotIn" => !named,
        "Exists" => !class.is_empty(),
        "DoesNotExist" => class.is_empty(),
        _ => false,
    }
}

/// Whether a pod wants to be near or far from pods of other namespaces.
fn crosses_namespaces(pod: &Value) -> bool {
    let crosses =
        |term: &Value| !list(term, &["namespaces"]).is_empty() || has(term, &["namespaceSelector"]);
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let affinity = at(pod, &["spec", "affinity", kind]);
        let required = list(
            affinity,
            &["requiredDuringSchedulingIgnoredDuringExecution"],
        );
        let preferred = list(
            affinity,
            &["preferredDuringSchedulingIgnoredDuringExecution"],
        );
        let preferred = preferred.iter().map(|term| at(term, &["podAffinityTerm"]));
        required.iter().chain(preferred).any(crosses)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PODS: Counted<'static> = Counted {
        group: "",
        plural: "pods",
    };

    #[track_caller]
    fn check(group: &str, plural: &str, object: Value, expected: &str) {
        let counted = Counted { group, plural };
        let usage = counted.usage(&object, Timestamp::UNIX_EPOCH);
        assert_eq!(usage.to_string(), expected, "{object}");
    }

    #[test]
    fn objects_use_what_their_kind_is_counted_by() {
        let resources =
            json!({"requests": {"cpu": "1", "example.com/gpu": "2"}, "limits": {"memory": "1Gi"}});
        let pod = json!({"spec": {"containers": [{"resources": resources}]}});
        check(
            "",
            "pods",
            pod.clone(),
            "count/pods=1,cpu=1,limits.memory=1Gi,pods=1,requests.cpu=1,requests.example.com/gpu=2",
        );
        let mut ended = pod;
        ended["status"] = json!({"phase": "Succeeded"});
        check("", "pods", ended, "count/pods=1");
        check(
            "",
            "services",
            json!({"spec": {"type": "LoadBalancer", "ports": [{}, {}]}}),
            "count/services=1,services=1,services.loadbalancers=1,services.nodeports=2",
        );
        check(
            "",
            "persistentvolumeclaims",
            json!({"spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}}}),
            "count/persistentvolumeclaims=1,fast.storageclass.storage.k8s.io/persistentvolumeclaims=1,fast.storageclass.storage.k8s.io/requests.storage=1Gi,persistentvolumeclaims=1,requests.storage=1Gi",
        );
        check("", "secrets", json!({}), "count/secrets=1,secrets=1");
        check("apps", "deployments", json!({}), "count/deployments.apps=1");
    }

    #[test]
    fn a_quota_counts_what_it_names_within_its_scopes() {
        let quota = |hard: Value, spec: Value| {
            let mut quota = json!({"spec": spec});
            quota["spec"]["hard"] = hard;
            quota
        };
        let cpu = || json!({"cpu": "1"});
        let best_effort = json!({"spec": {"containers": [{}]}});
        let short = json!({"spec": {"activeDeadlineSeconds": 5, "containers": [{}]}});
        let important = json!({"spec": {"priorityClassName": "high", "containers": [{}]}});
        let class = |operator: &str| {
            json!({"scopeSelector": {"matchExpressions": [
                {"scopeName": "PriorityClass", "operator": operator, "values": ["high"]},
            ]}})
        };
        for (quota, pod, expected) in [
            (quota(cpu(), json!({})), &best_effort, true),
            (
                quota(json!({"secrets": "1"}), json!({})),
                &best_effort,
                false,
            ),
            (
                quota(cpu(), json!({"scopes": ["BestEffort"]})),
                &best_effort,
                true,
            ),
            (
                quota(cpu(), json!({"scopes": ["NotBestEffort"]})),
                &best_effort,
                false,
            ),
            (
                quota(cpu(), json!({"scopes": ["Terminating"]})),
                &short,
                true,
            ),
            (
                quota(cpu(), json!({"scopes": ["Terminating"]})),
                &best_effort,
                false,
            ),
            (quota(cpu(), class("In")), &important, true),
            (quota(cpu(), class("In")), &best_effort, false),
            (quota(cpu(), class("NotIn")), &best_effort, true),
        ] {
            assert_eq!(PODS.matches(&quota, pod), expected, "{quota} {pod}");
        }
        let services = Counted {
            group: "",
            plural: "services",
        };
        let scoped = quota(json!({"services": "1"}), json!({"scopes": ["BestEffort"]}));
        assert!(!services.matches(&scoped, &json!({})));
    }

    #[test]
    fn containers_have_to_say_what_is_counted() {
        let hard = Amounts::read(&json!({"limits.cpu": "1", "requests.memory": "1", "pods": "1"}));
        let pod = json!({"spec": {"containers": [
            {"name": "b"}, {"name": "a", "resources": {"limits": {"cpu": "1"}}},
        ]}});
        assert_eq!(
            missing_amounts(&pod, &hard).unwrap(),
            "must specify limits.cpu for: b; requests.memory for: a,b"
        );
        let hard = Amounts::read(&json!({"pods": "1"}));
        assert_eq!(missing_amounts(&pod, &hard), None);
    }
}
