//! Certificates for agents: when they are approved without a person.
//!
//! There are three cases. An agent may renew its own certificate while its cluster is accepted. A
//! bootstrap token that was made for one cluster admits that cluster, once. Clusters of users that the hub
//! was started with are accepted.

use std::collections::BTreeSet;
use std::sync::Arc;

use bellwether_api::Kind as _;
use bellwether_api::cluster::names::{annotation, label, registration};
use bellwether_api::cluster::{GROUP, ManagedCluster};
use bellwether_runtime::{
    Cache, Clock, Controller, Next, ObjectKey, Reconcile, Selection, created_by, unless_gone,
    written_by,
};
use futures::FutureExt as _;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Secret;
use kube::api::Patch;
use kube::{Api, Client, Resource as _, ResourceExt as _};
use serde_json::json;

use super::decide;
use super::kept::Request;
pub use super::request::{AgentRequest, is_pending, read};
use crate::hub::Hub;
use crate::registry::{Entry, READ, Rule};

/// Why a request is approved, for its condition.
const RENEWAL: &str = "Auto approving Managed cluster agent certificate after SubjectAccessReview.";
const AUTO_APPROVED: &str = "Clusters of the requester are accepted automatically.";
const TOKEN: &str = "The bootstrap token was made for this cluster.";

/// How soon to look for a cluster that nobody has made known yet, at first and at last.
const FIRST_LOOK: jiff::SignedDuration = jiff::SignedDuration::from_secs(1);
const LAST_LOOK: jiff::SignedDuration = jiff::SignedDuration::from_mins(1);

/// The controller of certificate requests.
pub const ENTRY: Entry = Entry {
    name: "certificate-approval",
    about: "approves certificate requests of agents that may have them",
    watches: &[],
    rights: &[
        Rule {
            group: "certificates.k8s.io",
            resources: &["certificatesigningrequests"],
            verbs: READ,
        },
        Rule {
            group: "certificates.k8s.io",
            resources: &["certificatesigningrequests/approval"],
            verbs: &["patch"],
        },
        Rule {
            group: "certificates.k8s.io",
            resources: &["signers"],
            verbs: &["approve"],
        },
        Rule {
            group: "authorization.k8s.io",
            resources: &["subjectaccessreviews"],
            verbs: &["create"],
        },
        Rule {
            group: GROUP,
            resources: &["managedclusters"],
            verbs: &["get", "patch"],
        },
        Rule {
            group: registration::REGISTER_GROUP,
            resources: &["managedclusters/accept"],
            verbs: &["update"],
        },
    ],
    run: |hub, options| run(hub, options.auto_approved.clone()).boxed(),
};

/// Decides about certificate requests of agents, until it is dropped. `auto_approved` are users whose
/// clusters are accepted without a person.
pub async fn run(hub: Hub, auto_approved: BTreeSet<String>) {
    let requests: Cache<Request> = Cache::follow(
        &hub.client,
        CertificateSigningRequest::url_path(&(), None),
        Selection::labels(label::CLUSTER_NAME),
        |_| {},
    );
    let approver = Approver {
        client: hub.client.clone(),
        clock: hub.clock.clone(),
        requests: requests.clone(),
        auto_approved,
    };
    Controller::new(ENTRY.name, &hub.clock, &hub.metrics)
        .on(&requests, |change| {
            let is_pending = change.new.is_some_and(|request| request.pending.is_some());
            is_pending.then(|| change.key.clone())
        })
        .workers(8)
        .run(Arc::new(approver))
        .await;
}

struct Approver {
    client: Client,
    clock: Clock,
    requests: Cache<Request>,
    auto_approved: BTreeSet<String>,
}

impl Reconcile for Approver {
    type Key = ObjectKey;
    type Error = kube::Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, kube::Error> {
        let known = self.requests.get(key);
        let Some(request) = known.as_ref().and_then(|known| known.pending.as_deref()) else {
            return Ok(None);
        };
        let wanted = match read(request) {
            Ok(wanted) => wanted,
            Err(problem) => {
                tracing::info!(name = %key, problem, "certificate request needs manual approval");
                return Ok(None);
            }
        };
        let sender = request.spec.username.clone().unwrap_or_default();
        let token = self.token_for(&sender, &wanted.cluster).await?;
        let reason = if sender == wanted.user {
            let may = self.may_renew(request, &wanted.cluster).await?;
            may.then_some(RENEWAL)
        } else if self.auto_approved.contains(&sender) {
            Some(AUTO_APPROVED)
        } else {
            token.as_ref().map(|_| TOKEN)
        };
        let Some(reason) = reason else {
            return Ok(None);
        };
        let now = self.clock.now();
        if reason != RENEWAL {
            match accept(&self.client, &wanted.cluster, now).await? {
                Acceptance::Accepted => {}
                Acceptance::Denied => return Ok(None),
                Acceptance::Unknown => return Ok(next_check(request, now)),
            }
        }
        approve(&self.client, request, reason, now).await?;
        if let Some(token) = token {
            // It has served; anyone who finds it later gets nothing by it. The agent still waits for
            // its certificate under the token's name, so that it expires soon instead of now.
            self.expire(&token).await?;
        }
        Ok(None)
    }
}

