//! What an autoscaler says about metrics that nobody serves.

use k8s_openapi::api::autoscaling::v2::{MetricSpec, MetricTarget};

use crate::select::go_form;

const RESOURCE_API: &str = "unable to fetch metrics from resource metrics API: \
    the server could not find the requested resource (get pods.metrics.k8s.io)";
const CUSTOM_API: &str = "unable to fetch metrics from custom metrics API: \
    no custom metrics API (custom.metrics.k8s.io) registered";

/// Why there is no value of a metric.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Missing {
    /// For conditions and events.
    pub(super) reason: &'static str,
    pub(super) error: String,
    /// The error, and what was attempted.
    pub(super) wrapped: String,
}

/// Why there is no value of a metric.
pub(super) fn missing(metric: &MetricSpec, namespace: &str) -> Missing {
    if let Some(found) = &metric.resource {
        let error = resource_error(&found.name, &found.target);
        return Missing {
            reason: "FailedGetResourceMetric",
            wrapped: format!(
                "failed to get {} resource metric value: {error}",
                found.name
            ),
            error,
        };
    }
    if let Some(found) = &metric.container_resource {
        let error = resource_error(&found.name, &found.target);
        let container = &found.container;
        return Missing {
            reason: "FailedGetContainerResourceMetric",
            wrapped: format!("failed to get {container} container metric value: {error}"),
            error,
        };
    }
    if let Some(found) = &metric.pods {
        let error = format!("unable to get metric {}: {CUSTOM_API}", found.metric.name);
        return Missing {
            reason: "FailedGetPodsMetric",
            wrapped: format!("failed to get pods metric value: {error}"),
            error,
        };
    }
    if let Some(found) = &metric.object {
        let (name, object) = (&found.metric.name, &found.described_object);
        // The odd order of the words is that of kubernetes: podautoscaler/replica_calculator.go.
        let error = format!(
            "unable to get metric {name}: {} on {namespace} {}/{CUSTOM_API}",
            object.kind, object.name
        );
        let attempt = if found.target.average_value.is_some() {
            format!("failed to get {name} object metric: ")
        } else {
            String::new()
        };
        return Missing {
            reason: "FailedGetObjectMetric",
            wrapped: format!("failed to get object metric value: {attempt}{error}"),
            error,
        };
    }
    external(metric, namespace)
}

fn external(metric: &MetricSpec, namespace: &str) -> Missing {
    let Some(found) = &metric.external else {
        let error = format!("unknown metric source type {:?}", metric.type_);
        return Missing {
            reason: "InvalidMetricSourceType",
            wrapped: error.clone(),
            error,
        };
    };
    let name = &found.metric.name;
    let selector = found.metric.selector.as_ref().map(go_form);
    let selector = selector.unwrap_or_else(|| "nil".to_owned());
    let error = format!(
        "unable to get external metric {namespace}/{name}/{selector}: unable to fetch metrics from \
         external metrics API: the server could not find the requested resource \
         (get {name}.external.metrics.k8s.io)"
    );
    let attempt = if found.target.average_value.is_some() {
        format!("failed to get {name} external metric")
    } else {
        format!("failed to get external metric {name}")
    };
    Missing {
        reason: "FailedGetExternalMetric",
        wrapped: format!("failed to get {name} external metric value: {attempt}: {error}"),
        error,
    }
}

fn resource_error(name: &str, target: &MetricTarget) -> String {
    let what = if target.average_value.is_some() {
        "usage"
    } else {
        "utilization"
    };
    format!(
        "failed to get {name} {what}: unable to get metrics for resource {name}: {RESOURCE_API}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[track_caller]
    fn check(metric: Value, reason: &str, error: &str, attempt: &str) {
        let metric: MetricSpec = serde_json::from_value(metric).unwrap();
        let found = missing(&metric, "a");
        assert_eq!(found.reason, reason);
        assert_eq!(found.error, error);
        assert_eq!(found.wrapped, format!("{attempt}: {error}"));
    }

    #[test]
    fn what_is_missing_is_said_as_kubernetes_does() {
        check(
            json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 5}}}),
            "FailedGetResourceMetric",
            "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)",
            "failed to get cpu resource metric value",
        );
        check(
            json!({"type": "ContainerResource", "containerResource": {"name": "memory", "container": "x", "target": {"type": "AverageValue", "averageValue": "5"}}}),
            "FailedGetContainerResourceMetric",
            "failed to get memory usage: unable to get metrics for resource memory: unable to fetch metrics from resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)",
            "failed to get x container metric value",
        );
        check(
            json!({"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "5"}}}),
            "FailedGetPodsMetric",
            "unable to get metric rps: unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered",
            "failed to get pods metric value",
        );
        check(
            json!({"type": "Object", "object": {"describedObject": {"kind": "Service", "name": "s"}, "metric": {"name": "rps"}, "target": {"type": "Value", "value": "5"}}}),
            "FailedGetObjectMetric",
            "unable to get metric rps: Service on a s/unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered",
            "failed to get object metric value",
        );
        check(
            json!({"type": "External", "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "5"}}}),
            "FailedGetExternalMetric",
            "unable to get external metric a/q/nil: unable to fetch metrics from external metrics API: the server could not find the requested resource (get q.external.metrics.k8s.io)",
            "failed to get q external metric value: failed to get external metric q",
        );
    }
}
