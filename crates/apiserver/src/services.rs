//! Addresses and node ports of services: unique within the cluster, kept for as long as the service
//! lives. Which of them a service needs is the kind's to say; which are free is known only here.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use bellwether_kinds::{service_needs, set_cluster_ip, set_node_port};
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

/// Gives a service what it needs, after checking what it asks for.
pub(crate) fn allocate(
    cx: &RequestContext,
    service: &mut Value,
    live: Option<&Value>,
) -> Result<(), ApiError> {
    let mut taken = Taken::of(cx, metadata::text(service, "name"));
    let problems = problems(service, live, &taken);
    if !problems.is_empty() {
        let name = metadata::text(service, "name");
        return Err(ApiError::invalid(
            cx.resource.kind_subject(),
            name,
            &problems,
        ));
    }
    taken.node_ports.extend(node_ports(service));
    let needs = service_needs(service);
    if needs.cluster_ip {
        let address = taken.free_address(metadata::text(service, "uid"));
        set_cluster_ip(service, address.into());
    }
    for index in needs.node_ports {
        if let Some(port) = taken.take_node_port() {
            set_node_port(service, index, port);
        }
    }
    if needs.health_check_port
        && let Some(port) = taken.take_node_port()
    {
        service["spec"]["healthCheckNodePort"] = port.into();
    }
    Ok(())
}

/// What a service asks for and cannot have.
fn problems(service: &Value, live: Option<&Value>, taken: &Taken) -> Vec<FieldError> {
    let mut problems = Vec::new();
    let path = FieldPath::new("spec");
    let given = service["spec"]["clusterIP"].as_str().unwrap_or("");
    // Validation refuses to change an address; only a first one is ours to check.
    let first = live.is_none_or(|live| live["spec"]["clusterIP"].as_str().unwrap_or("").is_empty());
    if let Ok(address) = given.parse::<Ipv4Addr>()
        && first
        && let Some(why) = taken.refuses_address(address)
    {
        let path = path.child("clusterIPs");
        problems.push(FieldError::invalid(&path, json!([given]), why));
    }
    let path = path.child("ports");
    let before: HashSet<u16> = live.into_iter().flat_map(node_ports).collect();
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    for (index, port) in ports.enumerate() {
        let given = port["nodePort"].as_i64().unwrap_or(0);
        let kept = u16::try_from(given).is_ok_and(|port| before.contains(&port));
        if given != 0
            && !kept
            && let Some(why) = taken.refuses_node_port(given)
        {
            let path = path.index(index);
            problems.push(FieldError::invalid(&path.child("nodePort"), given, why));
        }
    }
    problems
}

fn node_ports(service: &Value) -> Vec<u16> {
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    let own = ports.map(|port| &port["nodePort"]);
    own.chain([&service["spec"]["healthCheckNodePort"]])
        .filter_map(|port| u16::try_from(port.as_u64()?).ok())
        .filter(|port| *port != 0)
        .collect()
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
        let Ok(page) = cx
            .cluster
            .keyspace()
            .range(Range::prefix(&cx.resource.prefix))
        else {
            return taken;
        };
        let own = cx.resource.key(cx.namespace.as_deref(), except);
        for entry in page.entries.iter().filter(|entry| *entry.key != *own) {
            let service = entry.value.to_untyped_value();
            let address = service["spec"]["clusterIP"].as_str();
            taken
                .addresses
                .extend(address.and_then(|text| text.parse::<Ipv4Addr>().ok()));
            taken.node_ports.extend(node_ports(&service));
        }
        taken
    }

    fn refuses_address(&self, address: Ipv4Addr) -> Option<String> {
        let [high, low] = NETWORK;
        if address.octets()[..2] != NETWORK {
            return Some(format!(
                "failed to allocate IP {address}: the provided IP ({address}) is not in the valid range. The range of valid IPs is {high}.{low}.0.0/16"
            ));
        }
        let taken = self.addresses.contains(&address);
        taken.then(|| format!("failed to allocate IP {address}: provided IP is already allocated"))
    }

    fn refuses_node_port(&self, port: i64) -> Option<String> {
        match u16::try_from(port) {
            Ok(port) if self.node_ports.contains(&port) => {
                Some("provided port is already allocated".to_owned())
            }
            Ok(port) if NODE_PORTS.contains(&port) => None,
            _ => Some(format!(
                "provided port is not in the valid range. The range of valid ports is {}-{}",
                NODE_PORTS.start,
                NODE_PORTS.end - 1
            )),
        }
    }

    /// A free address; where the search begins depends on `seed`, so that a deleted service's
    /// address is not given to the next one at once.
    fn free_address(&self, seed: &str) -> Ipv4Addr {
        let start = seed
            .bytes()
            .fold(7_u16, |hash, byte| hash.wrapping_mul(31) ^ u16::from(byte));
        (0..u16::MAX)
            .map(|step| start.wrapping_add(step).to_be_bytes())
            // The first few are for services that ask for one by number.
            .filter(|host| !matches!(host, [0, 0..=10] | [255, 255]))
            .map(|[high, low]| Ipv4Addr::new(NETWORK[0], NETWORK[1], high, low))
            .find(|address| !self.addresses.contains(address))
            .unwrap_or(Ipv4Addr::UNSPECIFIED)
    }

    fn take_node_port(&mut self) -> Option<u16> {
        let free = NODE_PORTS
            .clone()
            .find(|port| !self.node_ports.contains(port))?;
        self.node_ports.insert(free);
        Some(free)
    }
}
