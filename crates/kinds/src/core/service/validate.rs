//! Whether a service makes sense, and what of it may change.
//!
//! Addresses and ports of nodes are allocated by the server: what it fills in is not asked for here.

use std::collections::HashSet;

use std::net::IpAddr;

use bellwether_schema::{FieldError, FieldErrorKind, FieldPath};
use serde_json::Value;

use super::is_externally_reachable;
use crate::check::{self, Errors};
use crate::printed;
use crate::selector::validate_labels;
use crate::value::{at, has, int, list, text, texts};

const SPEC: FieldPath<'static> = FieldPath::new("spec");
const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const ONLY_LOAD_BALANCER: &str = "may only be used when `type` is 'LoadBalancer'";
const SET_ONCE: &str = "may not change once set";
/// How long a client can stick to a pod: a day.
const AFFINITY_SECONDS: i64 = 86400;

/// Checks a service that is to be created, or to replace `old`.
pub(super) fn service(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = at(new, &["spec"]);
    if let Some(old) = old {
        update(spec, at(old, &["spec"]), errors);
    }
    let kind = text(spec, &["type"]);
    let headless = is_headless(spec);
    let ports = list(spec, &["ports"]);
    if ports.is_empty() && !headless && kind != "ExternalName" {
        errors.push(FieldError::required(&SPEC.child("ports"), ""));
    }
    service_type(spec, kind, headless, errors);
    let mut taken = HashSet::new();
    let path = SPEC.child("ports");
    for (index, port) in ports.iter().enumerate() {
        service_port(
            port,
            ports.len() > 1,
            &mut taken,
            &path.index(index),
            errors,
        );
    }
    validate_labels(at(spec, &["selector"]), &SPEC.child("selector"), errors);
    affinity(spec, errors);
    if kind != "ExternalName" {
        addresses(spec, headless, errors);
    }
    external_addresses(spec, errors);
    let kinds = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    check::required_choice(errors, &SPEC.child("type"), kind, &kinds);
    unique_ports(spec, kind, errors);
    load_balancer(spec, kind, errors);
    policies(spec, kind, errors);
}

/// Whether a service has no address of its own.
pub(super) fn is_headless(spec: &Value) -> bool {
    text(spec, &["clusterIP"]) == "None"
}

fn service_type(spec: &Value, kind: &str, headless: bool, errors: &mut Errors) {
    match kind {
        "LoadBalancer" | "NodePort" if headless => {
            let path = SPEC.child("clusterIPs");
            let detail = format!("may not be set to 'None' for {kind} services");
            errors.push(FieldError::invalid(&path.index(0), "None", detail));
        }
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                if has(spec, &[field]) && !list(spec, &[field]).is_empty()
                    || at(spec, &[field]).is_string()
                {
                    let detail = "may not be set for ExternalName services";
                    errors.push(FieldError::forbidden(&SPEC.child(field), detail));
                }
            }
            let name = text(spec, &["externalName"]);
            let name = name.strip_suffix('.').unwrap_or(name);
            let path = SPEC.child("externalName");
            if name.is_empty() {
                errors.push(FieldError::required(&path, ""));
            } else {
                check::subdomain(errors, &path, name);
            }
        }
        _ => {}
    }
}

fn service_port<'a>(
    port: &'a Value,
    needs_name: bool,
    taken: &mut HashSet<&'a str>,
    path: &FieldPath<'_>,
    errors: &mut Errors,
) {
    let name = text(port, &["name"]);
    let name_path = path.child("name");
    if !name.is_empty() {
        check::label(errors, &name_path, name);
        if !taken.insert(name) {
            errors.push(FieldError::duplicate(&name_path, name));
        }
    } else if needs_name {
        errors.push(FieldError::required(&name_path, ""));
    }
    check::port_number(errors, &path.child("port"), int(port, &["port"]));
    let protocol = text(port, &["protocol"]);
    check::required_choice(errors, &path.child("protocol"), protocol, PROTOCOLS);
    check::port(errors, &path.child("targetPort"), at(port, &["targetPort"]));
    if has(port, &["appProtocol"]) {
        let path = path.child("appProtocol");
        check::qualified_name(errors, &path, text(port, &["appProtocol"]));
    }
}

