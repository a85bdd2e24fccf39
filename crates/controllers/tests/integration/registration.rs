//! Membership on an embedded hub: joining, heartbeats, renewing, leaving; and that a member can
//! do nothing to another, tried with its real credentials.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::common;

mod joining;
mod klusterlet;
mod living;
mod rights;
mod silence;

use bellwether_api::cluster::ManagedCluster;
use common::{Running, World};
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::ListParams;

const AVAILABLE: &str = "ManagedClusterConditionAvailable";
const JOINED: &str = "ManagedClusterJoined";

fn taints(cluster: &ManagedCluster) -> Vec<&str> {
    cluster
        .spec
        .taints
        .iter()
        .map(|it| it.key.as_str())
        .collect()
}

/// A member that has joined by a token of its own.
async fn joined(world: &World, name: &str) -> Running {
    let token = world.token(Some(name)).await;
    let running = world.member(name, &token).await.start();
    world.until_condition(name, AVAILABLE, "True").await;
    running
}

/// The reasons of events about clusters, in the order in which they were told.
async fn reasons(world: &World) -> Vec<String> {
    let events: Api<Event> = Api::namespaced(world.client.clone(), "default");
    let mut list = events.list(&ListParams::default()).await.unwrap().items;
    list.retain(|it| it.involved_object.kind.as_deref() == Some("ManagedCluster"));
    list.sort_by_key(|it| it.first_timestamp.as_ref().map(|it| it.0));
    list.into_iter().filter_map(|it| it.reason).collect()
}
