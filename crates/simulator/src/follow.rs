//! Following all simulated clusters, in one task.
//!
//! A cluster where nothing has happened for a while, and where nothing can happen by itself, is put to
//! rest: what is known of it is forgotten, and read again when something happens.

use std::sync::Arc;
use std::time::Duration;

use bellwether_apiserver::{Change, Changes};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use crate::member::{Member, kind_of};

/// How often clusters that are awake are asked whether they could rest: of a thousand that begin
/// together, few are to be awake together.
const INTERVAL: Duration = Duration::from_millis(250);

/// Follows all clusters that it is given.
pub(crate) async fn follow_all(mut arrivals: mpsc::UnboundedReceiver<(Arc<Member>, Changes)>) {
    let mut waiting = FuturesUnordered::new();
    let mut awake: Vec<Arc<Member>> = Vec::new();
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let (member, mut changes, change) = tokio::select! {
            arrival = arrivals.recv() => {
                let Some((member, changes)) = arrival else { return };
                waiting.push(next(member, changes));
                continue;
            }
            Some(news) = waiting.next() => news,
            _ = ticks.tick(), if !awake.is_empty() => {
                awake.retain(|member| !member.try_to_rest());
                awake.shrink_to_fit();
                continue;
            }
        };
        // Without a change the cluster is closed.
        let Some(change) = change else { continue };
        let was_at_rest = member.is_at_rest();
        take_in(&member, &mut changes, change);
        while let Some(change) = changes.try_next() {
            take_in(&member, &mut changes, change);
        }
        if was_at_rest && !member.is_at_rest() {
            awake.push(Arc::clone(&member));
        }
        waiting.push(next(member, changes));
    }
}

async fn next(member: Arc<Member>, mut changes: Changes) -> (Arc<Member>, Changes, Option<Change>) {
    let change = changes.next().await;
    (member, changes, change)
}

/// Takes in a change. A cluster at rest is woken by those that concern it, and then read again.
fn take_in(member: &Member, changes: &mut Changes, change: Change) {
    if member.is_at_rest()
        && let Change::Put(subject, _) | Change::Gone(subject) = &change
    {
        if kind_of(subject).is_some() {
            changes.begin_anew();
        }
        return;
    }
    member.take_in_change(change);
}
