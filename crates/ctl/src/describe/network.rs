//! Services and what stands before and behind them.

use serde_json::Value;

use super::page::Page;
use super::read::{items, joined, number, or_none, shown, shown_or, text};
use super::subject::Subject;

/// How many endpoints are listed.
const ENDPOINTS_SHOWN: usize = 3;

fn names(subject: &Subject<'_>, page: &mut Page) {
    page.pair(0, "Name", text(&subject.metadata()["name"]));
    page.pair(0, "Namespace", text(&subject.metadata()["namespace"]));
    page.labels("Labels", &subject.metadata()["labels"]);
    page.annotations("Annotations", &subject.metadata()["annotations"]);
}

/// Describes a service.
pub(super) fn service(subject: &Subject<'_>, page: &mut Page) {
    let spec = subject.spec();
    names(subject, page);
    page.pair(0, "Selector", super::read::flat_labels(&spec["selector"]));
    page.pair(0, "Type", text(&spec["type"]));
    page.pair_if(0, "IP Family Policy", text(&spec["ipFamilyPolicy"]));
    page.pair(0, "IP Families", or_none(&joined(&spec["ipFamilies"], ",")));
    page.pair(0, "IP", text(&spec["clusterIP"]));
    page.pair(0, "IPs", or_none(&joined(&spec["clusterIPs"], ",")));
    page.pair_if(0, "External IPs", &joined(&spec["externalIPs"], ","));
    page.pair_if(0, "Desired LoadBalancer IP", text(&spec["loadBalancerIP"]));
    page.pair_if(0, "External Name", text(&spec["externalName"]));
    let balancers = items(&subject.status()["loadBalancer"]["ingress"]);
    let balancers: Vec<String> = balancers.iter().map(balancer).collect();
    page.pair_if(0, "LoadBalancer Ingress", &balancers.join(", "));
    for port in items(&spec["ports"]) {
        service_port(subject, port, page);
    }
    page.pair(0, "Session Affinity", text(&spec["sessionAffinity"]));
    page.pair_if(
        0,
        "External Traffic Policy",
        text(&spec["externalTrafficPolicy"]),
    );
    page.pair_if(
        0,
        "Internal Traffic Policy",
        text(&spec["internalTrafficPolicy"]),
    );
    if number(&spec["healthCheckNodePort"]) != 0 {
        page.pair(
            0,
            "HealthCheck NodePort",
            number(&spec["healthCheckNodePort"]),
        );
    }
    page.pair_if(
        0,
        "LoadBalancer Source Ranges",
        &joined(&spec["loadBalancerSourceRanges"], ","),
    );
    page.pair_if(
        0,
        "Traffic Distribution",
        text(&spec["trafficDistribution"]),
    );
}

fn service_port(subject: &Subject<'_>, port: &Value, page: &mut Page) {
    let name = text(&port["name"]);
    let shown_name = if name.is_empty() { "<unset>" } else { name };
    let protocol = text(&port["protocol"]);
    let number_of = |field: &str| format!("{shown_name}\t{}/{protocol}", number(&port[field]));
    page.pair(0, "Port", number_of("port"));
    page.pair(
        0,
        "TargetPort",
        format_args!("{}/{protocol}", shown(&port["targetPort"])),
    );
    if number(&port["nodePort"]) != 0 {
        page.pair(0, "NodePort", number_of("nodePort"));
    }
    page.pair(
        0,
        "Endpoints",
        endpoints(&subject.related.slices, Some(name)),
    );
}

fn balancer(ingress: &Value) -> String {
    match (text(&ingress["ip"]), text(&ingress["ipMode"])) {
        ("", _) => text(&ingress["hostname"]).to_owned(),
        (address, "") => address.to_owned(),
        (address, mode) => format!("{address} ({mode})"),
    }
}

