//! Keeps the compiled role bindings of a cluster in step with its stored ones.

use std::sync::Arc;

use bellwether_store::{Keyspace, Range, Watch};
use parking_lot::Mutex;

use super::identity::Identity;
use super::rbac::{Attributes, Decision, Rbac};
use crate::object::StoredObject;
use crate::watching::try_next;

const PREFIX: &str = "rbac.authorization.k8s.io/";

/// Answers "may they?" from memory; rebuilt when a role or a binding has changed.
pub(crate) struct Authorizer {
    keyspace: Keyspace<StoredObject>,
    state: Mutex<Option<State>>,
}

struct State {
    rbac: Arc<Rbac>,
    /// Tells whether `rbac` is still true.
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
    pub(crate) fn decide(&self, identity: &Identity, wanted: &Attributes<'_>) -> Decision {
        self.current().decide(identity, wanted)
    }

    /// The compiled bindings of this moment.
    pub(crate) fn current(&self) -> Arc<Rbac> {
        let mut state = self.state.lock();
        if let Some(state) = &mut *state
            && try_next(&mut state.changes).is_none()
        {
            return state.rbac.clone();
        }
        let (rbac, watch) = self.load();
        let rbac = Arc::new(rbac);
        *state = watch.map(|changes| State {
            rbac: rbac.clone(),
            changes,
        });
        rbac
    }

    fn load(&self) -> (Rbac, Option<Watch<StoredObject>>) {
        let mut rbac = Rbac::default();
        let range = Range {
            prefix: PREFIX,
            start_after: None,
            limit: None,
            at: None,
        };
        let Ok(page) = self.keyspace.range(range) else {
            return (rbac, None);
        };
        for entry in &page.entries {
            let plural = entry
                .key
                .strip_prefix(PREFIX)
                .and_then(|rest| rest.split('/').next());
            rbac.add(plural.unwrap_or_default(), &entry.value.to_untyped_value());
        }
        (rbac, self.keyspace.watch(PREFIX, page.revision).ok())
    }
}
