//! What LimitRanges make of pods and claims: defaults for what containers leave out, and bounds.

use bellwether_json::quantity::Quantity;
use serde_json::Value;

use crate::amounts::{Amounts, of_containers};
use crate::value::{at, items, list, object, text};

/// Tells in a pod what has been filled in.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Fills in what containers of a pod leave out.
pub fn set_limits(pod: &mut Value, range: &Value) {
    let (mut limits, mut requests) = (Amounts::default(), Amounts::default());
    for limit in list(range, &["spec", "limits"]) {
        if text(limit, &["type"]) == "Container" {
            limits.add(&Amounts::read(at(limit, &["default"])));
            requests.add(&Amounts::read(at(limit, &["defaultRequest"])));
        }
    }
    let mut done = Vec::new();
    for (containers, word) in [
        ("containers", "container"),
        ("initContainers", "init container"),
    ] {
        for container in items(pod, &["spec", containers]) {
            let name = text(container, &["name"]).to_owned();
            for (field, amounts, what) in [
                ("requests", &requests, "request"),
                ("limits", &limits, "limit"),
            ] {
                let set = fill(container, field, amounts);
                if !set.is_empty() {
                    done.push(format!("{} {what} for {word} {name}", set.join(", ")));
                }
            }
        }
    }
    if !done.is_empty()
        && let Some(annotations) = object(pod, &["metadata", "annotations"])
    {
        let text = format!("LimitRanger plugin set: {}", done.join("; "));
        annotations.insert(ANNOTATION.to_owned(), text.into());
    }
}

/// Sets amounts that are missing, and returns their names.
fn fill(container: &mut Value, field: &str, amounts: &Amounts) -> Vec<String> {
    let mut set = Vec::new();
    for (name, amount) in &amounts.0 {
        if at(container, &["resources", field, name]).is_null()
            && let Some(fields) = object(container, &["resources", field])
        {
            fields.insert(name.clone(), amount.to_string().into());
            set.push(name.clone());
        }
    }
    set
}

/// What a pod asks for that a range does not allow.
pub fn pod_beyond_limits(pod: &Value, range: &Value) -> Vec<String> {
    let mut errors = Vec::new();
    for limit in list(range, &["spec", "limits"]) {
        match text(limit, &["type"]) {
            "Container" => {
                for containers in ["containers", "initContainers"] {
                    for container in list(pod, &["spec", containers]) {
                        let of = |field: &str| Amounts::read(at(container, &["resources", field]));
                        check(limit, &of("requests"), &of("limits"), &mut errors);
                    }
                }
            }
            "Pod" => {
                let (requests, limits) =
                    (of_containers(pod, "requests"), of_containers(pod, "limits"));
                check(limit, &requests, &limits, &mut errors);
            }
            _ => {}
        }
    }
    errors
}

/// What a claim asks for that a range does not allow.
pub fn claim_beyond_limits(claim: &Value, range: &Value) -> Vec<String> {
    let requests = Amounts::read(at(claim, &["spec", "resources", "requests"]));
    let mut errors = Vec::new();
    for limit in list(range, &["spec", "limits"]) {
        if text(limit, &["type"]) != "PersistentVolumeClaim" {
            continue;
        }
        for (name, least) in bounds(limit, "min") {
            let bound = Bound::new("minimum", limit, &name, &least);
            bound.at_least(requests.get(&name), None, &mut errors);
        }
        for (name, most) in bounds(limit, "max") {
            let bound = Bound::new("maximum", limit, &name, &most);
            match requests.get(&name) {
                None => errors.push(format!("{bound}.  No request is specified")),
                Some(asked) if *asked > most => {
                    errors.push(format!("{bound}, but request is {asked}"));
                }
                Some(_) => {}
            }
        }
    }
    errors
}

fn bounds(limit: &Value, field: &str) -> Vec<(String, Quantity)> {
    Amounts::read(at(limit, &[field])).0.into_iter().collect()
}

/// Checks what a container, or a pod as a whole, asks for.
fn check(limit: &Value, requests: &Amounts, limits: &Amounts, errors: &mut Vec<String>) {
    for (name, least) in bounds(limit, "min") {
        let bound = Bound::new("minimum", limit, &name, &least);
        bound.at_least(requests.get(&name), limits.get(&name), errors);
    }
    for (name, most) in bounds(limit, "max") {
        let bound = Bound::new("maximum", limit, &name, &most);
        bound.at_most(requests.get(&name), limits.get(&name), errors);
    }
    for (name, ratio) in bounds(limit, "maxLimitRequestRatio") {
        let kind = text(limit, &["type"]);
        let bound = format!("{name} max limit to request ratio per {kind} is {ratio}");
        check_ratio(
            &bound,
            &ratio,
            requests.get(&name),
            limits.get(&name),
            errors,
        );
    }
}

/// A bound, in the words of messages.
struct Bound<'a> {
    word: &'a str,
    name: &'a str,
    kind: &'a str,
    amount: &'a Quantity,
}

impl std::fmt::Display for Bound<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            word,
            name,
            kind,
            amount,
        } = self;
        write!(f, "{word} {name} usage per {kind} is {amount}")
    }
}