/// The ready endpoints of a port, as far as there is room.
fn endpoints(slices: &[Value], port: Option<&str>) -> String {
    if slices.is_empty() {
        return "<none>".to_owned();
    }
    let mut found = Vec::new();
    for slice in slices {
        let ready = || {
            let all = items(&slice["endpoints"]).iter();
            let ready = all.filter(|endpoint| endpoint["conditions"]["ready"] != false);
            ready.map(|endpoint| text(&endpoint["addresses"][0]))
        };
        let ports = items(&slice["ports"]);
        if ports.is_empty() {
            found.extend(ready().map(str::to_owned));
        }
        let wanted = ports
            .iter()
            .filter(|known| port.is_none_or(|name| text(&known["name"]) == name));
        for known in wanted {
            let number = number(&known["port"]);
            found.extend(ready().map(|address| {
                if address.contains(':') {
                    format!("[{address}]:{number}")
                } else {
                    format!("{address}:{number}")
                }
            }));
        }
    }
    let listed = found[..found.len().min(ENDPOINTS_SHOWN)].join(",");
    match found.len().saturating_sub(ENDPOINTS_SHOWN) {
        0 => listed,
        more => format!("{listed} + {more} more..."),
    }
}

/// Describes Endpoints.
pub(super) fn endpoints_object(subject: &Subject<'_>, page: &mut Page) {
    names(subject, page);
    page.line(0, "Subsets:");
    for subset in items(&subject.object["subsets"]) {
        for (label, name) in [
            ("Addresses", "addresses"),
            ("NotReadyAddresses", "notReadyAddresses"),
        ] {
            let addresses: Vec<&str> = items(&subset[name])
                .iter()
                .map(|found| text(&found["ip"]))
                .collect();
            page.pair(1, label, or_none(&addresses.join(",")));
        }
        let ports = items(&subset["ports"]);
        if !ports.is_empty() {
            page.line(1, "Ports:");
            page.line(2, "Name\tPort\tProtocol");
            page.line(2, "----\t----\t--------");
        }
        for port in ports {
            page.line(2, port_line(port));
        }
        page.line(0, "");
    }
}

fn port_line(port: &Value) -> String {
    let name = match text(&port["name"]) {
        "" => "<unset>",
        name => name,
    };
    let number = shown_or(&port["port"], "<unset>");
    format!("{name}\t{number}\t{}", text(&port["protocol"]))
}

/// Describes an EndpointSlice.
pub(super) fn slice(subject: &Subject<'_>, page: &mut Page) {
    names(subject, page);
    page.pair(0, "AddressType", text(&subject.object["addressType"]));
    let ports = items(&subject.object["ports"]);
    if ports.is_empty() {
        page.line(0, "Ports: <unset>");
    } else {
        page.line(0, "Ports:");
        page.line(1, "Name\tPort\tProtocol");
        page.line(1, "----\t----\t--------");
    }
    for port in ports {
        page.line(1, port_line(port));
    }
    let endpoints = items(&subject.object["endpoints"]);
    if endpoints.is_empty() {
        page.line(0, "Endpoints: <none>");
    } else {
        page.line(0, "Endpoints:");
    }
    for endpoint in endpoints {
        let addresses = joined(&endpoint["addresses"], ", ");
        page.line(1, format_args!("- Addresses:\t{}", or_none(&addresses)));
        page.line(2, "Conditions:");
        page.pair(
            3,
            "Ready",
            shown_or(&endpoint["conditions"]["ready"], "<unset>"),
        );
        page.pair(2, "Hostname", shown_or(&endpoint["hostname"], "<unset>"));
        let target = &endpoint["targetRef"];
        if target.is_object() {
            let target = format!("{}/{}", text(&target["kind"]), text(&target["name"]));
            page.pair(2, "TargetRef", target);
        }
        page.pair(2, "NodeName", shown_or(&endpoint["nodeName"], "<unset>"));
        page.pair(2, "Zone", shown_or(&endpoint["zone"], "<unset>"));
    }
}

/// Describes an ingress.
pub(super) fn ingress(subject: &Subject<'_>, page: &mut Page) {
    let (metadata, spec) = (subject.metadata(), subject.spec());
    page.pair(0, "Name", text(&metadata["name"]));
    page.labels("Labels", &metadata["labels"]);
    page.pair(0, "Namespace", text(&metadata["namespace"]));
    let balancers = items(&subject.status()["loadBalancer"]["ingress"]).iter();
    let mut addresses: Vec<&str> = balancers
        .map(|found| match text(&found["ip"]) {
            "" => text(&found["hostname"]),
            address => address,
        })
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    page.pair(0, "Address", addresses.join(","));
    page.pair(
        0,
        "Ingress Class",
        shown_or(&spec["ingressClassName"], "<none>"),
    );
    let default = match &spec["defaultBackend"] {
        Value::Null => "<default>".to_owned(),
        given => backend(subject, given),
    };
    page.pair(0, "Default backend", &default);
    let certificates = items(&spec["tls"]);
    if !certificates.is_empty() {
        page.line(0, "TLS:");
    }
    for tls in certificates {
        let hosts = joined(&tls["hosts"], ",");
        match text(&tls["secretName"]) {
            "" => page.line(1, format_args!("SNI routes {hosts}")),
            secret => page.line(1, format_args!("{secret} terminates {hosts}")),
        }
    }
    rules(subject, &default, page);
    page.annotations("Annotations", &metadata["annotations"]);
}

