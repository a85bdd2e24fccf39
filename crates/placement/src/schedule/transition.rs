//! Writing decisions so that no reader ever misses a cluster, or finds it in a wrong group.
//!
//! Decisions of one placement are spread over several objects, which are written one by one. If a
//! cluster moved from one to another by removal first, anyone who reads in between would take it
//! for given up and delete its workload. So the object that a cluster moves to is written before
//! the one that it leaves. Where that goes round in a circle, and where an object goes over to
//! another group, clusters are put into an object that is there for the transition alone.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Decision;
use super::group::{DecisionObject, MAX_DECISIONS_PER_OBJECT};

/// One thing to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// An object that is not there yet.
    Create(DecisionObject),
    /// Other decisions for an object that stays in its group.
    Update(DecisionObject),
    /// An object goes over to another group: it is emptied, then gets its labels, then decisions.
    Relabel(DecisionObject),
    /// The name of an object to delete.
    Delete(String),
}

/// How many steps may follow each other for want of room. Beyond, the clusters that move are put
/// into an object of their own for the time being, and everything else is written at once: a cluster
/// that leaves ten thousand takes three steps, not a hundred.
const MOST_STEPS: usize = 5;

/// What to write to get from the objects there are to those there should be: one step after the
/// other, and everything in a step at once.
///
/// At any moment every cluster that was and will be chosen is in some object of its old or its new
/// group, and no object holds more than [`MAX_DECISIONS_PER_OBJECT`], unless one did before.
pub fn transition(current: &[DecisionObject], desired: &[DecisionObject]) -> Vec<Vec<Write>> {
    let moves = Moves::new(current, desired);
    let (mut steps, mut parked) = moves.order(BTreeSet::new());
    if steps.len() > MOST_STEPS {
        let moving = moves.moving();
        if moving.len() <= steps.len() * MAX_DECISIONS_PER_OBJECT {
            (steps, parked) = moves.order(moving);
        }
    }
    if !parked.is_empty() {
        let parking = parking(current, desired, &moves.homes, &parked);
        steps.push(
            parking
                .iter()
                .map(|it| Write::Delete(it.name.clone()))
                .collect(),
        );
        steps.insert(0, parking.into_iter().map(Write::Create).collect());
    }
    steps
}

/// Who has to be written before whom.
struct Moves<'a> {
    /// What is to be written, by the name of its object.
    writes: BTreeMap<&'a str, Write>,
    /// For each of them the clusters that leave it, by the object they go to.
    leaving: HashMap<&'a str, BTreeMap<&'a str, Vec<&'a str>>>,
    /// Where each cluster will be.
    homes: HashMap<&'a str, (&'a DecisionObject, &'a Decision)>,
}

impl<'a> Moves<'a> {
    fn new(current: &'a [DecisionObject], desired: &'a [DecisionObject]) -> Self {
        let now: HashMap<&str, &DecisionObject> =
            current.iter().map(|it| (it.name.as_str(), it)).collect();
        let mut homes = HashMap::new();
        let mut writes = BTreeMap::new();
        for object in desired {
            for decision in &object.decisions {
                homes.insert(&*decision.cluster, (object, decision));
            }
            let write = match now.get(object.name.as_str()) {
                None => Write::Create(object.clone()),
                Some(before) if *before == object => continue,
                Some(before) if before.labels == object.labels => Write::Update(object.clone()),
                Some(_) => Write::Relabel(object.clone()),
            };
            writes.insert(object.name.as_str(), write);
        }
        let kept: BTreeSet<&str> = desired.iter().map(|it| it.name.as_str()).collect();
        let surplus = current.iter().filter(|it| !kept.contains(it.name.as_str()));
        writes.extend(surplus.map(|it| (it.name.as_str(), Write::Delete(it.name.clone()))));
        let mut moves = Self {
            writes,
            leaving: HashMap::new(),
            homes,
        };
        for object in current {
            moves.leave(object);
        }
        moves
    }

