//! How much may go on at once: a user who asks for too much is refused or waits, and no other user
//! notices.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{Notify, Semaphore};

use crate::access::{Identity, is_master};
use crate::status::ApiError;

/// What one user may have under way at once, and how long the server waits for clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests of one user of a cluster, from their headers to the last byte of the answer.
    pub requests_per_user: usize,
    /// Watches of one user of a cluster. They cost little, so there may be many.
    pub watches_per_user: usize,
    /// Bytes that the server holds for one user of a cluster: bodies of requests that are not
    /// answered, and parts of answers that the client has not taken. At the limit, new requests are
    /// refused, and answers wait until others have been taken.
    pub bytes_per_user: usize,
    /// How long a client may take for its handshake, and for the headers of its first request.
    pub header_time: Duration,
    /// How long a connection may be idle between two requests, until the headers of the next are
    /// complete. Shorter than that of clients, connections would end under their hands.
    pub idle_time: Duration,
    /// How long a client may take to send a body.
    pub body_time: Duration,
    /// How long a request that takes much work may take, with the time until it gets a place.
    pub request_time: Duration,
    /// How long a client may take nothing of what is sent to it before its connection is closed.
    pub stall_time: Duration,
    /// Connections of all clients; more have to wait.
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // As many as kube-apiserver lets all users together have.
            requests_per_user: 600,
            watches_per_user: 10_000,
            // Twenty of the largest bodies, or two thousand frames of answers.
            bytes_per_user: 64 * 1024 * 1024,
            // Both as kube-apiserver. Clients open connections that they need only later.
            header_time: Duration::from_secs(32),
            idle_time: Duration::from_secs(90),
            body_time: Duration::from_mins(1),
            // As kube-apiserver.
            request_time: Duration::from_mins(1),
            stall_time: Duration::from_mins(1),
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
    users: Users,
    /// What is held for all users together.
    total: Gauge,
    /// How many requests of one user may take much work at once.
    turns: usize,
}

type Users = Arc<Mutex<HashMap<User, Weak<Account>>>>;

/// Users of two clusters are different people, whatever their names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct User {
    cluster: String,
    name: String,
}

impl InFlight {
    pub(crate) fn new(limits: Limits, turns: usize) -> Self {
        Self {
            limits,
            users: Arc::default(),
            total: Gauge::default(),
            turns,
        }
    }

    /// What the limits are.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The bytes that are held for all users together.
    pub(crate) fn held_bytes(&self) -> &Gauge {
        &self.total
    }

    /// Lets a request begin, or refuses it until later. Administrators have no limits, so that
    /// they get in when others have gone too far.
    pub(crate) fn admit(
        &self,
        cluster: &str,
        identity: &Identity,
        load: Load,
    ) -> Result<Permit, ApiError> {
        let account = if is_master(identity) {
            Arc::new(Account::new(None, self))
        } else {
            self.account(cluster, identity)
        };
        let limit = match load {
            Load::Request => self.limits.requests_per_user,
            Load::Watch => self.limits.watches_per_user,
        };
        if !account.begin(load, limit) {
            return Err(too_many());
        }
        Ok(Permit { account, load })
    }

    fn account(&self, cluster: &str, identity: &Identity) -> Arc<Account> {
        let user = User {
            cluster: cluster.to_owned(),
            name: identity.user.clone(),
        };
        let mut users = self.users.lock();
        if let Some(known) = users.get(&user).and_then(Weak::upgrade) {
            return known;
        }
        let account = Arc::new(Account::new(Some(user.clone()), self));
        users.insert(user, Arc::downgrade(&account));
        account
    }
}

fn too_many() -> ApiError {
    ApiError::too_many_requests("Too many requests, please try again later.", 1)
}

/// What one user has under way. It lasts as long as anything of it does.
#[derive(Debug)]
pub(crate) struct Account {
    /// Whose it is; nobody's if it has no limits.
    user: Option<User>,
    users: Users,
    requests: AtomicUsize,
    watches: AtomicUsize,
    bytes: AtomicUsize,
    most_bytes: usize,
    total: Gauge,
    /// Wakes an answer that waits for others to be taken.
    freed: Arc<Notify>,
    /// For requests that take much work.
    turns: Arc<Semaphore>,
}

impl Account {
    fn new(user: Option<User>, in_flight: &InFlight) -> Self {
        Self {
            most_bytes: match user {
                Some(_) => in_flight.limits.bytes_per_user,
                None => usize::MAX,
            },
            user,
            users: Arc::clone(&in_flight.users),
            requests: AtomicUsize::new(0),
            watches: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            total: in_flight.total.clone(),
            freed: Arc::default(),
            turns: Arc::new(Semaphore::new(in_flight.turns)),
        }
    }

    fn count(&self, load: Load) -> &AtomicUsize {
        match load {
            Load::Request => &self.requests,
            Load::Watch => &self.watches,
        }
    }

    fn begin(&self, load: Load, limit: usize) -> bool {
        let limit = if self.user.is_some() {
            limit
        } else {
            usize::MAX
        };
        !self.is_full() && add_below(self.count(load), 1, limit)
    }

    /// Turns for requests that take much work.
    pub(crate) fn turns(&self) -> Arc<Semaphore> {
        Arc::clone(&self.turns)
    }

