//! Keeps the compiled role bindings of a cluster in step with its stored ones.

use bellwether_api::admission::Attributes;
use bellwether_store::{Keyspace, Range, Watch};
use parking_lot::Mutex;

use super::identity::Identity;
use super::rbac::{Decision, Rbac, is_master};
use crate::object::StoredObject;
use crate::watching::try_next;

const PREFIX: &str = "rbac.authorization.k8s.io/";

/// Answers "may they?" from memory. Changes of roles and bindings are taken in before each answer.
pub(crate) struct Authorizer {
    keyspace: Keyspace<StoredObject>,
    state: Mutex<Option<State>>,
}

struct State {
    rbac: Rbac,
    /// What has happened since.
    changes: Watch<StoredObject>,
}

impl std::fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authorizer").finish_non_exhaustive()
    }
}

impl Authorizer {
    pub(crate) fn new(keyspace: Keyspace<StoredObject>) -> Self {
        Self {
            keyspace,
            state: Mutex::new(None),
        }
    }

    /// Whether `identity` may do what `wanted` says, by the bindings of this moment.
    pub(crate) fn allows(&self, identity: &Identity, wanted: &Attributes<'_>) -> bool {
        // Needs no roles, and is by far the most frequent question of our own controllers.
        is_master(identity) || self.with(|rbac| rbac.allows(identity, wanted))
    }

    /// The same, with the reason.
    pub(crate) fn decide(&self, identity: &Identity, wanted: &Attributes<'_>) -> Decision {
        self.with(|rbac| rbac.decide(identity, wanted))
    }

    /// Asks the bindings of this moment.
    pub(crate) fn with<T>(&self, ask: impl FnOnce(&Rbac) -> T) -> T {
        let mut state = self.state.lock();
        if let Some(known) = &mut *state
            && known.catch_up()
        {
            return ask(&known.rbac);
        }
        let (rbac, watch) = self.load();
        match watch {
            Some(changes) => ask(&state.insert(State { rbac, changes }).rbac),
            None => ask(&rbac),
        }
    }

    fn load(&self) -> (Rbac, Option<Watch<StoredObject>>) {
        let mut rbac = Rbac::default();
        let range = Range::prefix(PREFIX);
        let Ok(page) = self.keyspace.range(range) else {
            return (rbac, None);
        };
        for entry in &page.entries {
            take_in(&mut rbac, &entry.key, Some(&entry.value));
        }
        (rbac, self.keyspace.watch(PREFIX, page.revision).ok())
    }
}

impl State {
    /// Takes in what has happened; false if too much has.
    fn catch_up(&mut self) -> bool {
        while let Some(event) = try_next(&mut self.changes) {
            let Ok(event) = event else { return false };
            let now = (!event.is_delete()).then(|| event.value());
            take_in(&mut self.rbac, &event.key, now.map(|object| &**object));
        }
        true
    }
}

/// A key is `GROUP/PLURAL/NAME` or `GROUP/PLURAL/NAMESPACE/NAME`.
fn take_in(rbac: &mut Rbac, key: &str, object: Option<&StoredObject>) {
    let mut parts = key.strip_prefix(PREFIX).unwrap_or_default().split('/');
    let (Some(plural), Some(first)) = (parts.next(), parts.next()) else {
        return;
    };
    let (namespace, name) = match parts.next() {
        Some(name) => (first, name),
        None => ("", first),
    };
    let object = object.map(StoredObject::to_untyped_value);
    rbac.set(plural, namespace, name, object.as_ref());
}