    /// Notes who leaves an object for one that is still to be written.
    fn leave(&mut self, object: &'a DecisionObject) {
        let name = object.name.as_str();
        let Some(write) = self.writes.get(name) else {
            return;
        };
        let is_emptied = matches!(write, Write::Relabel(_));
        for decision in &object.decisions {
            let Some((home, _)) = self.homes.get(&*decision.cluster) else {
                continue;
            };
            let home = home.name.as_str();
            if self.writes.contains_key(home) && (home != name || is_emptied) {
                let leaving = self.leaving.entry(name).or_default();
                leaving.entry(home).or_default().push(&decision.cluster);
            }
        }
    }

    /// The clusters that leave one object for another that has to be written too.
    fn moving(&self) -> BTreeSet<&'a str> {
        let leaving = self.leaving.values().flat_map(BTreeMap::values);
        leaving.flatten().copied().collect()
    }

    /// The steps, and the clusters that have to be put elsewhere before the first of them: those
    /// that are parked anyway, and those without whom nothing could be written.
    fn order(&self, mut parked: BTreeSet<&'a str>) -> (Vec<Vec<Write>>, BTreeSet<&'a str>) {
        let mut waiting: BTreeSet<&str> = self.writes.keys().copied().collect();
        let mut steps = Vec::new();
        while !waiting.is_empty() {
            // Anyone who leaves an object has to have arrived, or to be parked.
            let stuck = |name: &&str| {
                let leaving = self.leaving.get(name).into_iter().flatten();
                let not_arrived = leaving.filter(|(home, _)| waiting.contains(*home));
                let clusters = not_arrived.flat_map(|(_, clusters)| clusters);
                clusters.filter(|it| !parked.contains(*it)).count()
            };
            let least = waiting.iter().map(stuck).min().unwrap_or(0);
            if least > 0 {
                let victim = waiting.iter().find(|name| stuck(name) == least);
                let leaving = victim.and_then(|name| self.leaving.get(name));
                let not_arrived = leaving.into_iter().flatten();
                let not_arrived = not_arrived.filter(|(home, _)| waiting.contains(*home));
                let clusters: Vec<&str> = not_arrived.flat_map(|(_, it)| it).copied().collect();
                parked.extend(clusters);
                continue;
            }
            let ready: Vec<&str> = waiting
                .iter()
                .copied()
                .filter(|it| stuck(it) == 0)
                .collect();
            steps.push(
                ready
                    .iter()
                    .filter_map(|it| self.writes.get(it))
                    .cloned()
                    .collect(),
            );
            waiting.retain(|name| !ready.contains(name));
        }
        (steps, parked)
    }
}

/// Objects for the clusters that have no place during the transition, in the groups they go to.
fn parking(
    current: &[DecisionObject],
    desired: &[DecisionObject],
    homes: &HashMap<&str, (&DecisionObject, &Decision)>,
    parked: &BTreeSet<&str>,
) -> Vec<DecisionObject> {
    let number = |object: &DecisionObject| {
        let (prefix, number) = object.name.rsplit_once('-')?;
        Some((number.parse::<usize>().ok()?, prefix.to_owned()))
    };
    let last = current.iter().chain(desired).filter_map(number).max();
    let (mut last, prefix) = last.unwrap_or_default();
    let mut groups: BTreeMap<_, Vec<Decision>> = BTreeMap::new();
    for (home, decision) in parked.iter().filter_map(|cluster| homes.get(cluster)) {
        let group = groups.entry(&home.labels).or_default();
        group.push((*decision).clone());
    }
    let mut objects = Vec::new();
    for (labels, decisions) in groups {
        for decisions in decisions.chunks(MAX_DECISIONS_PER_OBJECT) {
            last = last.saturating_add(1);
            objects.push(DecisionObject {
                name: format!("{prefix}-{last}"),
                labels: labels.clone(),
                decisions: decisions.to_vec(),
            });
        }
    }
    objects
}
