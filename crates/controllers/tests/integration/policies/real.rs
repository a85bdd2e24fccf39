//! A rollout between real API servers, where `KUBEBUILDER_ASSETS` says where their programs are.

use bellwether_controllers::policy_agent::PolicyAgents;
use bellwether_runtime::ControllerMetrics;

use super::with_agents::{banner, banner_policy};
use super::*;
use crate::fleet::real::RealPair;

/// How many members there are; the first is a real cluster, the others are embedded.
const MEMBERS: usize = 50;
/// How often hub or agents are ended while a version goes to all of them.
const KILLS: usize = 40;

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
    let mut running = Running::start(&fleet, &members);

    let until = async |stage: &str| {
        let mut last = Value::Null;
        for _ in 0..ROUNDS {
            // Fifty members report one after the other: the hub writes for each of them.
            fleet.writes.change_from_outside();
            last = fleet.get(HUB, &banner_policy("")).await.unwrap_or_default();
            if last["status"]["rolloutStatus"] == stage {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the rollout is not {stage}: {last:#}");
    };
    let texts = async || {
        let mut texts = BTreeSet::new();
        for member in &members {
            let found = fleet.get(member, &banner("")).await.unwrap_or_default();
            let text = found["data"]["text"].as_str().unwrap_or_default();
            texts.insert(text.to_owned());
        }
        texts
    };
    let all = |text: &str| BTreeSet::from([text.to_owned()]);
    fleet
        .create(HUB, placement_of("all", canary_groups(20)))
        .await;
    fleet.create(HUB, binding("all", "all", "banner")).await;
    fleet.create(HUB, banner_policy("one")).await;
    until("Succeeded").await;
    assert_eq!(texts().await, all("one"));
    let immutable = json!({"immutable": true});
    fleet.merge(MEMBER, &banner(""), immutable).await;
    let spec = banner_policy("two")["spec"].take();
    fleet
        .merge(HUB, &banner_policy(""), json!({ "spec": spec }))
        .await;
    let root = until("Failed").await;
    let entries = root["status"]["status"].as_array().unwrap();
    assert_eq!(entries.len(), MEMBERS);
    for entry in entries {
        let is_canary = entry["clustername"] == MEMBER;
        let expected = if is_canary { "Failed" } else { "ToApply" };
        assert_eq!(entry["rolloutStatus"], expected, "{entry}");
    }
    assert_eq!(texts().await, all("one"));
    fleet.delete(MEMBER, &banner("")).await;
    for kill in 0..KILLS {
        tokio::time::sleep(Duration::from_millis(100)).await;
        running.restart(kill % 2 == 0);
    }
    until("Succeeded").await;
    assert_eq!(texts().await, all("two"));
}
