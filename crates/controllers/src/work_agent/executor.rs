//! Whether the executor of a work may apply an object.

use bellwether_apply::Ownership;
use bellwether_apply::pass::Object;
use bellwether_runtime::Objects;
use bellwether_work::executor::{Account, denial, grants_rights};
use jiff::Timestamp;

/// Why an object is not applied in the name of an executor.
pub(crate) enum Refusal {
    /// It is not allowed to; asked again after a minute.
    Denied(String),
    /// Nobody could say.
    Unknown(String),
}

/// What an executor was last found to be allowed to do with one object.
#[derive(Debug)]
pub(super) struct Grant {
    /// The generation of the work that was asked about; another may have another executor.
    pub(super) generation: i64,
    /// How often rights had changed when it was asked.
    pub(super) rights: u64,
    /// When to ask again, and what is said until then, if it is not allowed.
    pub(super) denied: Option<(Timestamp, String)>,
}

/// Asks the member whether an account may apply an object.
pub(crate) async fn check(
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
