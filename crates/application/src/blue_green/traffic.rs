//! Requests to two revisions: a Service for each, and shares in HTTPRoutes and Ingresses.

use bellwether_api::delivery::names::annotation;
use bellwether_api::oam::names::label;
use bellwether_json::equality::is_covered_by;
use serde_json::{Value, json};

/// The two workloads that requests go to. Their names distinguish their Services, too.
#[derive(Debug, Clone, Copy)]
pub struct Sides<'a> {
    /// The component.
    pub component: &'a str,
    /// The workload that is in use.
    pub blue: &'a str,
    /// The workload of the new revision; nothing goes there any more if there is none.
    pub green: Option<&'a str>,
    /// How many of a hundred requests go to the new revision.
    pub weight: i64,
}

impl Sides<'_> {
    /// The name of the Service for one workload.
    fn service(&self, service: &str, workload: &str) -> String {
        let suffix = workload.strip_prefix(self.component).unwrap_or(workload);
        format!("{service}-{}", suffix.trim_start_matches('-'))
    }
}

/// True for an object that sends requests to Services.
pub fn is_route(object: &Value) -> bool {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    match object["kind"].as_str().unwrap_or_default() {
        "HTTPRoute" => api_version.starts_with("gateway.networking.k8s.io/"),
        "Ingress" => api_version.starts_with("networking.k8s.io/"),
        _ => false,
    }
}

/// True for a Service that selects pods.
pub fn is_service(object: &Value) -> bool {
    object["kind"] == "Service"
        && object["apiVersion"] == "v1"
        && object
            .pointer("/spec/selector")
            .is_some_and(Value::is_object)
}

/// A Service for each revision.
pub fn services(service: &Value, sides: &Sides<'_>) -> Vec<Value> {
    let name = service["metadata"]["name"].as_str().unwrap_or_default();
    let workloads = std::iter::once(sides.blue).chain(sides.green);
    workloads
        .map(|workload| {
            let mut own = service.clone();
            own["metadata"]["name"] = json!(sides.service(name, workload));
            own["metadata"]["labels"][label::REVISION] = json!(workload);
            let ports = own
                .pointer("/spec/ports")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            let ports: Vec<Value> = ports
                .into_iter()
                .map(|mut port| {
                    bellwether_json::path::remove(&mut port, &["nodePort"]);
                    port
                })
                .collect();
            let mut selector = own["spec"]["selector"].clone();
            selector[label::REVISION] = json!(workload);
            own["spec"] = json!({"selector": selector, "ports": ports});
            own
        })
        .collect()
}

/// What a route becomes while there are two revisions. Services are those of the component, by name.
pub fn route(object: &Value, services: &[&str], sides: &Sides<'_>) -> Vec<Value> {
    if object["kind"] == "HTTPRoute" {
        return vec![http_route(object, services, sides)];
    }
    let mut routes = vec![ingress(object, services, |service| {
        sides.service(service, sides.blue)
    })];
    if let Some(green) = sides.green.filter(|_| sides.weight > 0) {
        let mut canary = ingress(object, services, |service| sides.service(service, green));
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        canary["metadata"]["name"] = json!(format!("{name}-canary"));
        canary["metadata"]["annotations"][annotation::INGRESS_CANARY] = json!("true");
        canary["metadata"]["annotations"][annotation::INGRESS_CANARY_WEIGHT] =
            json!(sides.weight.to_string());
        routes.push(canary);
    }
    routes
}

fn http_route(object: &Value, services: &[&str], sides: &Sides<'_>) -> Value {
    let mut object = object.clone();
    let rules = object
        .pointer_mut("/spec/rules")
        .and_then(Value::as_array_mut);
    for rule in rules.into_iter().flatten() {
        let Some(backends) = rule["backendRefs"].as_array() else {
            continue;
        };
        let is_ours = |backend: &Value| {
            let name = backend["name"].as_str().unwrap_or_default();
            let kind = backend["kind"].as_str().unwrap_or("Service");
            kind == "Service" && services.contains(&name)
        };
        if !backends.iter().any(is_ours) {
            continue;
        }
        let mut split = Vec::new();
        for backend in backends {
            let weight = backend["weight"].as_i64().unwrap_or(1);
            // Next to others, hundredths of the weight that it had.
            let scale = if backends.len() == 1 { 1 } else { weight };
            if !is_ours(backend) {
                split.push(with(backend, None, weight.saturating_mul(100)));
                continue;
            }
            let name = backend["name"].as_str().unwrap_or_default();
            split.push(with(
                backend,
                Some(sides.service(name, sides.blue)),
                scale * (100 - sides.weight),
            ));
            if let Some(green) = sides.green {
                split.push(with(
                    backend,
                    Some(sides.service(name, green)),
                    scale * sides.weight,
                ));
            }
        }
        rule["backendRefs"] = Value::Array(split);
    }
    object
}

