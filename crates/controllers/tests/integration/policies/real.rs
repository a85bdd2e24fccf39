//! A rollout between real API servers, where `KUBEBUILDER_ASSETS` says where their programs are.

use bellwether_agent::policy::PolicyAgents;
use bellwether_runtime::ControllerMetrics;

use super::with_agents::{banner, banner_policy};
use super::*;
use bellwether_testkit::RealPair;

/// How many members there are; the first is a real cluster, the others are embedded.
const MEMBERS: usize = 50;
/// How many members a group has; the canary is a group of its own.
const PER_GROUP: usize = 20;
/// How often hub or agents are ended while a version goes to all of them.
const KILLS: usize = 200;

/// How often the hub is asked how far a rollout is: servers of their own take their time.
const ROUNDS: usize = 3000;

/// The hub's controller and the agents of all members, which can be ended at any moment.
struct Running<'r> {
    fleet: &'r Fleet,
    members: &'r [String],
    hub: JoinHandle<()>,
    agents: JoinHandle<()>,
}

impl<'r> Running<'r> {
    fn start(fleet: &'r Fleet, members: &'r [String]) -> Self {
        Self {
            hub: start_propagator(fleet),
            agents: start_agents(fleet, members),
            fleet,
            members,
        }
    }

    /// Ends one of them at once, whatever it is doing, and starts it again.
    fn restart(&mut self, is_hub: bool) {
        if is_hub {
            self.hub.abort();
            self.hub = start_propagator(self.fleet);
        } else {
            self.agents.abort();
            self.agents = start_agents(self.fleet, self.members);
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.hub.abort();
        self.agents.abort();
    }
}

fn start_agents(fleet: &Fleet, members: &[String]) -> JoinHandle<()> {
    let (client, clock) = (fleet.controller_client(HUB), fleet.clock.clone());
    let random = |bytes: &mut [u8]| bytes.fill(7);
    let agents = PolicyAgents::start(client, None, clock, random, ControllerMetrics::default());
    for member in members {
        agents.add_member(member, fleet.controller_client(member));
    }
    tokio::spawn(agents.run())
}

/// What members have of the banner, and what the hub says about it.
struct Rollout<'r> {
    fleet: &'r Fleet,
    members: &'r [String],
}

impl Rollout<'_> {
    async fn root(&self) -> Value {
        let root = self.fleet.get(HUB, &banner_policy("")).await;
        root.unwrap_or_default()
    }

    /// Waits until the rollout is there, and returns the root policy.
    async fn until(&self, stage: &str) -> Value {
        let mut last = Value::Null;
        for _ in 0..ROUNDS {
            // Fifty members report one after the other: the hub writes for each of them.
            self.fleet.writes.change_from_outside();
            last = self.root().await;
            if last["status"]["rolloutStatus"] == stage {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the rollout is not {stage}: {last:#}");
    }

    async fn edit(&self, text: &str) {
        let patch = json!({"spec": banner_policy(text)["spec"]});
        self.fleet.merge(HUB, &banner_policy(""), patch).await;
    }

    async fn text(&self, member: &str) -> String {
        let found = self.fleet.get(member, &banner("")).await;
        let found = found.unwrap_or_default();
        found["data"]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// True if all members have this text.
    async fn is_everywhere(&self, text: &str) -> bool {
        for member in self.members {
            if self.text(member).await != text {
                return false;
            }
        }
        true
    }

    /// Checks that members have one of two texts, and the later one only where all groups before have it. Members
    /// are looked at from the last one on: what happens meanwhile makes nobody seem too early.
    async fn check_order(&self, before: &str, after: &str) {
        let mut last_group = 0;
        for (place, member) in self.members.iter().enumerate().rev() {
            let text = self.text(member).await;
            let group = place.div_ceil(PER_GROUP);
            if text == after {
                last_group = last_group.max(group);
                continue;
            }
            // The canary was deleted to be repaired.
            assert!(text == before || text.is_empty(), "{member} has {text}");
            assert!(
                last_group <= group,
                "group {last_group} has {after} before {member} of group {group}"
            );
        }
    }

    /// Ends hub and agents again and again while versions go to all members.
    async fn kill_at_random(&self, mut running: Running<'_>) {
        let dice = Dice(AtomicU64::new(5));
        let (mut before, mut after) = ("one".to_owned(), "two".to_owned());
        let mut versions = 1;
        for kill in 0..KILLS {
            tokio::time::sleep(Duration::from_millis(dice.roll(200))).await;
            running.restart(dice.roll(2) == 0);
            // Fifty members report meanwhile, and who was ended writes again.
            self.fleet.writes.change_from_outside();
            if kill % 10 != 0 {
                continue;
            }
            self.check_order(&before, &after).await;
            let stage = self.root().await["status"]["rolloutStatus"].take();
            if stage == "Succeeded" && self.is_everywhere(&after).await {
                versions += 1;
                before = std::mem::replace(&mut after, format!("version {versions}"));
                self.edit(&after).await;
            }
        }
        let mut rounds = 0;
        while !self.is_everywhere(&after).await {
            self.check_order(&before, &after).await;
            rounds += 1;
            assert!(
                rounds < ROUNDS,
                "{after} never comes: {}",
                self.root().await
            );
            self.fleet.writes.change_from_outside();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.until("Succeeded").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_on_a_real_server_stops_a_rollout_of_a_real_hub_until_it_complies() {
    let pair = match RealPair::start().await {
        Ok(pair) => Arc::new(pair),
        Err(why) => return bellwether_testkit::skip(why),
    };
    let mut fleet = Fleet::on_real_servers(&pair).await;
    let others = (2..=MEMBERS).map(|number| format!("cluster{number:02}"));
    let members: Vec<String> = std::iter::once(MEMBER.to_owned()).chain(others).collect();
    let names: Vec<&str> = members.iter().map(String::as_str).collect();
    fleet.add_members(&names[1..]).await;
    let labels = |index| json!({"canary": if index == 0 { "true" } else { "false" }});
    furnish(&fleet, &names, labels).await;
    let running = Running::start(&fleet, &members);
    let rollout = Rollout {
        fleet: &fleet,
        members: &members,
    };
    fleet
        .create(HUB, placement_of("all", canary_groups(PER_GROUP)))
        .await;
    fleet.create(HUB, binding("all", "all", "banner")).await;
    fleet.create(HUB, banner_policy("one")).await;
    rollout.until("Succeeded").await;
    assert!(rollout.is_everywhere("one").await);
    let immutable = json!({"immutable": true});
    fleet.merge(MEMBER, &banner(""), immutable).await;
    rollout.edit("two").await;
    let root = rollout.until("Failed").await;
    let entries = root["status"]["status"].as_array().unwrap();
    assert_eq!(entries.len(), MEMBERS);
    for entry in entries {
        let is_canary = entry["clustername"] == MEMBER;
        let expected = if is_canary { "Failed" } else { "ToApply" };
        assert_eq!(entry["rolloutStatus"], expected, "{entry}");
    }
    assert!(rollout.is_everywhere("one").await);
    fleet.delete(MEMBER, &banner("")).await;
    rollout.kill_at_random(running).await;
}
