//! Writing decisions so that no reader ever misses a cluster.
//!
//! Decisions of one placement are spread over several objects, which are written one by one. If a
//! cluster moved from one to another by removal first, whoever reads in between would take it
//! for given up and delete its workload. So objects grow before they shrink.

use std::collections::{HashMap, HashSet};

use super::group::DecisionObject;

/// One thing to write, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// An object that is not there yet.
    Create(DecisionObject),
    /// What an object is to be instead.
    Update(DecisionObject),
    /// The name of an object to delete.
    Delete(String),
}

/// What to write, in this order, to get from the objects there are to those there should be.
/// After each of the writes every cluster that was and will be chosen is in some object.
pub fn transition(current: &[DecisionObject], desired: &[DecisionObject]) -> Vec<Write> {
    let now: HashMap<&str, &DecisionObject> = current
        .iter()
        .map(|object| (object.name.as_str(), object))
        .collect();
    let staying: HashSet<&str> = desired
        .iter()
        .flat_map(|object| &object.decisions)
        .map(|decision| &*decision.cluster)
        .collect();
    let mut writes = Vec::new();
    let mut shrinks = Vec::new();
    for object in desired {
        let Some(before) = now.get(object.name.as_str()) else {
            writes.push(Write::Create(object.clone()));
            continue;
        };
        if *before == object {
            continue;
        }
        let own: HashSet<&str> = object.decisions.iter().map(|it| &*it.cluster).collect();
        let had: HashSet<&str> = before.decisions.iter().map(|it| &*it.cluster).collect();
        let mut grown = object.clone();
        let moving = before.decisions.iter().filter(|decision| {
            staying.contains(&*decision.cluster) && !own.contains(&*decision.cluster)
        });
        grown.decisions.extend(moving.cloned());
        if grown == *object {
            writes.push(Write::Update(grown));
            continue;
        }
        if !own.is_subset(&had) {
            writes.push(Write::Update(grown));
        }
        shrinks.push(Write::Update(object.clone()));
    }
    writes.append(&mut shrinks);
    let kept: HashSet<&str> = desired.iter().map(|object| object.name.as_str()).collect();
    let surplus = current.iter().filter(|it| !kept.contains(it.name.as_str()));
    writes.extend(surplus.map(|object| Write::Delete(object.name.clone())));
    writes
}
