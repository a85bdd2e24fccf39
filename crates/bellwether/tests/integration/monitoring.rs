//! Alerts and dashboards speak of metrics that there are.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;

use bellwether_json::yaml::from_yaml;
use regex::Regex;
use serde_json::Value;

use crate::fleet::{Fleet, root};

/// Names of our metrics in a text, without the endings of histograms and counters.
fn names(text: &str) -> BTreeSet<String> {
    let name = Regex::new("bellwether_[a-z]+_[a-z_]+").unwrap();
    let found = name.find_iter(text).map(|found| {
        let name = found.as_str();
        let ends = ["_total", "_bucket", "_sum", "_count"];
        let end = ends.iter().find(|end| name.ends_with(*end));
        end.map_or(name, |end| name.trim_end_matches(end))
            .to_owned()
    });
    found.collect()
}

#[test]
fn alerts_and_dashboard_name_metrics_of_hub_or_agent() {
    let read = |name: &str| std::fs::read_to_string(root().join("deploy/monitoring").join(name));
    let (alerts, dashboard) = (
        read("alerts.yaml").unwrap(),
        read("dashboard.json").unwrap(),
    );
    let rules = &from_yaml(&alerts).unwrap()[0];
    assert_eq!(rules["kind"], "PrometheusRule");
    let panels: Value = serde_json::from_str(&dashboard).unwrap();
    assert!(panels["panels"].as_array().unwrap().len() > 5);
    // The help of every metric is served from the start on.
    let fleet = Fleet::start_with(&["--clusters", "1"]);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let served = runtime.unwrap().block_on(async {
        let request = http::Request::get("/metrics").body(Vec::new()).unwrap();
        fleet.client().await.request_text(request).await.unwrap()
    });
    let known = names(&served);
    let missing: Vec<String> = names(&format!("{alerts}{dashboard}"))
        .into_iter()
        // Only served with --webhook-listen.
        .filter(|name| name != "bellwether_webhook_reviews" && !known.contains(name))
        .collect();
    assert!(missing.is_empty(), "{missing:?} are not among {known:?}");
}
