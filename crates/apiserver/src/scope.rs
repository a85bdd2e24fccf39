//! What the agents of a fleet, and those who ask to join it, see of kinds that they share with others.
//!
//! Agents written for Open Cluster Management list and watch certificate requests, and count those of
//! their cluster; roles cannot say "only one's own". So everybody else's are left out here: a member
//! sees the requests that it made, and a bootstrap token for one cluster sees that cluster. A request
//! that somebody else makes in a member's name neither shows up nor counts.

use bellwether_api::Kind as _;
use bellwether_api::cluster::party::Party;
use bellwether_api::cluster::{GROUP, ManagedCluster};

use crate::admission;
use crate::context::RequestContext;
use crate::request::Verb;
use crate::status::ApiError;

/// Leaves out of an answer what the sender is not to see.
pub(crate) fn narrow(cx: &mut RequestContext) -> Result<(), ApiError> {
    let Some((field, value)) = visible(cx) else {
        return Ok(());
    };
    match cx.verb {
        Verb::List | Verb::Watch | Verb::DeleteCollection => {
            cx.query.select(field, &value);
            Ok(())
        }
        Verb::Get => {
            let is_visible = match field {
                NAME => cx.name.as_deref() == Some(&*value),
                _ => requester(cx)? == Some(value),
            };
            // As if it were not there: that somebody has asked is nobody else's business.
            let name = cx.name.as_deref().unwrap_or_default();
            is_visible
                .then_some(())
                .ok_or_else(|| ApiError::not_found(cx.resource.subject(), name))
        }
        _ => Ok(()),
    }
}

const NAME: &str = "metadata.name";
const REQUESTER: &str = "spec.username";

/// The field and its value that objects have which the sender sees; everything if none.
fn visible(cx: &RequestContext) -> Option<(&'static str, String)> {
    match (&*cx.resource.group, &*cx.resource.plural) {
        ("certificates.k8s.io", "certificatesigningrequests") => {
            party(cx)?;
            Some((REQUESTER, cx.identity.user.clone()))
        }
        (GROUP, plural) if plural == ManagedCluster::NAMES.plural => {
            match party(cx)? {
                Party::Joiner(terms) => terms.cluster.map(|cluster| (NAME, cluster)),
                // Roles name the one cluster of an agent.
                Party::Agent { .. } => None,
            }
        }
        _ => None,
    }
}

/// Who made the certificate request in the path.
fn requester(cx: &RequestContext) -> Result<Option<String>, ApiError> {
    let entry = cx.cluster.keyspace().get(&cx.key()?);
    let object = entry.map(|entry| entry.value.to_untyped_value());
    let user = object.and_then(|object| object["spec"]["username"].as_str().map(str::to_owned));
    Ok(user)
}

/// Who acts for one cluster of the fleet, if the sender does.
fn party(cx: &RequestContext) -> Option<Party> {
    let identity = &cx.identity;
    Party::of(&identity.user, &identity.groups, |id| {
        admission::stored(&cx.cluster, id)
    })
}