fn affinity(spec: &Value, errors: &mut Errors) {
    let affinity = text(spec, &["sessionAffinity"]);
    let path = SPEC.child("sessionAffinity");
    check::required_choice(errors, &path, affinity, &["ClientIP", "None"]);
    let path = SPEC.child("sessionAffinityConfig");
    if affinity == "ClientIP" {
        let seconds = int(
            spec,
            &["sessionAffinityConfig", "clientIP", "timeoutSeconds"],
        );
        if !(1..=AFFINITY_SECONDS).contains(&seconds) {
            let path = path.child("clientIP");
            let detail = format!("must be greater than 0 and less than {AFFINITY_SECONDS}");
            errors.push(FieldError::invalid(
                &path.child("timeoutSeconds"),
                seconds,
                detail,
            ));
        }
    } else if affinity == "None" && has(spec, &["sessionAffinityConfig"]) {
        let detail = "must not be set when session affinity is None";
        errors.push(FieldError::forbidden(&path, detail));
    }
}

fn addresses(spec: &Value, headless: bool, errors: &mut Errors) {
    let all: Vec<_> = texts(spec, &["clusterIPs"]).collect();
    let value = || at(spec, &["clusterIPs"]).clone();
    let path = SPEC.child("clusterIPs");
    match (text(spec, &["clusterIP"]), all.first()) {
        ("", Some(_)) => {
            let detail = "must be empty when `clusterIP` is not specified";
            errors.push(FieldError::invalid(&path, value(), detail));
        }
        (address, Some(first)) if *first != address => {
            let detail = "first value must match `clusterIP`";
            errors.push(FieldError::invalid(&path, value(), detail));
        }
        _ => {}
    }
    families(spec, errors);
    let before = errors.len();
    for (index, address) in all.iter().enumerate() {
        if index == 0 && *address == "None" {
            if all.len() > 1 {
                let detail = "'None' must be the first and only value";
                errors.push(FieldError::invalid(&path, value(), detail));
            }
        } else {
            check::ip(errors, &path.index(index), address);
        }
    }
    let sound = errors.len() == before;
    if all.len() > 2 {
        let detail = "may only hold up to 2 values";
        errors.push(FieldError::invalid(&path, value(), detail));
    }
    if !sound || headless {
        return;
    }
    let families: Vec<_> = all.iter().map(|address| family(address)).collect();
    if let [first, second, ..] = families[..]
        && first == second
    {
        let detail = "may specify no more than one IP for each IP family";
        errors.push(FieldError::invalid(&path, value(), detail));
    }
    for (index, wanted) in texts(spec, &["ipFamilies"]).enumerate() {
        if families.get(index).is_some_and(|found| *found != wanted) {
            let detail =
                format!("expected an {wanted} value as indicated by `ipFamilies[{index}]`");
            errors.push(FieldError::invalid(&path.index(index), all[index], detail));
        }
    }
}

fn family(address: &str) -> &'static str {
    match address.parse() {
        Ok(IpAddr::V6(_)) => "IPv6",
        _ => "IPv4",
    }
}

fn families(spec: &Value, errors: &mut Errors) {
    let path = SPEC.child("ipFamilies");
    let all: Vec<_> = texts(spec, &["ipFamilies"]).collect();
    let mut seen = HashSet::new();
    for (index, family) in all.iter().enumerate() {
        check::supported(errors, &path.index(index), family, &["IPv4", "IPv6"]);
        if !seen.insert(family) {
            errors.push(FieldError::duplicate(&path.index(index), *family));
        }
    }
    if has(spec, &["ipFamilyPolicy"]) {
        let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
        let policy = text(spec, &["ipFamilyPolicy"]);
        check::supported(errors, &SPEC.child("ipFamilyPolicy"), policy, &policies);
    }
}

