//! How much may go on at a time: a user who asks for too much is told to wait, and nobody else
//! notices.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::access::{Identity, is_master};
use crate::status::ApiError;

/// What one user may have under way at a time, and how patient the server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests of one user of a cluster, from their headers to the last byte of the answer.
    pub requests_per_user: usize,
    /// Watches of one user of a cluster. They cost little, so there may be many.
    pub watches_per_user: usize,
    /// How long a client may take for its handshake, and for the headers of its first request.
    pub header_time: Duration,
    /// How long a connection may be idle between two requests, until the headers of the next are
    /// complete. Shorter than that of clients, connections would end under their hands.
    pub idle_time: Duration,
    /// How long a client may take to send a body.
    pub body_time: Duration,
    /// Connections of all clients; more have to wait.
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // As many as kube-apiserver lets all users together have.
            requests_per_user: 600,
            watches_per_user: 10_000,
            // Both as kube-apiserver. Clients open connections that they need only later.
            header_time: Duration::from_secs(32),
            idle_time: Duration::from_secs(90),
            body_time: Duration::from_mins(1),
            connections: 10_000,
        }
    }
}

/// What kind of request wants to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Load {
    /// Ends by itself.
    Request,
    /// Lasts.
    Watch,
}

/// Counts what is under way.
#[derive(Debug, Clone)]
pub(crate) struct InFlight {
    limits: Limits,
    users: Arc<Mutex<HashMap<User, Counts>>>,
}

/// Users of two clusters are different people, whatever their names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct User {
    cluster: String,
    name: String,
}

#[derive(Debug, Default)]
struct Counts {
    requests: usize,
    watches: usize,
}

impl Counts {
    fn of(&mut self, load: Load) -> &mut usize {
        match load {
            Load::Request => &mut self.requests,
            Load::Watch => &mut self.watches,
        }
    }
}

impl InFlight {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            users: Arc::default(),
        }
    }

    /// What the limits are.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Lets a request begin, or tells its sender to wait. Administrators are not counted, so that
    /// they get in when others have gone too far.
    pub(crate) fn admit(
        &self,
        cluster: &str,
        identity: &Identity,
        load: Load,
    ) -> Result<Option<Permit>, ApiError> {
        if is_master(identity) {
            return Ok(None);
        }
        let limit = match load {
            Load::Request => self.limits.requests_per_user,
            Load::Watch => self.limits.watches_per_user,
        };
        let user = User {
            cluster: cluster.to_owned(),
            name: identity.user.clone(),
        };
        let mut users = self.users.lock();
        let count = users.entry(user.clone()).or_default().of(load);
        if *count >= limit {
            return Err(ApiError::too_many_requests(
                "Too many requests, please try again later.",
                1,
            ));
        }
        *count += 1;
        drop(users);
        Ok(Some(Permit {
            in_flight: self.clone(),
            user,
            load,
        }))
    }
}

/// One request that is under way; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    in_flight: InFlight,
    user: User,
    load: Load,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut users = self.in_flight.users.lock();
        let Some(counts) = users.get_mut(&self.user) else {
            return;
        };
        let count = counts.of(self.load);
        *count = count.saturating_sub(1);
        if counts.requests == 0 && counts.watches == 0 {
            users.remove(&self.user);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_waits_for_their_own_requests_only() {
        let in_flight = InFlight::new(Limits {
            requests_per_user: 2,
            watches_per_user: 1,
            ..Limits::default()
        });
        let (ann, bob) = (
            Identity::authenticated("ann", []),
            Identity::authenticated("bob", []),
        );
        let admit = |identity: &Identity, load| in_flight.admit("hub", identity, load);
        let first = admit(&ann, Load::Request).unwrap();
        let _second = admit(&ann, Load::Request).unwrap();
        let refused = admit(&ann, Load::Request).unwrap_err();
        assert_eq!((refused.code, refused.reason), (429, "TooManyRequests"));
        let _watch = admit(&ann, Load::Watch).unwrap();
        assert!(admit(&ann, Load::Watch).is_err());
        assert!(admit(&bob, Load::Request).is_ok());
        assert!(in_flight.admit("cluster1", &ann, Load::Request).is_ok());
        drop(first);
        assert!(admit(&ann, Load::Request).is_ok());
    }

    #[test]
    fn nothing_is_kept_of_those_who_are_done() {
        let in_flight = InFlight::new(Limits::default());
        let ann = Identity::authenticated("ann", []);
        drop(in_flight.admit("hub", &ann, Load::Request).unwrap());
        assert!(in_flight.users.lock().is_empty());
        let root = Identity::administrator("root");
        assert!(
            in_flight
                .admit("hub", &root, Load::Watch)
                .unwrap()
                .is_none()
        );
    }
}