impl<'a> Bound<'a> {
    fn new(word: &'a str, limit: &'a Value, name: &'a str, amount: &'a Quantity) -> Self {
        Self {
            word,
            name,
            kind: text(limit, &["type"]),
            amount,
        }
    }

    fn at_least(
        &self,
        request: Option<&Quantity>,
        limit: Option<&Quantity>,
        errors: &mut Vec<String>,
    ) {
        match (request, limit) {
            (None, _) => errors.push(format!("{self}.  No request is specified")),
            (Some(request), _) if request < self.amount => {
                errors.push(format!("{self}, but request is {request}"));
            }
            (_, Some(limit)) if limit < self.amount => {
                errors.push(format!("{self}, but limit is {limit}"));
            }
            _ => {}
        }
    }

    fn at_most(
        &self,
        request: Option<&Quantity>,
        limit: Option<&Quantity>,
        errors: &mut Vec<String>,
    ) {
        match (request, limit) {
            (_, None) => errors.push(format!("{self}.  No limit is specified")),
            (_, Some(limit)) if limit > self.amount => {
                errors.push(format!("{self}, but limit is {limit}"));
            }
            (Some(request), _) if request > self.amount => {
                errors.push(format!("{self}, but request is {request}"));
            }
            _ => {}
        }
    }
}

fn check_ratio(
    bound: &str,
    most: &Quantity,
    request: Option<&Quantity>,
    limit: Option<&Quantity>,
    errors: &mut Vec<String>,
) {
    let Some(request) = request.filter(|request| !request.is_zero()) else {
        errors.push(format!(
            "{bound}, but no request is specified or request is 0"
        ));
        return;
    };
    let Some(limit) = limit.filter(|limit| !limit.is_zero()) else {
        errors.push(format!("{bound}, but no limit is specified or limit is 0"));
        return;
    };
    let ratio = limit.as_f64() / request.as_f64();
    if ratio > most.as_f64() {
        errors.push(format!("{bound}, but provided ratio is {ratio:.6}"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn range(limit: Value) -> Value {
        json!({"spec": {"limits": [limit]}})
    }

    fn pod(resources: Value) -> Value {
        json!({"metadata": {}, "spec": {"containers": [{"name": "c", "resources": resources}]}})
    }

    #[test]
    fn what_containers_leave_out_is_filled_in_and_told() {
        let range = range(json!({
            "type": "Container", "default": {"cpu": "500m", "memory": "1Gi"},
            "defaultRequest": {"cpu": "100m"},
        }));
        let mut pod = pod(json!({"limits": {"cpu": "1"}}));
        pod["spec"]["initContainers"] = json!([{"name": "i"}]);
        set_limits(&mut pod, &range);
        assert_eq!(
            pod["spec"]["containers"][0]["resources"],
            json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m"}})
        );
        assert_eq!(
            pod["metadata"]["annotations"][ANNOTATION],
            "LimitRanger plugin set: cpu request for container c; memory limit for container c; cpu request for init container i; cpu, memory limit for init container i"
        );
    }

    #[track_caller]
    fn check(limit: Value, resources: Value, expected: &[&str]) {
        let found = pod_beyond_limits(&pod(resources.clone()), &range(limit.clone()));
        assert_eq!(found, expected, "{limit} {resources}");
    }

    #[test]
    fn bounds_are_kept_in_kubernetes_words() {
        let cpu = |amount: &str| json!({"cpu": amount});
        let least = json!({"type": "Container", "min": {"cpu": "100m"}});
        check(
            least.clone(),
            json!({}),
            &["minimum cpu usage per Container is 100m.  No request is specified"],
        );
        check(
            least,
            json!({"requests": cpu("50m")}),
            &["minimum cpu usage per Container is 100m, but request is 50m"],
        );
        let most = json!({"type": "Pod", "max": {"cpu": "1"}});
        check(
            most.clone(),
            json!({"requests": cpu("1")}),
            &["maximum cpu usage per Pod is 1.  No limit is specified"],
        );
        check(
            most.clone(),
            json!({"limits": cpu("2")}),
            &["maximum cpu usage per Pod is 1, but limit is 2"],
        );
        check(most, json!({"limits": cpu("1000m")}), &[]);
        let ratio = json!({"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}});
        check(
            ratio.clone(),
            json!({"limits": cpu("1")}),
            &[
                "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
            ],
        );
        check(
            ratio,
            json!({"limits": cpu("1"), "requests": cpu("400m")}),
            &["cpu max limit to request ratio per Container is 2, but provided ratio is 2.500000"],
        );
    }

    #[test]
    fn claims_are_bounded_by_their_requests() {
        let range = range(json!({
            "type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "5Gi"},
        }));
        let claim = |size: &str| json!({"spec": {"resources": {"requests": {"storage": size}}}});
        assert_eq!(claim_beyond_limits(&claim("2Gi"), &range), [""; 0]);
        assert_eq!(
            claim_beyond_limits(&claim("6Gi"), &range),
            ["maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 6Gi"]
        );
        assert_eq!(
            claim_beyond_limits(&claim("1Mi"), &range),
            ["minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi"]
        );
    }
}
