//! What becomes of each component: how many replicas of which revision, and which objects besides.

use std::collections::BTreeSet;

use bellwether_api::delivery::{RolloutComponent, RolloutWorkload};
use serde_json::{Value, json};

use super::Observed;
use super::traffic::{self, Sides};
use super::workload::{self, Partition, versioned, versioned_name};
use crate::distribution::works::replicas_of;
use crate::resources::RenderedObject;

/// The longest value of a label.
const LONGEST_LABEL: usize = 63;

/// Where a rollout goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    /// To the share that was asked for.
    Hold,
    /// To the new revision.
    Promote,
    /// Back to the old one.
    RollBack,
}

/// How far a rollout goes now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moves<'a> {
    pub(super) goal: Goal,
    /// Whether the new revision is in use already.
    pub(super) is_promoted: bool,
    /// Whether there is no revision in use yet.
    pub(super) is_first: bool,
    pub(super) stable: &'a str,
    pub(super) target: &'a str,
    pub(super) partition: Partition,
    /// How many of a hundred requests go to the new revision, if somebody asked for that.
    pub(super) weight: Option<i64>,
    /// The route of components that have none.
    pub(super) gateway: Option<&'a Value>,
}

/// What becomes of all components.
#[derive(Debug, Default)]
pub(super) struct ComponentPlan {
    pub(super) objects: Vec<Value>,
    pub(super) components: Vec<RolloutComponent>,
    pub(super) may_prune: bool,
    /// Whether the goal is reached.
    pub(super) is_complete: bool,
    pub(super) waits_for_replicas: Option<String>,
    pub(super) waits_for_routes: Option<String>,
    /// What people should know although nothing waits for it.
    pub(super) remark: Option<String>,
    /// How many of a hundred requests go to the new revision, if routes say so.
    pub(super) weight: Option<i64>,
}

/// The replicas of one component.
#[derive(Debug, Default)]
struct Replicas {
    blue: Option<RolloutWorkload>,
    green: Option<RolloutWorkload>,
    objects: Vec<Value>,
    waits_for: Option<String>,
    is_complete: bool,
}

impl ComponentPlan {
    pub(super) fn new(observed: &Observed<'_>, moves: &Moves<'_>) -> Self {
        let mut plan = Self {
            may_prune: true,
            is_complete: true,
            ..Self::default()
        };
        let names: BTreeSet<&str> = observed
            .green
            .iter()
            .chain(observed.blue)
            .map(|it| it.component.as_str())
            .collect();
        let mut replicas = Vec::new();
        for name in names {
            let component = Component {
                observed,
                moves,
                name,
            };
            replicas.push((component, component.replicas(&mut plan)));
        }
        // Objects besides workloads change when all workloads have.
        let is_over = plan.is_complete;
        for (component, replicas) in replicas {
            component.add_others(&replicas, is_over, &mut plan);
            plan.objects.extend(replicas.objects);
            component.record(replicas.blue, replicas.green, is_over, &mut plan);
        }
        plan
    }

    fn wait_for_replicas(&mut self, message: String) {
        self.waits_for_replicas.get_or_insert(message);
    }
}

#[derive(Debug, Clone, Copy)]
struct Component<'a> {
    observed: &'a Observed<'a>,
    moves: &'a Moves<'a>,
    name: &'a str,
}

