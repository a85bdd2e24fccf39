//! What is known of an Application: its objects, their addresses, events and logs. Nothing is changed.

use bellwether_workflow::session::Call;
use serde_json::{Value, json};

use super::kube::Objects;

/// The objects that an Application says to have applied.
pub async fn applied(objects: &Objects, app: &Value) -> Vec<Value> {
    let reference = json!({"value": {
        "apiVersion": "core.oam.dev/v1beta1",
        "kind": "Application",
        "metadata": {"name": app["name"], "namespace": app["namespace"]},
    }});
    let found = objects.read(&reference, &mut Vec::new()).await;
    let applied = found["value"]["status"]["appliedResources"].as_array();
    applied.cloned().unwrap_or_default()
}

/// Answers a query about an Application that applied these objects.
pub async fn answer(objects: &Objects, call: &Call, applied: &[Value]) -> Result<Value, String> {
    let params = &call.params;
    let chosen: Vec<&Value> = applied
        .iter()
        .filter(|entry| is_chosen(entry, &params["app"]["filter"]))
        .collect();
    match call.name.as_str() {
        "query.listAppliedResources" => {
            let list: Vec<Value> = chosen.into_iter().map(bare).collect();
            Ok(json!({"list": list}))
        }
        "query.listResourcesInApp" => {
            let mut list = Vec::new();
            for entry in chosen {
                let mut shown = bare(entry);
                shown["object"] = read(objects, entry).await;
                list.push(shown);
            }
            Ok(json!({"list": list}))
        }
        "query.collectServiceEndpoints" => {
            let mut list = Vec::new();
            for entry in chosen {
                let object = read(objects, entry).await;
                list.extend(endpoints(entry, &object));
            }
            Ok(json!({"list": list}))
        }
        "query.collectResources" => related(objects, params).await,
        "query.searchEvents" => events(objects, params).await,
        "query.collectLogsInPod" => Ok(objects.log(params).await),
        other => Err(format!("{other} is not available in this workflow")),
    }
}

/// Whether an object is one that a filter asks for.
fn is_chosen(entry: &Value, filter: &Value) -> bool {
    let is = |field: &str, wanted: &Value| {
        let wanted = wanted.as_str().unwrap_or_default();
        wanted.is_empty() || entry[field].as_str().unwrap_or_default() == wanted
    };
    let components = filter["components"].as_array();
    let is_listed = components.is_none_or(|names| {
        names.is_empty() || names.iter().any(|name| *name == entry["component"])
    });
    is_listed
        && is("kind", &filter["kind"])
        && is("apiVersion", &filter["apiVersion"])
        && is("cluster", &filter["cluster"])
        && is("namespace", &filter["clusterNamespace"])
}

/// An entry without the object as it was applied.
fn bare(entry: &Value) -> Value {
    let mut entry = entry.clone();
    if let Value::Object(fields) = &mut entry {
        fields.remove("raw");
    }
    entry
}

async fn read(objects: &Objects, entry: &Value) -> Value {
    let reference = json!({
        "cluster": entry["cluster"],
        "value": {
            "apiVersion": entry["apiVersion"],
            "kind": entry["kind"],
            "metadata": {"name": entry["name"], "namespace": entry["namespace"]},
        },
    });
    let found = objects.read(&reference, &mut Vec::new()).await;
    found["value"].clone()
}

/// The addresses that an object stands for.
fn endpoints(entry: &Value, object: &Value) -> Vec<Value> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let found = match text(&object["kind"]).as_str() {
        "Service" => of_service(object),
        "Ingress" => of_ingress(object),
        _ => Vec::new(),
    };
    found
        .into_iter()
        .map(|endpoint| {
            json!({
                "endpoint": endpoint,
                "cluster": entry["cluster"],
                "component": entry["component"],
                "ref": {
                    "apiVersion": object["apiVersion"],
                    "kind": object["kind"],
                    "name": object["metadata"]["name"],
                    "namespace": object["metadata"]["namespace"],
                },
            })
        })
        .collect()
}

fn of_service(service: &Value) -> Vec<Value> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let balancers = service["status"]["loadBalancer"]["ingress"].as_array();
    let mut hosts: Vec<(String, bool)> = balancers
        .into_iter()
        .flatten()
        .map(|it| {
            let name = text(&it["hostname"]);
            (
                if name.is_empty() {
                    text(&it["ip"])
                } else {
                    name
                },
                false,
            )
        })
        .collect();
    if hosts.is_empty() {
        let (name, namespace) = (
            &service["metadata"]["name"],
            &service["metadata"]["namespace"],
        );
        hosts.push((format!("{}.{}", text(name), text(namespace)), true));
    }
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    ports
        .flat_map(|port| {
            hosts.iter().map(move |(host, inner)| {
                json!({
                    "protocol": port["protocol"].as_str().unwrap_or("TCP"),
                    "appProtocol": port["appProtocol"].as_str().unwrap_or_default(),
                    "host": host,
                    "port": port["port"],
                    "portName": port["name"].as_str().unwrap_or_default(),
                    "path": "",
                    "inner": inner,
                })
            })
        })
        .collect()
}

