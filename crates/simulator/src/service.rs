//! Services: the endpoint slices, and the older endpoints, of those that select pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_api::workload::service::{HEADLESS, MANAGED_BY, SERVICE_NAME, SLICE_CONTROLLER};
use k8s_openapi::api::core::v1::{
    EndpointAddress, EndpointPort as PlainPort, EndpointSubset, Endpoints, ObjectReference, Pod,
    Service, ServicePort, ServiceSpec,
};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::json;

use crate::kind::{Kind, Reference, is_deleting, key_of, label};
use crate::plan::{Plan, to_json};
use crate::pods;
use crate::scheduler::node_of;

/// How many endpoints a slice holds.
const SLICE_SIZE: usize = 100;
/// The manager of plain endpoints, as their label says.
const ENDPOINTS_CONTROLLER: &str = "endpoint-controller";
const ENDPOINTS_MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";

/// Everything that the decision may look at.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) service: &'a Service,
    /// The pods that it selects.
    pub(crate) pods: &'a [Arc<Pod>],
    /// The slices that name it.
    pub(crate) slices: &'a [Arc<EndpointSlice>],
    /// The endpoints of its name.
    pub(crate) endpoints: Option<&'a Endpoints>,
}

/// What has to be done for a service.
pub(crate) fn decide(view: &View<'_>) -> Plan {
    let mut plan = Plan::default();
    let Some(spec) = &view.service.spec else {
        return plan;
    };
    let selects = spec
        .selector
        .as_ref()
        .is_some_and(|selector| !selector.is_empty());
    let external = spec.type_.as_deref() == Some("ExternalName");
    if !selects || external || is_deleting(&view.service.metadata) {
        // Anyone who selects nothing manages endpoints by hand.
        return plan;
    }
    let mut pods: Vec<&Pod> = view
        .pods
        .iter()
        .map(AsRef::as_ref)
        .filter(|pod| has_address(pod))
        .collect();
    pods.sort_by_key(|pod| key_of(*pod));
    write_slices(view, spec, &pods, &mut plan);
    write_endpoints(view, spec, &pods, &mut plan);
    plan
}

fn has_address(pod: &Pod) -> bool {
    address(pod).is_some() && !pods::has_ended(pod)
}

fn address(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.pod_ip.as_deref()
}

