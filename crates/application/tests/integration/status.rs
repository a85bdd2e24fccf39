//! How built-in components and traits judge live objects.

use bellwether_application::probe::answer;
use serde_json::{Value, json};

/// Whether objects are healthy, and the message about them.
fn judged(kind: &str, name: &str, context: &Value, parameter: &Value) -> (bool, String) {
    let mut given = json!({"name": "web", "appName": "shop"});
    for (key, value) in context.as_object().into_iter().flatten() {
        given[key] = value.clone();
    }
    let case = json!({
        "kind": "health",
        "definition": {"kind": kind, "name": name},
        "context": given,
        "parameter": parameter,
    });
    let found: Value = serde_json::from_str(&answer(&case.to_string())).unwrap();
    (
        found["healthy"] == true,
        found["message"].as_str().unwrap_or_default().to_owned(),
    )
}

fn ingress(name: &str, spec: &Value, addresses: Option<&Value>) -> Value {
    let mut object = json!({"kind": "Ingress", "metadata": {"name": name}, "spec": spec});
    if let Some(addresses) = addresses {
        object["status"] = json!({"loadBalancer": {"ingress": addresses}});
    }
    object
}

#[test]
fn an_ingress_names_its_host_and_its_first_address() {
    let service = json!({"kind": "Service", "spec": {"clusterIP": "10.0.0.1"}});
    let shop = json!({"rules": [{"host": "shop.example.org"}]});
    let ip = json!([{"ip": "192.0.2.1"}]);
    for (spec, addresses, expected) in [
        (
            &shop,
            Some(ip.clone()),
            "Visiting URL: shop.example.org, IP: 192.0.2.1",
        ),
        (
            &shop,
            Some(json!([{"hostname": "lb.example.org"}])),
            "Visiting URL: shop.example.org",
        ),
        (
            &shop,
            Some(json!([{"hostname": "lb.example.org"}, {"ip": "192.0.2.1"}])),
            "Visiting URL: shop.example.org",
        ),
        (
            &json!({"rules": [{}]}),
            Some(ip.clone()),
            "Visiting URL: , IP: 192.0.2.1",
        ),
        (&json!({}), Some(ip), "Visiting URL: , IP: 192.0.2.1"),
        (&shop, Some(json!([])), ""),
        (
            &shop,
            None,
            "No load balancer has an address for shop.example.org yet",
        ),
    ] {
        for name in ["pure-ingress", "ingress", "ingress-1-20"] {
            let outputs =
                json!({"ingress": ingress("web", spec, addresses.as_ref()), "service": service});
            let found = judged("trait", name, &json!({"outputs": outputs}), &json!({}));
            assert_eq!(
                found,
                (true, expected.to_owned()),
                "{name} {spec} {addresses:?}"
            );
        }
    }
}

#[test]
fn an_ingress_with_a_service_waits_for_the_address_of_the_service() {
    let outputs = json!({"ingress": ingress("web", &json!({}), None), "service": {"spec": {}}});
    for (name, expected) in [
        ("pure-ingress", true),
        ("ingress", false),
        ("ingress-1-20", false),
    ] {
        for context in [json!({"outputs": outputs}), json!({})] {
            let (is_healthy, _) = judged("trait", name, &context, &json!({}));
            assert_eq!(is_healthy, expected, "{name} {context}");
        }
    }
}

#[test]
fn a_gateway_is_the_ingress_of_its_name() {
    let shop = json!({"rules": [{"host": "shop.example.org"}]});
    let ip = json!([{"ip": "192.0.2.1"}]);
    let anywhere = "Host not specified, visit the cluster or load balancer in front of the cluster";
    for (object, expected) in [
        (
            ingress("web-api", &shop, None),
            (true, "Visiting URL: shop.example.org\n".to_owned()),
        ),
        (
            ingress("web-api", &shop, Some(&ip)),
            (
                true,
                "Visiting URL: shop.example.org, IP: 192.0.2.1\n".to_owned(),
            ),
        ),
        (
            ingress("web-api", &json!({"rules": [{}]}), None),
            (true, format!("{anywhere}\n")),
        ),
        (
            ingress("web-api", &json!({}), Some(&ip)),
            (true, format!("{anywhere}, IP: 192.0.2.1\n")),
        ),
        (ingress("web", &shop, None), (false, String::new())),
        (
            json!({"metadata": {"name": "web-api"}, "spec": shop}),
            (false, String::new()),
        ),
    ] {
        let context = json!({"outputs": {"ingress-api": object}});
        let found = judged("trait", "gateway", &context, &json!({"name": "api"}));
        assert_eq!(found, expected, "{context}");
    }
}

#[test]
fn a_chart_is_deployed_when_every_criterion_is_met() {
    let deployment = |name: &str, status: &str| {
        json!({"kind": "Deployment", "metadata": {"name": name}, "status": {"conditions": [
            {"type": "Available", "status": status},
            {"type": "Available", "status": status},
        ]}})
    };
    let criterion = |name: Option<&str>, status: Option<&str>| {
        let mut wanted =
            json!({"resource": {"kind": "Deployment"}, "condition": {"type": "Available"}});
        if let Some(name) = name {
            wanted["resource"]["name"] = json!(name);
        }
        if let Some(status) = status {
            wanted["condition"]["status"] = json!(status);
        }
        wanted
    };
    let (up, down) = (deployment("up", "True"), deployment("down", "False"));
    for (criteria, objects, expected) in [
        (json!([]), json!({}), true),
        (json!([criterion(None, None)]), json!({"a": up}), true),
        (json!([criterion(None, None)]), json!({"a": down}), false),
        (
            json!([criterion(None, None)]),
            json!({"a": up, "b": down}),
            false,
        ),
        (json!([criterion(None, None)]), json!({}), false),
        (
            json!([criterion(Some("up"), None)]),
            json!({"a": up, "b": down}),
            true,
        ),
        (
            json!([criterion(Some("down"), Some("False"))]),
            json!({"b": down}),
            true,
        ),
        // What one object has twice does not make up for the other.
        (
            json!([criterion(Some("up"), None), criterion(Some("other"), None)]),
            json!({"a": up}),
            false,
        ),
        (
            json!([criterion(Some("bare"), None)]),
            json!({"a": {"kind": "Deployment", "metadata": {"name": "bare"}}}),
            false,
        ),
    ] {
        let parameter = json!({"healthStatus": criteria});
        let (first, rest) = (
            json!({"outputs": objects}),
            json!({"output": objects["a"], "outputs": objects}),
        );
        let message = if expected { "Deployed" } else { "Deploying" };
        let contexts = if objects["a"].is_null() {
            vec![first]
        } else {
            vec![first, rest]
        };
        for context in contexts {
            let found = judged("component", "helmchart", &context, &parameter);
            assert_eq!(
                found,
                (expected, message.to_owned()),
                "{criteria} {context}"
            );
        }
    }
}