impl Approver {
    /// Whether the sender may renew the certificates of a cluster.
    async fn may_renew(
        &self,
        request: &CertificateSigningRequest,
        cluster: &str,
    ) -> Result<bool, kube::Error> {
        let spec = &request.spec;
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: spec.username.clone(),
                groups: spec.groups.clone(),
                uid: spec.uid.clone(),
                extra: spec.extra.clone(),
                resource_attributes: Some(ResourceAttributes {
                    verb: Some("renew".to_owned()),
                    group: Some(registration::REGISTER_GROUP.to_owned()),
                    resource: Some(ManagedCluster::NAMES.plural.to_owned()),
                    subresource: Some("clientcertificates".to_owned()),
                    name: Some(cluster.to_owned()),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let answer = reviews.create(&created_by(), &review).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }

    /// The Secret of the token that a sender showed, if it was made for the cluster.
    async fn token_for(&self, sender: &str, cluster: &str) -> Result<Option<Secret>, kube::Error> {
        let Some(id) = sender.strip_prefix(registration::TOKEN_USER_PREFIX) else {
            return Ok(None);
        };
        let secrets: Api<Secret> =
            Api::namespaced(self.client.clone(), registration::TOKEN_NAMESPACE);
        let secret = secrets
            .get_opt(&format!("{}{id}", registration::TOKEN_SECRET_PREFIX))
            .await?;
        Ok(secret.filter(|it| {
            it.labels()
                .get(label::CLUSTER_NAME)
                .is_some_and(|it| it == cluster)
        }))
    }

    /// Lets a token live just long enough for the certificate to be fetched.
    async fn expire(&self, secret: &Secret) -> Result<(), kube::Error> {
        const ENOUGH: jiff::SignedDuration = jiff::SignedDuration::from_mins(5);
        let soon = self
            .clock
            .now()
            .checked_add(ENOUGH)
            .unwrap_or(jiff::Timestamp::MAX);
        if expiration(secret).is_some_and(|known| known <= soon) {
            return Ok(());
        }
        let secrets: Api<Secret> =
            Api::namespaced(self.client.clone(), registration::TOKEN_NAMESPACE);
        let soon = jiff::Timestamp::from_second(soon.as_second()).unwrap_or(soon);
        let patch = json!({"stringData": {"expiration": soon.to_string()}});
        let patched = secrets
            .patch(&secret.name_any(), &written_by(), &Patch::Merge(patch))
            .await;
        unless_gone(patched).map(drop)
    }
}

/// When a token expires by itself.
fn expiration(secret: &Secret) -> Option<jiff::Timestamp> {
    let text = &secret.data.as_ref()?.get("expiration")?.0;
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// When to check again whether the cluster of a request exists: soon at first, and ever later
/// the longer it takes.
fn next_check(request: &CertificateSigningRequest, now: jiff::Timestamp) -> Next {
    let made = request.metadata.creation_timestamp.as_ref();
    let age = made.map_or(jiff::SignedDuration::ZERO, |made| {
        now.duration_since(made.0)
    });
    let wait = (age / 4).clamp(FIRST_LOOK, LAST_LOOK);
    now.checked_add(wait).ok()
}

/// What becomes of a cluster that may be accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Acceptance {
    Accepted,
    /// A person has denied it.
    Denied,
    /// There is no such cluster. Agents make theirs known before they ask, or as soon as they may.
    Unknown,
}

/// Accepts a cluster, unless a person has denied it.
async fn accept(
    client: &Client,
    cluster: &str,
    now: jiff::Timestamp,
) -> Result<Acceptance, kube::Error> {
    let clusters: Api<ManagedCluster> = Api::all(client.clone());
    let Some(live) = clusters.get_opt(cluster).await? else {
        return Ok(Acceptance::Unknown);
    };
    if live.spec.hub_accepts_client {
        return Ok(Acceptance::Accepted);
    }
    let stamp = annotation::AUTOMATICALLY_ACCEPTED_ON;
    if live.annotations().contains_key(stamp) {
        return Ok(Acceptance::Denied);
    }
    let mut patch = decide::acceptance(&live, now);
    patch["metadata"]["resourceVersion"] = json!(live.resource_version());
    clusters
        .patch(cluster, &written_by(), &Patch::Merge(patch))
        .await?;
    Ok(Acceptance::Accepted)
}

/// Approves a request.
pub async fn approve(
    client: &Client,
    request: &CertificateSigningRequest,
    message: &str,
    now: jiff::Timestamp,
) -> Result<(), kube::Error> {
    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    let condition = json!({
        "type": "Approved", "status": "True", "reason": registration::AUTO_APPROVED_REASON,
        "message": message, "lastUpdateTime": now.to_string(),
    });
    let patch = json!({
        "metadata": {"resourceVersion": request.resource_version()},
        "status": {"conditions": [condition]},
    });
    let name = request.name_any();
    let patch = Patch::Merge(patch);
    requests
        .patch_subresource("approval", &name, &written_by(), &patch)
        .await?;
    tracing::info!(name, message, "certificate request approved");
    Ok(())
}