fn rules(subject: &Subject<'_>, default: &str, page: &mut Page) {
    page.line(0, "Rules:");
    page.line(1, "Host\tPath\tBackends");
    page.line(1, "----\t----\t--------");
    let rules = items(&subject.spec()["rules"]).iter();
    let rules: Vec<&Value> = rules.filter(|rule| rule["http"].is_object()).collect();
    for rule in &rules {
        let host = match text(&rule["host"]) {
            "" => "*",
            host => host,
        };
        page.line(1, format_args!("{host}\t"));
        for path in items(&rule["http"]["paths"]) {
            let backend = backend(subject, &path["backend"]);
            page.line(2, format_args!("\t{} \t{backend}", text(&path["path"])));
        }
    }
    if rules.is_empty() {
        page.line(1, format_args!("*\t*\t{default}"));
    }
}

/// Where an ingress leads to.
fn backend(subject: &Subject<'_>, backend: &Value) -> String {
    let resource = &backend["resource"];
    if resource.is_object() {
        let group = shown_or(&resource["apiGroup"], "<none>");
        let (kind, name) = (text(&resource["kind"]), text(&resource["name"]));
        return format!("APIGroup: {group}, Kind: {kind}, Name: {name}");
    }
    let (name, port) = (&backend["service"]["name"], &backend["service"]["port"]);
    let wanted = match &port["number"] {
        Value::Null => text(&port["name"]).to_owned(),
        number => number.to_string(),
    };
    let shown = format!("{}:{wanted}", text(name));
    let found = subject
        .related
        .services
        .iter()
        .find(|service| service["metadata"]["name"] == *name);
    let Some(service) = found else {
        let name = text(name);
        return format!("{shown} (<error: services \"{name}\" not found>)");
    };
    let ports = items(&service["spec"]["ports"]).iter();
    let port_name = ports.fold("", |known, found| {
        let name = text(&found["name"]);
        let is_meant = (!port["number"].is_null() && found["port"] == port["number"])
            || (!name.is_empty() && port["name"] == name);
        if is_meant { name } else { known }
    });
    let slices: Vec<Value> = subject
        .related
        .slices
        .iter()
        .filter(|slice| slice["metadata"]["labels"]["kubernetes.io/service-name"] == *name)
        .cloned()
        .collect();
    format!("{shown} ({})", endpoints(&slices, Some(port_name)))
}

/// Describes an ingress class.
pub(super) fn ingress_class(subject: &Subject<'_>, page: &mut Page) {
    page.pair(0, "Name", text(&subject.metadata()["name"]));
    page.labels("Labels", &subject.metadata()["labels"]);
    page.annotations("Annotations", &subject.metadata()["annotations"]);
    page.pair(0, "Controller", text(&subject.spec()["controller"]));
    let parameters = &subject.spec()["parameters"];
    if parameters.is_object() {
        page.line(0, "Parameters:");
        page.pair_if(1, "APIGroup", text(&parameters["apiGroup"]));
        page.pair(1, "Kind", text(&parameters["kind"]));
        page.pair(1, "Name", text(&parameters["name"]));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn some_endpoints_are_listed_and_the_others_counted() {
        let ends: Vec<Value> = (1..=5)
            .map(|at| json!({"addresses": [format!("10.0.0.{at}")], "conditions": {"ready": at != 2}}))
            .collect();
        let slice = json!({"ports": [{"name": "http", "port": 80}], "endpoints": ends});
        let slices = [slice];
        assert_eq!(
            endpoints(&slices, Some("http")),
            "10.0.0.1:80,10.0.0.3:80,10.0.0.4:80 + 1 more..."
        );
        assert_eq!(endpoints(&slices, Some("other")), "");
        assert_eq!(endpoints(&[], None), "<none>");
    }
}