impl<'a> Component<'a> {
    fn objects(&self, all: &'a [RenderedObject]) -> impl Iterator<Item = &'a RenderedObject> {
        let name = self.name;
        all.iter().filter(move |it| it.component == name)
    }

    fn workload(&self, all: &'a [RenderedObject]) -> Option<&'a Value> {
        let mut own = self
            .objects(all)
            .filter(|it| it.is_workload() && workload::is_replicated(&it.object));
        own.next().map(|it| &it.object)
    }

    fn live(&self, object: &Value, name: &str) -> Option<&'a Value> {
        let mut wanted = json!({"apiVersion": object["apiVersion"], "kind": object["kind"]});
        wanted["metadata"] = json!({"name": name, "namespace": object["metadata"]["namespace"]});
        self.observed.seen.find(&wanted)
    }

    /// The name of the workload in use: as recorded, else that of the revision.
    fn name_in_use(&self) -> String {
        let status = self.observed.rollout.status.as_ref();
        let known =
            status.and_then(|status| status.components.iter().find(|it| it.name == self.name));
        let known = known.and_then(|known| known.blue.as_ref());
        known.map_or_else(
            || versioned_name(self.name, self.moves.stable),
            |blue| blue.name.clone(),
        )
    }

    fn replicas(&self, plan: &mut ComponentPlan) -> Replicas {
        let (blue, green) = (
            self.workload(self.observed.blue),
            self.workload(self.observed.green),
        );
        let replicas = match (blue, green) {
            (None, None) => Replicas {
                is_complete: true,
                ..Replicas::default()
            },
            (Some(blue), Some(green)) if workload::is_same(blue, green) => {
                self.unchanged(blue, green)
            }
            (Some(blue), Some(green)) => self.changed(blue, green, plan),
            (None, Some(green)) => self.added(green, plan),
            (Some(blue), None) => self.removed(blue),
        };
        plan.is_complete &= replicas.is_complete;
        if let Some(message) = &replicas.waits_for {
            plan.wait_for_replicas(message.clone());
        }
        replicas
    }

    /// Both revisions have the same: it stays, and gets its new size when the new revision takes over.
    fn unchanged(&self, blue: &Value, green: &Value) -> Replicas {
        let name = self.name_in_use();
        let template = if self.moves.goal == Goal::Promote {
            green
        } else {
            blue
        };
        let wanted = replicas_of(template).unwrap_or(1);
        let ready = workload::ready(self.live(template, &name));
        let is_ready = ready >= wanted;
        Replicas {
            objects: vec![versioned(template, &name, wanted)],
            blue: Some(describe(&name, wanted, ready)),
            waits_for: (!is_ready).then(|| waits(template, &name, ready, wanted)),
            is_complete: is_ready,
            green: None,
        }
    }

    /// Only the new revision has it: it comes whole.
    fn added(&self, green: &Value, plan: &mut ComponentPlan) -> Replicas {
        if self.moves.goal == Goal::RollBack {
            return Replicas {
                is_complete: true,
                ..Replicas::default()
            };
        }
        let name = versioned_name(self.name, self.moves.target);
        self.check_name(&name, plan);
        let wanted = replicas_of(green).unwrap_or(1);
        let ready = workload::ready(self.live(green, &name));
        let is_ready = ready >= wanted;
        Replicas {
            objects: vec![versioned(green, &name, wanted)],
            green: Some(describe(&name, wanted, ready)),
            waits_for: (!is_ready).then(|| waits(green, &name, ready, wanted)),
            is_complete: is_ready,
            blue: None,
        }
    }

    /// Only the old revision has it: it stays until the new one takes over.
    fn removed(&self, blue: &Value) -> Replicas {
        let name = self.name_in_use();
        let wanted = replicas_of(blue).unwrap_or(1);
        let ready = workload::ready(self.live(blue, &name));
        Replicas {
            objects: vec![versioned(blue, &name, wanted)],
            blue: Some(describe(&name, wanted, ready)),
            waits_for: None,
            is_complete: true,
            green: None,
        }
    }

    fn changed(&self, blue: &Value, green: &Value, plan: &mut ComponentPlan) -> Replicas {
        let (blue_name, green_name) = (
            self.name_in_use(),
            versioned_name(self.name, self.moves.target),
        );
        self.check_name(&green_name, plan);
        let (blue_live, green_live) = (self.live(blue, &blue_name), self.live(green, &green_name));
        let (old, new) = (
            replicas_of(blue).unwrap_or(1),
            replicas_of(green).unwrap_or(1),
        );
        let (blue_ready, green_ready) = (workload::ready(blue_live), workload::ready(green_live));
        if self.moves.goal == Goal::RollBack {
            let is_back = blue_ready >= old;
            plan.may_prune &= is_back;
            let is_gone = green_live.is_none();
            let live_replicas = green_live.and_then(replicas_of).unwrap_or(0);
            return Replicas {
                objects: vec![versioned(blue, &blue_name, old)],
                blue: Some(describe(&blue_name, old, blue_ready)),
                green: (!is_gone).then(|| describe(&green_name, live_replicas, green_ready)),
                waits_for: (!is_back).then(|| waits(blue, &blue_name, blue_ready, old)),
                is_complete: is_back && is_gone,
            };
        }
        let wanted = if self.moves.goal == Goal::Promote {
            new
        } else {
            self.moves.partition.of(new)
        };
        // As many of those in use go as there are new ones in their place.
        let replaced = if new == 0 {
            0
        } else {
            old * green_ready.min(wanted) / new
        };
        let kept = old - replaced;
        self.put_off_pruning(blue_ready, green_ready, old.min(new), plan);
        let is_ready = green_ready >= wanted;
        let is_over = self.moves.goal == Goal::Promote && is_ready;
        let mut objects = vec![versioned(green, &green_name, wanted)];
        if !is_over {
            objects.push(versioned(blue, &blue_name, kept));
        }
        let is_scaled = is_over || workload::is_scaled_to(blue_live, kept);
        let waits_for = if !is_ready {
            Some(waits(green, &green_name, green_ready, wanted))
        } else if !is_scaled {
            Some(format!(
                "{} is not scaled to {kept} replicas yet",
                title(blue, &blue_name)
            ))
        } else {
            None
        };
        Replicas {
            objects,
            blue: Some(describe(
                &blue_name,
                if is_over { 0 } else { kept },
                blue_ready,
            )),
            green: Some(describe(&green_name, wanted, green_ready)),
            waits_for,
            is_complete: is_over,
        }
    }

    /// Another new revision may have been on its way: it stays until there are enough replicas without it.
    fn put_off_pruning(
        &self,
        blue_ready: i64,
        green_ready: i64,
        needed: i64,
        plan: &mut ComponentPlan,
    ) {
        let status = self.observed.rollout.status.as_ref();
        let known =
            status.and_then(|status| status.components.iter().find(|it| it.name == self.name));
        let green = known.and_then(|known| known.green.as_ref());
        let is_superseded =
            green.is_some_and(|green| green.name != versioned_name(self.name, self.moves.target));
        if is_superseded && blue_ready + green_ready < needed {
            plan.may_prune = false;
        }
    }

    fn check_name(&self, name: &str, plan: &mut ComponentPlan) {
        if name.len() > LONGEST_LABEL {
            plan.wait_for_replicas(format!("{name} is longer than {LONGEST_LABEL} characters: choose a shorter name for component {}", self.name));
        }
    }

    /// Adds objects that are not workloads with replicas.
    fn add_others(&self, replicas: &Replicas, is_over: bool, plan: &mut ComponentPlan) {
        let is_other =
            |it: &&RenderedObject| !(it.is_workload() && workload::is_replicated(&it.object));
        let old: Vec<&Value> = self
            .objects(self.observed.blue)
            .filter(is_other)
            .map(|it| &it.object)
            .collect();
        let new: Vec<&Value> = self
            .objects(self.observed.green)
            .filter(is_other)
            .map(|it| &it.object)
            .collect();
        let is_in = |list: &[&Value], object: &Value| {
            list.iter().any(|it| identity(it) == identity(object))
        };
        let others: Vec<&Value> = match self.moves.goal {
            Goal::Promote if is_over => new,
            Goal::RollBack if is_over => old,
            _ => {
                let added = new.iter().filter(|it| !is_in(&old, it)).copied();
                old.iter()
                    .copied()
                    .chain(added.collect::<Vec<_>>())
                    .collect()
            }
        };
        match (&replicas.blue, &replicas.green) {
            (Some(blue), Some(green)) if !is_over => {
                self.add_split(&others, &blue.name, &green.name, plan);
            }
            (blue, green) => {
                let in_use = if self.moves.goal == Goal::RollBack {
                    blue.as_ref().or(green.as_ref())
                } else {
                    green.as_ref().or(blue.as_ref())
                };
                let name = in_use.map(|it| it.name.as_str());
                for object in &others {
                    plan.objects.push(retarget(object, self.name, name));
                }
                self.add_route_of_gateway(&others, None, plan);
            }
        }
    }

    /// Adds objects while there are two revisions: requests go to both by shares.
    fn add_split(&self, others: &[&Value], blue: &str, green: &str, plan: &mut ComponentPlan) {
        let green_ready = self.has_ready_replica(green);
        let is_back = self.moves.goal == Goal::RollBack;
        // A revision without a ready replica gets no requests.
        let weight = if is_back || !green_ready {
            0
        } else {
            self.moves.weight.unwrap_or(0)
        };
        if self.moves.weight.is_some_and(|asked| asked != weight) && !is_back {
            plan.waits_for_routes.get_or_insert(format!(
                "{green} gets no requests while none of its replicas is ready"
            ));
        }
        let sides = Sides {
            component: self.name,
            blue,
            green: (!is_back).then_some(green),
            weight,
        };
        let services: Vec<&Value> = others
            .iter()
            .filter(|it| traffic::is_service(it))
            .copied()
            .collect();
        let names: Vec<&str> = services
            .iter()
            .filter_map(|it| it["metadata"]["name"].as_str())
            .collect();
        let has_routes = others.iter().any(|it| traffic::is_route(it))
            || (self.moves.gateway.is_some() && !services.is_empty());
        for object in others {
            if traffic::is_route(object) {
                for route in traffic::route(object, &names, &sides) {
                    self.add_route(route, plan);
                }
            } else if !is_autoscaler(object) {
                // An autoscaler would undo the sizes: it is there again when one revision is left.
                plan.objects.push((*object).clone());
            }
        }
        if has_routes {
            plan.objects.extend(
                services
                    .iter()
                    .flat_map(|service| traffic::services(service, &sides)),
            );
            plan.weight = Some(weight);
        } else if self.moves.weight.is_some() {
            plan.remark.get_or_insert(format!(
                "requests follow replicas: component {} has no HTTPRoute and no Ingress",
                self.name
            ));
        }
        self.add_route_of_gateway(others, Some(&sides), plan);
    }

    /// Adds the route that the rollout makes for a component with a Service and without a route.
    fn add_route_of_gateway(
        &self,
        others: &[&Value],
        sides: Option<&Sides<'_>>,
        plan: &mut ComponentPlan,
    ) {
        let Some(gateway) = self.moves.gateway else {
            return;
        };
        let service = others.iter().find(|it| traffic::is_service(it));
        let Some(service) = service.filter(|_| !others.iter().any(|it| traffic::is_route(it)))
        else {
            return;
        };
        let made = traffic::made_route(gateway, service, self.name);
        let name = service["metadata"]["name"].as_str().unwrap_or_default();
        let routes = match sides {
            Some(sides) => traffic::route(&made, &[name], sides),
            None => vec![made],
        };
        for route in routes {
            self.add_route(route, plan);
        }
    }

    fn add_route(&self, route: Value, plan: &mut ComponentPlan) {
        if let Some(objection) = traffic::objection(&route, self.observed.seen.find(&route)) {
            plan.waits_for_routes.get_or_insert(objection);
        }
        plan.objects.push(route);
    }

    /// True if the workload of the new revision has a ready replica.
    fn has_ready_replica(&self, green: &str) -> bool {
        let template = self.workload(self.observed.green);
        template.is_some_and(|template| workload::ready(self.live(template, green)) > 0)
    }

    /// Records which workloads there are; the new one is the one in use when it has taken over.
    fn record(
        &self,
        blue: Option<RolloutWorkload>,
        green: Option<RolloutWorkload>,
        is_over: bool,
        plan: &mut ComponentPlan,
    ) {
        let kind = self
            .workload(self.observed.green)
            .or_else(|| self.workload(self.observed.blue));
        let Some(kind) = kind else { return };
        let is_promoted = self.moves.goal == Goal::Promote && is_over;
        // What only the old revision had goes with it.
        let is_removed = self.workload(self.observed.green).is_none();
        if is_promoted && is_removed {
            if let Some(blue) = &blue {
                plan.objects.retain(|object| {
                    object["metadata"]["name"] != *blue.name || !workload::is_replicated(object)
                });
            }
            return;
        }
        let (blue, green) = if is_promoted {
            (green.or(blue), None)
        } else {
            (blue, green)
        };
        plan.components.push(RolloutComponent {
            name: self.name.to_owned(),
            kind: kind["kind"].as_str().unwrap_or_default().to_owned(),
            blue,
            green,
            ..RolloutComponent::default()
        });
    }
}

fn identity(object: &Value) -> (&Value, &Value, &Value, &Value) {
    (
        &object["apiVersion"],
        &object["kind"],
        &object["metadata"]["namespace"],
        &object["metadata"]["name"],
    )
}

fn is_autoscaler(object: &Value) -> bool {
    object
        .pointer("/spec/scaleTargetRef")
        .is_some_and(Value::is_object)
}

/// An object that refers to the workload of a component by its name, with the name that it has.
fn retarget(object: &Value, component: &str, workload: Option<&str>) -> Value {
    let mut object = object.clone();
    if let (Some(Value::String(name)), Some(workload)) =
        (object.pointer_mut("/spec/scaleTargetRef/name"), workload)
        && name == component
    {
        workload.clone_into(name);
    }
    object
}

fn describe(name: &str, replicas: i64, ready: i64) -> RolloutWorkload {
    RolloutWorkload {
        name: name.to_owned(),
        replicas,
        ready,
        ..RolloutWorkload::default()
    }
}

fn title(object: &Value, name: &str) -> String {
    format!("{} {name}", object["kind"].as_str().unwrap_or_default())
}

fn waits(object: &Value, name: &str, ready: i64, wanted: i64) -> String {
    format!(
        "{}: {ready} of {wanted} replicas are ready",
        title(object, name)
    )
}