fn external_addresses(spec: &Value, errors: &mut Errors) {
    let path = SPEC.child("externalIPs");
    for (index, address) in texts(spec, &["externalIPs"]).enumerate() {
        let path = path.index(index);
        match address.parse::<IpAddr>() {
            Err(_) => check::ip(errors, &path, address),
            Ok(parsed) => endpoint_address(parsed, address, &path, errors),
        }
    }
}

/// Checks that traffic can be sent to an address.
pub(crate) fn endpoint_address(
    address: IpAddr,
    printed: &str,
    path: &FieldPath<'_>,
    errors: &mut Errors,
) {
    let problem = if address.is_unspecified() {
        format!("may not be unspecified ({printed})")
    } else if address.is_loopback() {
        "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned()
    } else if is_link_local(address) {
        "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned()
    } else if address.is_multicast() {
        "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned()
    } else {
        return;
    };
    errors.push(FieldError::invalid(path, printed, problem));
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

fn unique_ports(spec: &Value, kind: &str, errors: &mut Errors) {
    let path = SPEC.child("ports");
    let ports = list(spec, &["ports"]);
    if kind == "ClusterIP" {
        for (index, port) in ports.iter().enumerate() {
            if int(port, &["nodePort"]) != 0 {
                let path = path.index(index);
                let detail = "may not be used when `type` is 'ClusterIP'";
                errors.push(FieldError::forbidden(&path.child("nodePort"), detail));
            }
        }
    }
    let mut seen = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let number = int(port, &["nodePort"]);
        if number != 0 && !seen.insert((text(port, &["protocol"]), number)) {
            let path = path.index(index);
            errors.push(FieldError::duplicate(&path.child("nodePort"), number));
        }
    }
    let mut seen = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        if !seen.insert((text(port, &["protocol"]), int(port, &["port"]))) {
            let value = format!(
                "{{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{},\"TargetPort\":0,\"NodePort\":0}}",
                at(port, &["protocol"]),
                int(port, &["port"])
            );
            let kind = FieldErrorKind::Duplicate;
            errors.push(printed::error(kind, &path.index(index), &value, ""));
        }
    }
}

fn load_balancer(spec: &Value, kind: &str, errors: &mut Errors) {
    let is_balanced = kind == "LoadBalancer";
    let ranges = list(spec, &["loadBalancerSourceRanges"]);
    if !ranges.is_empty() {
        let path = SPEC.child("LoadBalancerSourceRanges");
        if !is_balanced {
            errors.push(FieldError::forbidden(&path, ONLY_LOAD_BALANCER));
        }
        for (index, range) in texts(spec, &["loadBalancerSourceRanges"]).enumerate() {
            check::cidr(errors, &path.index(index), range.trim());
        }
    }
    if has(spec, &["allocateLoadBalancerNodePorts"]) && !is_balanced {
        let path = SPEC.child("allocateLoadBalancerNodePorts");
        errors.push(FieldError::forbidden(&path, ONLY_LOAD_BALANCER));
    }
    if has(spec, &["loadBalancerClass"]) {
        let path = SPEC.child("loadBalancerClass");
        if is_balanced {
            check::qualified_name(errors, &path, text(spec, &["loadBalancerClass"]));
        } else {
            errors.push(FieldError::forbidden(&path, ONLY_LOAD_BALANCER));
        }
    }
}