/// The labels that a service hands on, and these.
fn labels(service: &Service, own: &[(&str, &str)]) -> BTreeMap<String, String> {
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    let spec = service.spec.as_ref();
    if spec.and_then(|spec| spec.cluster_ip.as_deref()) == Some("None") {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    let own = own.iter();
    labels.extend(own.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    labels
}

/// The number of a service's port on a pod: given as such, or as the name of a container's port.
fn target_port(port: &ServicePort, pod: &Pod) -> Option<i32> {
    match &port.target_port {
        None | Some(IntOrString::Int(0)) => Some(port.port),
        Some(IntOrString::Int(number)) => Some(*number),
        Some(IntOrString::String(name)) => {
            let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
            let mut ports = containers.flat_map(|container| container.ports.iter().flatten());
            let protocol = port.protocol.as_deref().unwrap_or("TCP");
            let found = ports.find(|found| {
                found.name.as_ref() == Some(name)
                    && found.protocol.as_deref().unwrap_or("TCP") == protocol
            });
            found.map(|found| found.container_port)
        }
    }
}

/// A port of a service, as it is on a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Port {
    /// Empty if it has none.
    name: String,
    number: i32,
    protocol: String,
    app_protocol: Option<String>,
}

/// The ports of a service, as they are on a pod.
fn ports(spec: &ServiceSpec, pod: &Pod) -> Vec<Port> {
    let ports = spec.ports.iter().flatten();
    ports
        .filter_map(|port| {
            Some(Port {
                name: port.name.clone().unwrap_or_default(),
                number: target_port(port, pod)?,
                protocol: port.protocol.clone().unwrap_or_else(|| "TCP".to_owned()),
                app_protocol: port.app_protocol.clone(),
            })
        })
        .collect()
}

fn reference(pod: &Pod) -> ObjectReference {
    let key = key_of(pod);
    ObjectReference {
        kind: Some(Kind::Pod.names().kind.to_owned()),
        name: Some(key.name.to_string()),
        namespace: Some(key.namespace.to_string()),
        uid: pod.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

fn endpoint(spec: &ServiceSpec, pod: &Pod) -> Endpoint {
    let terminating = is_deleting(&pod.metadata);
    let serving = pods::is_ready(pod);
    let anyway = spec.publish_not_ready_addresses.unwrap_or(false);
    Endpoint {
        addresses: address(pod).map(str::to_owned).into_iter().collect(),
        conditions: Some(EndpointConditions {
            ready: Some(anyway || (serving && !terminating)),
            serving: Some(serving),
            terminating: Some(terminating),
        }),
        node_name: node_of(pod).map(str::to_owned),
        target_ref: Some(reference(pod)),
        hostname: hostname(pod),
        ..Endpoint::default()
    }
}

/// The name of a pod in DNS, if it is in a domain.
fn hostname(pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    spec.subdomain.as_ref()?;
    spec.hostname.clone()
}

/// The slices that a service should have.
fn wanted_slices(service: &Service, spec: &ServiceSpec, pods: &[&Pod]) -> Vec<EndpointSlice> {
    let owner = Reference::to(service);
    let name = &owner.key.name;
    let own = [(SERVICE_NAME, &**name), (MANAGED_BY, SLICE_CONTROLLER)];
    let labels = labels(service, &own);
    let mut groups: BTreeMap<Vec<Port>, Vec<Endpoint>> = BTreeMap::new();
    for pod in pods {
        let group = groups.entry(ports(spec, pod)).or_default();
        group.push(endpoint(spec, pod));
    }
    if groups.is_empty() {
        // There is always one, if only to say that there is nothing.
        groups.insert(Vec::new(), Vec::new());
    }
    let slice = |ports: &[Port], endpoints: &[Endpoint]| EndpointSlice {
        address_type: "IPv4".to_owned(),
        endpoints: endpoints.to_vec(),
        ports: (!ports.is_empty()).then(|| ports.iter().map(slice_port).collect()),
        metadata: ObjectMeta {
            generate_name: Some(format!("{name}-")),
            namespace: Some(owner.key.namespace.to_string()),
            labels: Some(labels.clone()),
            owner_references: Some(vec![owner.controller()]),
            ..ObjectMeta::default()
        },
    };
    let mut slices = Vec::new();
    for (ports, endpoints) in &groups {
        if endpoints.is_empty() {
            slices.push(slice(ports, &[]));
        }
        slices.extend(
            endpoints
                .chunks(SLICE_SIZE)
                .map(|chunk| slice(ports, chunk)),
        );
    }
    slices
}

fn slice_port(port: &Port) -> EndpointPort {
    EndpointPort {
        name: Some(port.name.clone()),
        port: Some(port.number),
        protocol: Some(port.protocol.clone()),
        app_protocol: port.app_protocol.clone(),
    }
}

fn write_slices(view: &View<'_>, spec: &ServiceSpec, pods: &[&Pod], plan: &mut Plan) {
    let wanted = wanted_slices(view.service, spec, pods);
    let mut own: Vec<&Arc<EndpointSlice>> = view
        .slices
        .iter()
        .filter(|slice| label(&slice.metadata, MANAGED_BY) == Some(SLICE_CONTROLLER))
        .filter(|slice| !is_deleting(&slice.metadata))
        .collect();
    own.sort_by_key(|slice| slice.metadata.name.clone());
    for (slice, wanted) in own.iter().zip(&wanted) {
        let ports = slice.ports.clone().filter(|ports| !ports.is_empty());
        let is_right = slice.endpoints == wanted.endpoints
            && ports == wanted.ports
            && slice.metadata.labels == wanted.metadata.labels;
        if !is_right {
            plan.patch(
                slice.as_ref(),
                json!({
                    "metadata": {"labels": wanted.metadata.labels},
                    "endpoints": to_json(&wanted.endpoints), "ports": to_json(&wanted.ports),
                }),
            );
        }
    }
    let owner = Reference::to(view.service);
    for slice in wanted.iter().skip(own.len()) {
        plan.create(slice, Some(owner.clone()), None, None);
    }
    for slice in own.iter().skip(wanted.len()) {
        plan.delete(slice.as_ref());
    }
}

/// The subsets of plain endpoints: addresses that are ready, and those that are not, by ports.
fn subsets(spec: &ServiceSpec, pods: &[&Pod]) -> Option<Vec<EndpointSubset>> {
    let anyway = spec.publish_not_ready_addresses.unwrap_or(false);
    let mut groups: BTreeMap<Vec<Port>, [Vec<EndpointAddress>; 2]> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| !is_deleting(&pod.metadata)) {
        let ready = anyway || pods::is_ready(pod);
        let address = EndpointAddress {
            ip: address(pod).unwrap_or_default().to_owned(),
            node_name: node_of(pod).map(str::to_owned),
            target_ref: Some(reference(pod)),
            hostname: hostname(pod),
        };
        groups.entry(ports(spec, pod)).or_default()[usize::from(!ready)].push(address);
    }
    let unless_empty =
        |addresses: Vec<EndpointAddress>| (!addresses.is_empty()).then_some(addresses);
    let subsets: Vec<EndpointSubset> = groups
        .into_iter()
        .map(|(ports, [ready, unready])| EndpointSubset {
            addresses: unless_empty(ready),
            not_ready_addresses: unless_empty(unready),
            ports: Some(ports.into_iter().map(plain_port).collect()),
        })
        .collect();
    (!subsets.is_empty()).then_some(subsets)
}

fn plain_port(port: Port) -> PlainPort {
    PlainPort {
        name: Some(port.name).filter(|name| !name.is_empty()),
        port: port.number,
        protocol: Some(port.protocol),
        app_protocol: port.app_protocol,
    }
}

fn write_endpoints(view: &View<'_>, spec: &ServiceSpec, pods: &[&Pod], plan: &mut Plan) {
    let subsets = subsets(spec, pods);
    let key = key_of(view.service);
    let labels = labels(
        view.service,
        &[(ENDPOINTS_MANAGED_BY, ENDPOINTS_CONTROLLER)],
    );
    let Some(found) = view.endpoints else {
        let endpoints = Endpoints {
            metadata: ObjectMeta {
                name: Some(key.name.to_string()),
                namespace: Some(key.namespace.to_string()),
                labels: Some(labels),
                ..ObjectMeta::default()
            },
            subsets,
        };
        plan.create(&endpoints, None, None, None);
        return;
    };
    let known = found.subsets.clone().filter(|subsets| !subsets.is_empty());
    if known != subsets || found.metadata.labels.as_ref() != Some(&labels) {
        let patch = json!({"metadata": {"labels": labels}, "subsets": to_json(&subsets)});
        plan.patch(found, patch);
    }
}
