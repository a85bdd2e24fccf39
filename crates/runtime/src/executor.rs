//! Whether an account may apply an object, where objects are applied in the name of somebody.

use bellwether_apply::Ownership;
use bellwether_apply::executor::{Account, denial, grants_rights};
use bellwether_apply::pass::Object;

use crate::Objects;

/// Why an object is not applied in the name of an executor.
#[derive(Debug)]
pub enum Refusal {
    /// It is not allowed to; asked again after a minute.
    Denied(String),
    /// Nobody could say.
    Unknown(String),
}

/// Asks the cluster whether an account may apply an object.
pub async fn check(
    objects: &Objects,
    account: &Account,
    object: &Object<'_>,
) -> Result<(), Refusal> {
    let (id, resource) = (&object.id, &object.resource);
    let owned = matches!(
        object.target.ownership,
        Ownership::Reference { belongs: true, .. }
    );
    for review in account.reviews(id, &resource.version, owned) {
        match objects.review(&review).await {
            Ok(true) => {}
            Ok(false) => return Err(Refusal::Denied(denial(id, false))),
            Err(error) => return Err(Refusal::Unknown(error.to_string())),
        }
    }
    if !grants_rights(id) {
        return Ok(());
    }
    // Anyone who gives rights must have them: the server knows, and is asked to pretend.
    match objects
        .try_create_as(
            &account.user(),
            resource,
            &id.namespace,
            &object.target.manifest.object,
        )
        .await
    {
        Ok(_) => Ok(()),
        Err(error) if error.is_already_there() => Ok(()),
        Err(error) if error.is_forbidden() => Err(Refusal::Denied(denial(id, true))),
        Err(error) => Err(Refusal::Unknown(error.to_string())),
    }
}