fn with(backend: &Value, name: Option<String>, weight: i64) -> Value {
    let mut backend = backend.clone();
    if let Some(name) = name {
        backend["name"] = json!(name);
    }
    backend["weight"] = json!(weight);
    backend
}

fn ingress(object: &Value, services: &[&str], rename: impl Fn(&str) -> String) -> Value {
    let mut object = object.clone();
    let rename = |backend: Option<&mut Value>| {
        if let Some(Value::String(name)) = backend
            && services.contains(&name.as_str())
        {
            *name = rename(name);
        }
    };
    rename(object.pointer_mut("/spec/defaultBackend/service/name"));
    let rules = object
        .pointer_mut("/spec/rules")
        .and_then(Value::as_array_mut);
    for rule in rules.into_iter().flatten() {
        let paths = rule
            .pointer_mut("/http/paths")
            .and_then(Value::as_array_mut);
        for path in paths.into_iter().flatten() {
            rename(path.pointer_mut("/backend/service/name"));
        }
    }
    object
}

/// A route for a component that has none.
pub fn made_route(gateway: &Value, service: &Value, component: &str) -> Value {
    let name = &service["metadata"]["name"];
    let port = service
        .pointer("/spec/ports/0/port")
        .cloned()
        .unwrap_or_default();
    let mut spec = gateway.clone();
    if spec.pointer("/rules/0").is_none() {
        spec["rules"] = json!([{}]);
    }
    let rules = spec["rules"].as_array_mut();
    for rule in rules.into_iter().flatten() {
        rule["backendRefs"] = json!([{"name": name, "port": port}]);
    }
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {
            "name": component,
            "namespace": service["metadata"]["namespace"],
            "labels": service["metadata"]["labels"],
        },
        "spec": spec,
    })
}