fn of_ingress(ingress: &Value) -> Vec<Value> {
    let has_tls = ingress["spec"]["tls"]
        .as_array()
        .is_some_and(|tls| !tls.is_empty());
    let (protocol, port) = if has_tls {
        ("https", 443)
    } else {
        ("http", 80)
    };
    let rules = ingress["spec"]["rules"].as_array().into_iter().flatten();
    rules
        .flat_map(|rule| {
            let paths = rule["http"]["paths"].as_array().into_iter().flatten();
            paths.map(move |path| {
                json!({
                    "protocol": "TCP",
                    "appProtocol": protocol,
                    "host": rule["host"].as_str().unwrap_or_default(),
                    "port": port,
                    "portName": "",
                    "path": path["path"].as_str().unwrap_or_default(),
                    "inner": false,
                })
            })
        })
        .collect()
}

/// The pods or Services that belong to a workload.
async fn related(objects: &Objects, params: &Value) -> Result<Value, String> {
    let value = &params["value"];
    let wanted = json!({"value": value, "cluster": params["cluster"]});
    let live = objects.read(&wanted, &mut Vec::new()).await;
    let live = &live["value"];
    let kind = params["type"].as_str().unwrap_or("Pod");
    let labels = match live["spec"]["selector"]["matchLabels"].as_object() {
        Some(_) => live["spec"]["selector"]["matchLabels"].clone(),
        None => live["spec"]["selector"].clone(),
    };
    if !labels.is_object() {
        return Ok(json!({"list": []}));
    }
    let list = json!({
        "cluster": params["cluster"],
        "resource": {"apiVersion": "v1", "kind": kind},
        "filter": {"namespace": live["metadata"]["namespace"], "matchingLabels": labels},
    });
    let found = objects.list(&list, &mut Vec::new()).await;
    Ok(json!({"list": found["values"]["items"]}))
}

/// The events of an object.
async fn events(objects: &Objects, params: &Value) -> Result<Value, String> {
    let metadata = &params["value"]["metadata"];
    let list = json!({
        "cluster": params["cluster"],
        "resource": {"apiVersion": "v1", "kind": "Event"},
        "filter": {"namespace": metadata["namespace"]},
    });
    let found = objects.list(&list, &mut Vec::new()).await;
    let events = found["values"]["items"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let is_about = |event: &Value| {
        let about = &event["involvedObject"];
        about["name"] == metadata["name"] && about["kind"] == params["value"]["kind"]
    };
    let events: Vec<Value> = events.into_iter().filter(is_about).collect();
    Ok(json!({"list": events}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_and_ingresses_have_addresses() {
        let service = json!({"kind": "Service", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"ports": [{"port": 80, "name": "http"}]}});
        let found = endpoints(&json!({"component": "web"}), &service);
        assert_eq!(found[0]["endpoint"]["host"], "web.shop");
        assert_eq!(found[0]["endpoint"]["inner"], true);
        let mut outside = service;
        outside["status"]["loadBalancer"]["ingress"] = json!([{"ip": "10.0.0.1"}]);
        let found = endpoints(&json!({}), &outside);
        assert_eq!(found[0]["endpoint"]["host"], "10.0.0.1");
        assert_eq!(found[0]["endpoint"]["inner"], false);
        let ingress = json!({"kind": "Ingress", "spec": {"rules": [{"host": "shop.example", "http": {"paths": [{"path": "/a"}]}}]}});
        let found = endpoints(&json!({}), &ingress);
        assert_eq!(
            (&found[0]["endpoint"]["host"], &found[0]["endpoint"]["path"]),
            (&json!("shop.example"), &json!("/a"))
        );
    }

    #[test]
    fn filters_choose_objects() {
        let entry = json!({"kind": "Service", "component": "web", "namespace": "a"});
        assert!(is_chosen(&entry, &json!({})));
        assert!(is_chosen(
            &entry,
            &json!({"components": ["web"], "kind": "Service"})
        ));
        assert!(!is_chosen(&entry, &json!({"components": ["db"]})));
        assert!(!is_chosen(&entry, &json!({"clusterNamespace": "b"})));
    }
}
