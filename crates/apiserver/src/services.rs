//! Addresses of services: unique within the cluster, kept for as long as the service lives.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use bellwether_schema::{FieldError, FieldPath};
use bellwether_store::Range;
use serde_json::{Value, json};

use crate::context::RequestContext;
use crate::metadata;
use crate::status::ApiError;

/// Addresses are taken from 10.96.0.0/16, as kubeadm does.
const NETWORK: [u8; 2] = [10, 96];
/// Ports of services that are reachable on every node.
const NODE_PORTS: std::ops::Range<u16> = 30_000..32_768;

/// Gives a service the addresses and node ports that its type asks for.
pub(crate) fn allocate(
    cx: &RequestContext,
    service: &mut Value,
    live: Option<&Value>,
) -> Result<(), ApiError> {
    let kind = service["spec"]["type"]
        .as_str()
        .unwrap_or("ClusterIP")
        .to_owned();
    if kind == "ExternalName" {
        return Ok(());
    }
    keep_addresses(service, live);
    let taken = Taken::of(cx, metadata::text(service, "name"));
    let address = match service["spec"]["clusterIP"].as_str() {
        Some(given) if !given.is_empty() => {
            check_address(cx, service, given, &taken, live)?;
            given.to_owned()
        }
        _ => taken
            .free_address(metadata::text(service, "uid"))
            .to_string(),
    };
    service["spec"]["clusterIP"] = address.as_str().into();
    if live.is_none() {
        service["spec"]["clusterIPs"] = json!([address]);
    }
    if service["spec"]["ipFamilies"].is_null() {
        service["spec"]["ipFamilies"] = json!(["IPv4"]);
    }
    if service["spec"]["ipFamilyPolicy"].is_null() {
        service["spec"]["ipFamilyPolicy"] = "SingleStack".into();
    }
    if kind == "NodePort" || kind == "LoadBalancer" {
        check_node_ports(cx, service, &taken)?;
        taken.assign_node_ports(service);
    }
    Ok(())
}

/// An update that does not mention the addresses keeps them.
fn keep_addresses(service: &mut Value, live: Option<&Value>) {
    let Some(live) = live else { return };
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        let missing = service["spec"][field].is_null() || service["spec"][field] == "";
        if missing && !live["spec"][field].is_null() {
            service["spec"][field] = live["spec"][field].clone();
        }
    }
    let before = live["spec"]["ports"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    for port in service["spec"]["ports"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        let same =
            |other: &&Value| other["port"] == port["port"] && other["protocol"] == port["protocol"];
        if port["nodePort"].is_null()
            && let Some(node_port) = before.iter().find(same).map(|other| &other["nodePort"])
            && !node_port.is_null()
        {
            port["nodePort"] = node_port.clone();
        }
    }
}

fn check_address(
    cx: &RequestContext,
    service: &Value,
    given: &str,
    taken: &Taken,
    live: Option<&Value>,
) -> Result<(), ApiError> {
    // Validation refuses to change an address; only a first one is ours to check.
    let had_one =
        live.is_some_and(|live| !live["spec"]["clusterIP"].as_str().unwrap_or("").is_empty());
    if given == "None" || had_one {
        return Ok(());
    }
    // Validation reports what is no address at all.
    let Ok(address) = given.parse::<Ipv4Addr>() else {
        return Ok(());
    };
    let why = if address.octets()[..2] != NETWORK {
        format!(
            "failed to allocate IP {given}: the provided IP ({given}) is not in the valid range. The range of valid IPs is {}.{}.0.0/16",
            NETWORK[0], NETWORK[1]
        )
    } else if taken.addresses.contains(&address) {
        format!("failed to allocate IP {given}: provided IP is already allocated")
    } else {
        return Ok(());
    };
    let path = FieldPath::new("spec");
    let path = path.child("clusterIPs");
    let error = FieldError::invalid(&path, json!([given]), why);
    Err(ApiError::invalid(
        cx.resource.kind_subject(),
        metadata::text(service, "name"),
        &[error],
    ))
}

fn check_node_ports(cx: &RequestContext, service: &Value, taken: &Taken) -> Result<(), ApiError> {
    let path = FieldPath::new("spec");
    let path = path.child("ports");
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    for (index, port) in ports.enumerate() {
        let Some(given) = port["nodePort"].as_i64().filter(|port| *port != 0) else {
            continue;
        };
        let number = u16::try_from(given).ok();
        let why = if !number.is_some_and(|number| NODE_PORTS.contains(&number)) {
            format!(
                "provided port is not in the valid range. The range of valid ports is {}-{}",
                NODE_PORTS.start,
                NODE_PORTS.end - 1
            )
        } else if number.is_some_and(|number| taken.node_ports.contains(&number)) {
            "provided port is already allocated".to_owned()
        } else {
            continue;
        };
        let path = path.index(index);
        let error = FieldError::invalid(&path.child("nodePort"), given, why);
        let name = metadata::text(service, "name");
        return Err(ApiError::invalid(
            cx.resource.kind_subject(),
            name,
            &[error],
        ));
    }
    Ok(())
}

/// What the other services of the cluster have.
#[derive(Debug, Default)]
struct Taken {
    addresses: HashSet<Ipv4Addr>,
    node_ports: HashSet<u16>,
}

impl Taken {
    fn of(cx: &RequestContext, except: &str) -> Self {
        let mut taken = Self::default();
        let prefix = &*cx.resource.prefix;
        let range = Range {
            prefix,
            start_after: None,
            limit: None,
            at: None,
        };
        let Ok(page) = cx.cluster.keyspace().range(range) else {
            return taken;
        };
        let own = cx.resource.key(cx.namespace.as_deref(), except);
        for entry in page.entries.iter().filter(|entry| *entry.key != *own) {
            let service = entry.value.to_untyped_value();
            let address = service["spec"]["clusterIP"].as_str();
            taken
                .addresses
                .extend(address.and_then(|text| text.parse::<Ipv4Addr>().ok()));
            let ports = service["spec"]["ports"].as_array().into_iter().flatten();
            taken
                .node_ports
                .extend(ports.filter_map(|port| u16::try_from(port["nodePort"].as_u64()?).ok()));
        }
        taken
    }

    /// A free address; where the search begins depends on `seed`, so that a deleted service's
    /// address is not given to the next one at once.
    fn free_address(&self, seed: &str) -> Ipv4Addr {
        let start = seed
            .bytes()
            .fold(7_u16, |hash, byte| hash.wrapping_mul(31) ^ u16::from(byte));
        (0..u16::MAX)
            .map(|step| start.wrapping_add(step).to_be_bytes())
            .filter(|host| !matches!(host, [0, 0..=10] | [255, 255]))
            .map(|[high, low]| Ipv4Addr::new(NETWORK[0], NETWORK[1], high, low))
            .find(|address| !self.addresses.contains(address))
            .unwrap_or(Ipv4Addr::UNSPECIFIED)
    }

    fn assign_node_ports(&self, service: &mut Value) {
        let mut used = self.node_ports.clone();
        let ports = || service["spec"]["ports"].as_array().into_iter().flatten();
        used.extend(ports().filter_map(|port| u16::try_from(port["nodePort"].as_u64()?).ok()));
        for port in service["spec"]["ports"]
            .as_array_mut()
            .into_iter()
            .flatten()
        {
            if port["nodePort"].as_u64().unwrap_or(0) > 0 {
                continue;
            }
            if let Some(free) = NODE_PORTS
                .clone()
                .find(|candidate| !used.contains(candidate))
            {
                used.insert(free);
                port["nodePort"] = free.into();
            }
        }
    }
}
