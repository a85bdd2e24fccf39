//! Network policies, in sentences.

use serde_json::Value;

use super::page::Page;
use super::read::{items, joined, number, or_none, selector, shown, text};
use super::subject::Subject;

/// What is said about one direction of traffic.
struct Direction {
    /// The policy type.
    kind: &'static str,
    name: &'static str,
    rules: &'static str,
    peers: &'static str,
    label: &'static str,
    end: &'static str,
}

const DIRECTIONS: [Direction; 2] = [
    Direction {
        kind: "Ingress",
        name: "ingress",
        rules: "ingress",
        peers: "from",
        label: "From",
        end: "source",
    },
    Direction {
        kind: "Egress",
        name: "egress",
        rules: "egress",
        peers: "to",
        label: "To",
        end: "destination",
    },
];

/// Describes a network policy.
pub(super) fn describe(subject: &Subject<'_>, page: &mut Page) {
    let (metadata, spec) = (subject.metadata(), subject.spec());
    page.pair(0, "Name", text(&metadata["name"]));
    page.pair(0, "Namespace", text(&metadata["namespace"]));
    let created = subject.moment.stamp(&metadata["creationTimestamp"]);
    page.pair(0, "Created on", created);
    page.labels("Labels", &metadata["labels"]);
    page.annotations("Annotations", &metadata["annotations"]);
    page.line(0, "Spec:");
    let chosen = match selector(&spec["podSelector"]) {
        empty if empty.is_empty() => {
            "<none> (Allowing the specific traffic to all pods in this namespace)".to_owned()
        }
        chosen => chosen,
    };
    page.line(1, format_args!("PodSelector:     {chosen}"));
    for direction in &DIRECTIONS {
        let name = direction.name;
        let affected = items(&spec["policyTypes"]).iter();
        if affected.into_iter().any(|kind| kind == direction.kind) {
            page.line(1, format_args!("Allowing {name} traffic:"));
            rules(page, direction, &spec[direction.rules]);
        } else {
            page.line(1, format_args!("Not affecting {name} traffic"));
        }
    }
    let kinds = joined(&spec["policyTypes"], ", ");
    page.line(1, format_args!("Policy Types: {}", or_none(&kinds)));
}

fn rules(page: &mut Page, direction: &Direction, rules: &Value) {
    let rules = items(rules);
    if rules.is_empty() {
        let name = direction.name;
        let text = format!("<none> (Selected pods are isolated for {name} connectivity)");
        page.line(2, text);
    }
    for (at, rule) in rules.iter().enumerate() {
        if at > 0 {
            page.line(2, "----------");
        }
        ports(page, &rule["ports"]);
        let Direction { label, end, .. } = direction;
        let peers = items(&rule[direction.peers]);
        if peers.is_empty() {
            page.line(
                2,
                format_args!("{label}: <any> (traffic not restricted by {end})"),
            );
        }
        for found in peers {
            page.line(2, format_args!("{label}:"));
            peer(page, found);
        }
    }
}

fn ports(page: &mut Page, ports: &Value) {
    let ports = items(ports);
    if ports.is_empty() {
        page.line(2, "To Port: <any> (traffic allowed to all ports)");
    }
    for port in ports {
        let protocol = match text(&port["protocol"]) {
            "" => "TCP",
            protocol => protocol,
        };
        let first = match &port["port"] {
            Value::Null => "<nil>".to_owned(),
            port => shown(port),
        };
        if port["endPort"].is_null() {
            page.line(2, format_args!("To Port: {first}/{protocol}"));
        } else {
            let last = number(&port["endPort"]);
            page.line(2, format_args!("To Port Range: {first}-{last}/{protocol}"));
        }
    }
}

fn peer(page: &mut Page, peer: &Value) {
    let block = &peer["ipBlock"];
    let mut selected = false;
    for (label, name) in [
        ("NamespaceSelector", "namespaceSelector"),
        ("PodSelector", "podSelector"),
    ] {
        if peer[name].is_object() {
            let chosen = selector(&peer[name]);
            page.line(3, format_args!("{label}: {}", or_none(&chosen)));
            selected = true;
        }
    }
    if !selected && block.is_object() {
        page.line(3, "IPBlock:");
        page.line(4, format_args!("CIDR: {}", text(&block["cidr"])));
        page.line(
            4,
            format_args!("Except: {}", joined(&block["except"], ", ")),
        );
    }
}