    /// True if no more may be held.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Acquire) >= self.most_bytes
    }

    /// What announces that bytes were freed, once per piece.
    pub(crate) fn freed(&self) -> Arc<Notify> {
        Arc::clone(&self.freed)
    }

    /// Counts bytes that are held, even beyond the limit: who asks first waits until there is room.
    pub(crate) fn hold(self: &Arc<Self>, bytes: usize) -> Hold {
        let mut hold = Hold {
            account: Arc::clone(self),
            bytes: 0,
        };
        hold.set(bytes);
        hold
    }

    /// A frame whose bytes are counted until the last part of it has been sent.
    pub(crate) fn frame(self: &Arc<Self>, frame: Vec<u8>) -> Bytes {
        let hold = self.hold(frame.len());
        Bytes::from_owner(Frame { frame, _hold: hold })
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let Some(user) = &self.user else { return };
        let mut users = self.users.lock();
        // Another account of the same user may have begun meanwhile.
        if users.get(user).is_some_and(|kept| kept.strong_count() == 0) {
            users.remove(user);
        }
    }
}

/// Adds to a count unless that would exceed a limit.
fn add_below(count: &AtomicUsize, more: usize, limit: usize) -> bool {
    let add = |count: usize| count.checked_add(more).filter(|sum| *sum <= limit);
    count
        .fetch_update(Ordering::AcqRel, Ordering::Acquire, add)
        .is_ok()
}

/// As a gauge counts.
fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

struct Frame {
    frame: Vec<u8>,
    _hold: Hold,
}

impl AsRef<[u8]> for Frame {
    fn as_ref(&self) -> &[u8] {
        &self.frame
    }
}

/// Bytes that are held for a user; they are free when this is dropped.
#[derive(Debug)]
pub(crate) struct Hold {
    account: Arc<Account>,
    bytes: usize,
}

impl Hold {
    /// Holds more, or refuses: for what comes in.
    pub(crate) fn grow(&mut self, more: usize) -> Result<(), ApiError> {
        let account = &self.account;
        if !add_below(&account.bytes, more, account.most_bytes) {
            return Err(too_many());
        }
        account.total.inc_by(signed(more));
        self.bytes += more;
        Ok(())
    }

    /// Holds this many bytes from now on.
    pub(crate) fn set(&mut self, bytes: usize) {
        let account = &self.account;
        if bytes >= self.bytes {
            let more = bytes - self.bytes;
            account.bytes.fetch_add(more, Ordering::AcqRel);
            account.total.inc_by(signed(more));
        } else {
            let less = self.bytes - bytes;
            account.bytes.fetch_sub(less, Ordering::AcqRel);
            account.total.dec_by(signed(less));
            account.freed.notify_one();
        }
        self.bytes = bytes;
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// One request that is under way; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    account: Arc<Account>,
    load: Load,
}

impl Permit {
    /// What is counted for the user.
    pub(crate) fn account(&self) -> &Arc<Account> {
        &self.account
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.account.count(self.load).fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_waits_for_their_own_requests_only() {
        let limits = Limits {
            requests_per_user: 2,
            watches_per_user: 1,
            ..Limits::default()
        };
        let in_flight = InFlight::new(limits, 1);
        let (ann, bob) = (
            Identity::authenticated("ann", []),
            Identity::authenticated("bob", []),
        );
        let admit = |identity: &Identity, load| in_flight.admit("hub", identity, load);
        let first = admit(&ann, Load::Request).unwrap();
        let _second = admit(&ann, Load::Request).unwrap();
        let refused = admit(&ann, Load::Request).unwrap_err();
        assert_eq!((refused.code, &*refused.reason), (429, "TooManyRequests"));
        let _watch = admit(&ann, Load::Watch).unwrap();
        assert!(admit(&ann, Load::Watch).is_err());
        assert!(admit(&bob, Load::Request).is_ok());
        assert!(in_flight.admit("cluster1", &ann, Load::Request).is_ok());
        drop(first);
        assert!(admit(&ann, Load::Request).is_ok());
    }

    #[test]
    fn a_user_is_refused_while_too_much_is_held_for_them() {
        let limits = Limits {
            bytes_per_user: 100,
            ..Limits::default()
        };
        let in_flight = InFlight::new(limits, 1);
        let ann = Identity::authenticated("ann", []);
        let admit = |identity: &Identity| in_flight.admit("hub", identity, Load::Request);
        let permit = admit(&ann).unwrap();
        let mut body = permit.account().hold(0);
        body.grow(60).unwrap();
        assert_eq!(body.grow(60).unwrap_err().code, 429);
        // A frame that was being written may exceed the limit; the next one waits.
        let frame = permit.account().frame(vec![0; 50]);
        assert!(permit.account().is_full());
        assert_eq!(in_flight.held_bytes().get(), 110);
        assert_eq!(admit(&ann).unwrap_err().code, 429);
        assert!(admit(&Identity::authenticated("bob", [])).is_ok());
        assert!(admit(&Identity::administrator("root")).is_ok());
        // A part of a frame keeps all of it.
        let part = frame.slice(1..2);
        drop((frame, body));
        assert_eq!(in_flight.held_bytes().get(), 50);
        assert!(admit(&ann).is_ok());
        drop(part);
        assert_eq!(in_flight.held_bytes().get(), 0);
    }

    #[test]
    fn nothing_is_kept_of_those_who_are_done() {
        let in_flight = InFlight::new(Limits::default(), 1);
        let ann = Identity::authenticated("ann", []);
        let permit = in_flight.admit("hub", &ann, Load::Request).unwrap();
        let frame = permit.account().frame(vec![0; 10]);
        drop(permit);
        assert_eq!(in_flight.users.lock().len(), 1);
        drop(frame);
        assert!(in_flight.users.lock().is_empty());
        let root = Identity::administrator("root");
        let _permit = in_flight.admit("hub", &root, Load::Watch).unwrap();
        assert!(in_flight.users.lock().is_empty());
    }
}