fn policies(spec: &Value, kind: &str, errors: &mut Errors) {
    let policy = text(spec, &["externalTrafficPolicy"]);
    let path = SPEC.child("externalTrafficPolicy");
    if is_externally_reachable(spec) {
        check::required_choice(errors, &path, policy, &["Cluster", "Local"]);
    } else if !policy.is_empty() {
        let detail = "may only be set for externally-accessible services";
        errors.push(FieldError::invalid(&path, policy, detail));
    }
    let port = int(spec, &["healthCheckNodePort"]);
    let path = SPEC.child("healthCheckNodePort");
    if kind == "LoadBalancer" && policy == "Local" {
        if port != 0 {
            check::port_number(errors, &path, port);
        }
    } else if port != 0 {
        let detail =
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        errors.push(FieldError::invalid(&path, port, detail));
    }
    let path = SPEC.child("internalTrafficPolicy");
    if has(spec, &["internalTrafficPolicy"]) {
        let policy = text(spec, &["internalTrafficPolicy"]);
        check::supported(errors, &path, policy, &["Cluster", "Local"]);
    } else if matches!(kind, "ClusterIP" | "NodePort" | "LoadBalancer") {
        errors.push(FieldError::required(&path, ""));
    }
    if has(spec, &["trafficDistribution"]) {
        let allowed = ["PreferClose", "PreferSameZone", "PreferSameNode"];
        let wish = text(spec, &["trafficDistribution"]);
        check::supported(errors, &SPEC.child("trafficDistribution"), wish, &allowed);
    }
}

/// Checks the status of a service.
pub(super) fn part(part: &str, new: &Value, _old: &Value, errors: &mut Errors) {
    let points = list(new, &["status", "loadBalancer", "ingress"]);
    if part != "status" || points.is_empty() {
        return;
    }
    let path = FieldPath::new("status");
    let path = path.child("loadBalancer");
    let path = path.child("ingress");
    if text(new, &["spec", "type"]) != "LoadBalancer" {
        let detail = "may only be used when `spec.type` is 'LoadBalancer'";
        errors.push(FieldError::forbidden(&path, detail));
        return;
    }
    for (index, point) in points.iter().enumerate() {
        let path = path.index(index);
        let address = text(point, &["ip"]);
        if !address.is_empty() {
            check::ip(errors, &path.child("ip"), address);
            let mode = text(point, &["ipMode"]);
            check::required_choice(errors, &path.child("ipMode"), mode, &["Proxy", "VIP"]);
        }
        let host = text(point, &["hostname"]);
        if !host.is_empty() {
            check::subdomain(errors, &path.child("hostname"), host);
            if host.parse::<IpAddr>().is_ok() {
                let detail = "must be a DNS name, not an IP address";
                errors.push(FieldError::invalid(&path.child("hostname"), host, detail));
            }
        }
    }
}

/// What may not change once it is set.
fn update(spec: &Value, old: &Value, errors: &mut Errors) {
    let external = |spec: &Value| text(spec, &["type"]) == "ExternalName";
    if external(spec) || external(old) {
        return;
    }
    for field in ["clusterIPs", "ipFamilies"] {
        let first = |spec: &Value| list(spec, &[field]).first().cloned();
        if first(old).is_some() && first(spec) != first(old) {
            let path = SPEC.child(field);
            let value = at(spec, &[field]).clone();
            errors.push(FieldError::invalid(&path.index(0), value, SET_ONCE));
        }
    }
    let balanced = |spec: &Value| text(spec, &["type"]) == "LoadBalancer";
    let class = at(spec, &["loadBalancerClass"]);
    if balanced(spec) && balanced(old) && class != at(old, &["loadBalancerClass"]) {
        let path = SPEC.child("loadBalancerClass");
        errors.push(FieldError::invalid(&path, class.clone(), SET_ONCE));
    }
    let port = int(spec, &["healthCheckNodePort"]);
    let checks = |spec: &Value| balanced(spec) && text(spec, &["externalTrafficPolicy"]) == "Local";
    if checks(spec) && checks(old) && port != int(old, &["healthCheckNodePort"]) {
        let path = SPEC.child("healthCheckNodePort");
        errors.push(FieldError::invalid(&path, port, crate::meta::IMMUTABLE));
    }
}