/// Why requests do not go yet where a route sends them.
pub fn objection(wanted: &Value, live: Option<&Value>) -> Option<String> {
    let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
    let kind = wanted["kind"].as_str().unwrap_or_default();
    let Some(live) = live else {
        return Some(format!("{kind} {name} is not there yet"));
    };
    if !is_covered_by(&wanted["spec"], &live["spec"]) {
        return Some(format!("{kind} {name} is not changed yet"));
    }
    // Nobody reports whether an Ingress is in effect.
    if kind != "HTTPRoute" {
        return None;
    }
    let parents = live.pointer("/status/parents").and_then(Value::as_array);
    let Some(parents) = parents.filter(|parents| !parents.is_empty()) else {
        return Some(format!("HTTPRoute {name} is not accepted by a Gateway yet"));
    };
    let generation = live["metadata"]["generation"].as_i64().unwrap_or(0);
    for condition_type in ["Accepted", "ResolvedRefs"] {
        for parent in parents {
            let conditions = parent["conditions"].as_array();
            let condition = conditions
                .into_iter()
                .flatten()
                .find(|it| it["type"] == condition_type);
            match condition {
                Some(it)
                    if it["observedGeneration"].as_i64().unwrap_or(generation) < generation =>
                {
                    return Some(format!(
                        "HTTPRoute {name}: its Gateway has not seen the change yet"
                    ));
                }
                Some(it) if it["status"] == "True" => {}
                Some(it) => {
                    let message = it["message"].as_str().unwrap_or_default();
                    return Some(format!(
                        "HTTPRoute {name} is not {condition_type}: {message}"
                    ));
                }
                None => return Some(format!("HTTPRoute {name} is not {condition_type} yet")),
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(weight: i64) -> Sides<'static> {
        Sides {
            component: "web",
            blue: "web-v1",
            green: Some("web-v2"),
            weight,
        }
    }

    #[test]
    fn each_revision_has_a_service_of_its_own() {
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "front"},
            "spec": {"type": "NodePort", "clusterIP": "10.0.0.1", "selector": {"a": "b"}, "ports": [{"port": 80, "nodePort": 30000}]}});
        let made = services(&service, &sides(50));
        let names: Vec<_> = made
            .iter()
            .map(|it| it["metadata"]["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["front-v1", "front-v2"]);
        assert_eq!(
            made[1]["spec"],
            json!({"selector": {"a": "b", label::REVISION: "web-v2"}, "ports": [{"port": 80}]})
        );
    }

    #[test]
    fn backends_of_a_route_are_split() {
        let object = json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "r"}, "spec": {"rules": [
            {"backendRefs": [{"name": "web", "port": 80}]},
            {"backendRefs": [{"name": "web", "port": 80, "weight": 3}, {"name": "other", "port": 80}]},
        ]}});
        let made = route(&object, &["web"], &sides(30)).remove(0);
        assert_eq!(
            made["spec"]["rules"][0]["backendRefs"],
            json!([
            {"name": "web-v1", "port": 80, "weight": 70}, {"name": "web-v2", "port": 80, "weight": 30}])
        );
        assert_eq!(
            made["spec"]["rules"][1]["backendRefs"],
            json!([
            {"name": "web-v1", "port": 80, "weight": 210}, {"name": "web-v2", "port": 80, "weight": 90}, {"name": "other", "port": 80, "weight": 100}])
        );
        let only_blue = Sides {
            green: None,
            weight: 0,
            ..sides(0)
        };
        let made = route(&object, &["web"], &only_blue).remove(0);
        assert_eq!(
            made["spec"]["rules"][0]["backendRefs"],
            json!([{"name": "web-v1", "port": 80, "weight": 100}])
        );
    }

    #[test]
    fn an_ingress_gets_a_canary_beside_it() {
        let object = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"}, "spec": {"rules": [
            {"http": {"paths": [{"path": "/", "backend": {"service": {"name": "web", "port": {"number": 80}}}}]}}]}});
        let backend = |it: &Value| {
            it.pointer("/spec/rules/0/http/paths/0/backend/service/name")
                .cloned()
                .unwrap()
        };
        let made = route(&object, &["web"], &sides(30));
        assert_eq!(
            (backend(&made[0]), backend(&made[1])),
            (json!("web-v1"), json!("web-v2"))
        );
        assert_eq!(made[1]["metadata"]["name"], "i-canary");
        assert_eq!(
            made[1]["metadata"]["annotations"],
            json!({annotation::INGRESS_CANARY: "true", annotation::INGRESS_CANARY_WEIGHT: "30"})
        );
        assert_eq!(route(&object, &["web"], &sides(0)).len(), 1);
    }

    #[test]
    fn a_route_counts_when_its_gateway_has_taken_it() {
        let wanted = json!({"kind": "HTTPRoute", "metadata": {"name": "r"}, "spec": {"rules": []}});
        let live = |parents: Value| json!({"kind": "HTTPRoute", "metadata": {"name": "r", "generation": 2}, "spec": {"rules": []}, "status": {"parents": parents}});
        let condition = |kind: &str, status: &str, seen: i64| json!({"type": kind, "status": status, "observedGeneration": seen, "message": "no such port"});
        let told = |parents: Value| objection(&wanted, Some(&live(parents)));
        assert_eq!(
            objection(&wanted, None).as_deref(),
            Some("HTTPRoute r is not there yet")
        );
        assert_eq!(
            told(json!([])).as_deref(),
            Some("HTTPRoute r is not accepted by a Gateway yet")
        );
        assert_eq!(
            told(json!([{"conditions": [condition("Accepted", "True", 1)]}])).as_deref(),
            Some("HTTPRoute r: its Gateway has not seen the change yet")
        );
        let refused = told(
            json!([{"conditions": [condition("Accepted", "True", 2), condition("ResolvedRefs", "False", 2)]}]),
        );
        assert_eq!(
            refused.as_deref(),
            Some("HTTPRoute r is not ResolvedRefs: no such port")
        );
        assert_eq!(
            told(
                json!([{"conditions": [condition("Accepted", "True", 2), condition("ResolvedRefs", "True", 2)]}])
            ),
            None
        );
    }
}
