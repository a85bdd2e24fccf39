//! Rules that the program brings along: any [`Admission`] that the server was given.

use std::cell::RefCell;
use std::sync::Arc;

use bellwether_api::admission::{
    Admission, Attributes, Denial, Facts, ObjectId, Operation, Review, rules_match,
};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::context::RequestContext;
use crate::metadata;
use crate::resource::{Part, key_prefix};
use crate::status::ApiError;

/// Lets the rules complete an object; `old` is what it was.
pub(super) fn mutate(
    cx: &RequestContext,
    part: Part,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    each(cx, part, operation(old), old, |admission, review| {
        if !rules_match(admission.mutations(), review) {
            return Ok(());
        }
        let done = admission.mutate(review, object);
        done.map_err(|denial| refusal(cx, object, denial))
    })
}

/// Lets the rules check an object that is complete; `old` is what it was.
pub(super) fn validate(
    cx: &RequestContext,
    part: Part,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    each(cx, part, operation(old), old, |admission, review| {
        if !rules_match(admission.rules(), review) {
            return Ok(());
        }
        let done = admission.validate(review, object);
        done.map_err(|denial| refusal(cx, object, denial))
    })
}

/// True if rules complete or check updates of this part of an object.
pub(super) fn is_concerned(cx: &RequestContext, part: Part) -> bool {
    let mut is_concerned = false;
    let asked = each(cx, part, Operation::Update, None, |admission, review| {
        is_concerned |= rules_match(admission.mutations(), review);
        is_concerned |= rules_match(admission.rules(), review);
        Ok(())
    });
    is_concerned || asked.is_err()
}

/// Lets the rules check a deletion.
pub(super) fn validate_deletion(cx: &RequestContext, old: &Value) -> Result<(), ApiError> {
    let operation = Operation::Delete;
    each(cx, Part::Main, operation, Some(old), |admission, review| {
        if !rules_match(admission.rules(), review) {
            return Ok(());
        }
        let done = admission.validate(review, old);
        done.map_err(|denial| refusal(cx, old, denial))
    })
}

fn operation(old: Option<&Value>) -> Operation {
    match old {
        None => Operation::Create,
        Some(_) => Operation::Update,
    }
}

/// Calls every admission.
fn each(
    cx: &RequestContext,
    part: Part,
    operation: Operation,
    old: Option<&Value>,
    mut call: impl FnMut(&dyn Admission, &Review<'_>) -> Result<(), ApiError>,
) -> Result<(), ApiError> {
    let admissions: &Arc<[Arc<dyn Admission>]> = cx.cluster.admissions();
    // Our own controllers change what they have to.
    if admissions.is_empty() || part == Part::Whole {
        return Ok(());
    }
    let facts = StoredFacts(cx);
    let review = Review {
        operation,
        group: &cx.resource.group,
        resource: &cx.resource.plural,
        subresource: part.subresource(),
        namespace: cx.namespace(),
        old,
        user: &cx.identity.user,
        groups: &cx.identity.groups,
        is_strict: cx.query.get("fieldValidation") == Some("Strict"),
        now: cx.now,
        facts: &facts,
        warnings: RefCell::default(),
    };
    for admission in admissions.iter() {
        call(&**admission, &review)?;
    }
    for warning in review.warnings.into_inner() {
        cx.warn(warning);
    }
    Ok(())
}

fn refusal(cx: &RequestContext, object: &Value, denial: Denial) -> ApiError {
    match denial {
        Denial::BadRequest(message) => ApiError::bad_request(message),
        Denial::Forbidden(why) => {
            let name = metadata::text(object, "name");
            ApiError::forbidden(cx.resource.subject(), name, &why)
        }
    }
}

/// An object of a cluster in the form in which it is stored.
pub(crate) fn stored(cluster: &Cluster, id: &ObjectId<'_>) -> Option<Value> {
    let prefix = key_prefix(id.group, id.resource);
    let key = match id.namespace {
        "" => format!("{prefix}{}", id.name),
        namespace => format!("{prefix}{namespace}/{}", id.name),
    };
    let entry = cluster.keyspace().get(&key)?;
    Some(entry.value.to_untyped_value())
}

/// Answers from the store and the roles of the cluster that is written to.
#[derive(Debug)]
struct StoredFacts<'a>(&'a RequestContext);

impl Facts for StoredFacts<'_> {
    fn allows(&self, wanted: &Attributes<'_>) -> bool {
        let cx = self.0;
        cx.cluster.authorizer().allows(&cx.identity, wanted)
    }

    fn get(&self, id: &ObjectId<'_>) -> Option<Value> {
        stored(&self.0.cluster, id)
    }
}
