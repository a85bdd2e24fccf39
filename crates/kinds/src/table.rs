//! The list of all built-in resources.

use crate::{
    Resource, admission, apiextensions, apiregistration, apps, autoscaling, batch, certificates,
    coordination, core, discovery, networking, policy, rbac, reviews, scheduling, storage,
};

/// All built-in resources: the core group first, then group by group, the preferred version of a
/// group before others.
pub fn resources() -> &'static [Resource] {
    RESOURCES
}

/// The resource with this name in URLs.
pub fn find(group: &str, version: &str, plural: &str) -> Option<&'static Resource> {
    RESOURCES.iter().find(|resource| {
        resource.plural == plural && resource.group == group && resource.version == version
    })
}

/// The resource whose objects are of this kind.
pub fn find_kind(group: &str, version: &str, kind: &str) -> Option<&'static Resource> {
    RESOURCES.iter().find(|resource| {
        resource.kind == kind && resource.group == group && resource.version == version
    })
}

static RESOURCES: &[Resource] = &[
    core::pod::BINDING,
    core::config::CONFIG_MAP,
    core::endpoints::RESOURCE,
    core::event::CORE,
    core::quota::LIMIT_RANGE,
    core::namespace::RESOURCE,
    core::node::RESOURCE,
    core::volume::CLAIM,
    core::volume::VOLUME,
    core::pod::RESOURCE,
    core::pod_template::RESOURCE,
    core::replication_controller::RESOURCE,
    core::quota::RESOURCE_QUOTA,
    core::config::SECRET,
    core::service_account::RESOURCE,
    core::service::RESOURCE,
    apiregistration::API_SERVICE,
    apps::controller_revision::RESOURCE,
    apps::daemon_set::RESOURCE,
    apps::deployment::RESOURCE,
    apps::replica_set::RESOURCE,
    apps::stateful_set::RESOURCE,
    core::event::EVENTS,
    reviews::SELF_SUBJECT_REVIEW,
    reviews::TOKEN_REVIEW,
    reviews::LOCAL_SUBJECT_ACCESS_REVIEW,
    reviews::SELF_SUBJECT_ACCESS_REVIEW,
    reviews::SELF_SUBJECT_RULES_REVIEW,
    reviews::SUBJECT_ACCESS_REVIEW,
    autoscaling::V2,
    autoscaling::V1,
    batch::cron_job::RESOURCE,
    batch::job::RESOURCE,
    certificates::SIGNING_REQUEST,
    networking::ingress::INGRESS_CLASS,
    networking::ingress::INGRESS,
    networking::address::IP_ADDRESS,
    networking::network_policy::RESOURCE,
    networking::address::SERVICE_CIDR,
    policy::POD_DISRUPTION_BUDGET,
    rbac::CLUSTER_ROLE_BINDING,
    rbac::CLUSTER_ROLE,
    rbac::ROLE_BINDING,
    rbac::ROLE,
    storage::CSI_DRIVER,
    storage::CSI_NODE,
    storage::CSI_STORAGE_CAPACITY,
    storage::STORAGE_CLASS,
    storage::VOLUME_ATTACHMENT,
    storage::VOLUME_ATTRIBUTES_CLASS,
    admission::MUTATING_WEBHOOKS,
    admission::VALIDATING_POLICY,
    admission::VALIDATING_POLICY_BINDING,
    admission::VALIDATING_WEBHOOKS,
    apiextensions::CUSTOM_RESOURCE_DEFINITION,
    scheduling::PRIORITY_CLASS,
    coordination::LEASE,
    scheduling::RUNTIME_CLASS,
    discovery::ENDPOINT_SLICE,
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use bellwether_schema::{ListType, Type};

    use super::*;

    #[test]
    fn names_are_unique_in_a_version() {
        let mut seen = HashSet::new();
        for resource in resources() {
            assert!(seen.insert((resource.group, resource.version, resource.plural)));
            assert!(seen.insert((resource.group, resource.version, resource.kind)));
        }
    }

    #[test]
    fn resources_are_found_by_plural_and_kind() {
        let found = find("apps", "v1", "deployments").unwrap();
        assert_eq!(found.api_version(), "apps/v1");
        assert_eq!(found.singular(), "deployment");
        assert_eq!(found.list_kind(), "DeploymentList");
        assert!(found.has_status());
        assert_eq!(find_kind("", "v1", "Pod").unwrap().plural, "pods");
        assert!(find("", "v2", "pods").is_none());
        assert!(
            find("authorization.k8s.io", "v1", "subjectaccessreviews")
                .unwrap()
                .is_virtual()
        );
    }

    #[test]
    fn every_stored_resource_points_at_one_that_stores_itself() {
        for resource in resources() {
            let storage = resource.storage;
            let stored = find(storage.group, storage.version, resource.plural).unwrap();
            assert_eq!(stored.storage, storage, "{resource:?}");
        }
    }

    #[test]
    fn every_resource_has_a_schema_with_metadata() {
        for resource in resources() {
            let schema = resource.schema();
            assert_eq!(schema.kind, Some(Type::Object), "{resource:?}");
            assert!(schema.properties.contains_key("metadata"), "{resource:?}");
            assert!(schema.properties.contains_key("kind"), "{resource:?}");
            assert_eq!(
                schema.type_name.as_deref(),
                Some(resource.type_name().as_str())
            );
        }
    }

    #[test]
    fn schemas_share_types_and_know_how_lists_merge() {
        let deployment = find_kind("apps", "v1", "Deployment").unwrap().schema();
        let pod = find_kind("", "v1", "Pod").unwrap().schema();
        let template = &deployment.properties["spec"].properties["template"];
        let of_template = &template.properties["spec"].properties["containers"];
        let of_pod = &pod.properties["spec"].properties["containers"];
        assert_eq!(of_pod.list_type, ListType::Map(vec!["name".to_owned()]));
        assert_eq!(
            of_pod.patch.as_ref().unwrap().merge_key.as_deref(),
            Some("name")
        );
        assert!(std::sync::Arc::ptr_eq(of_template, of_pod));
        let ports = &of_pod.items.as_ref().unwrap().properties["ports"];
        assert_eq!(
            ports.list_type,
            ListType::Map(vec!["containerPort".to_owned(), "protocol".to_owned()])
        );
        let protocol = &ports.items.as_ref().unwrap().properties["protocol"];
        assert_eq!(protocol.default, Some("TCP".into()));
    }

    #[test]
    fn a_schema_that_contains_itself_ends() {
        let definition = find_kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        let spec = &definition.unwrap().schema().properties["spec"];
        let version = spec.properties["versions"].items.clone().unwrap();
        let schema = &version.properties["schema"].properties["openAPIV3Schema"];
        assert!(schema.preserve_unknown_fields);
        assert!(schema.properties.is_empty());
    }
}
