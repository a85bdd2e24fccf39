//! The pages and documents of `why`: what one cluster waits for or fails of, and the whole rollout.

use bellwether_placement::rollout::{Reason, Wait};
use bellwether_work::cause::Cause;
use bellwether_work::replica_set::report::{ClusterReport, PlacementReport, Stage, Step};
use serde_json::{Value, json};

use super::{ONE_BY_ONE, Rollout, next_line, works};
use crate::explain::tree::{Layout, Node, Span, Tone, Tree};

impl Rollout<'_> {
    /// The page of `why` for one cluster; nothing if no placement has chosen it.
    pub fn why(&self, cluster: &str) -> Option<Tree> {
        let (placement, found) = self.report.cluster(cluster)?;
        let heading = format!("{cluster} and {}:", self.object());
        let mut nodes = vec![Node::leaf(vec![Span::plain(format!(
            "placement {}: {cluster} {}",
            placement.name, found.reason
        ))])];
        for cause in self.causes(found) {
            nodes.push(Node::leaf(vec![Span::plain(format!(
                "on {cluster}: {cause}"
            ))]));
        }
        Some(Tree {
            title: vec![Span::new(Tone::Title, heading)],
            nodes,
            notes: next_line(&self.next_of(placement, found)),
            layout: Layout::Columns,
        })
    }

    /// The document of `why` for one cluster.
    pub fn why_document(&self, cluster: &str) -> Option<Value> {
        let (placement, found) = self.report.cluster(cluster)?;
        let reason = format!("{cluster} {}", found.reason);
        Some(json!({
            "cluster": cluster, "manifestWorkReplicaSet": self.name(), "namespace": self.namespace(),
            "placements": [{"placement": placement.name, "reason": reason}],
            "causes": self.causes(found),
            "next": self.next_of(placement, found),
        }))
    }

    /// What its work reports, and what its member says.
    fn causes(&self, cluster: &ClusterReport) -> Vec<String> {
        if let Some(problem) = &cluster.problem {
            return vec![problem.clone()];
        }
        let mut all = Vec::new();
        let troubles = self.snapshot.troubles.get(&*cluster.name);
        let troubles = troubles.map_or(&[][..], Vec::as_slice);
        for cause in cluster.causes() {
            all.push(cause.to_string());
            let own = troubles.iter().filter(|trouble| trouble.cause == cause);
            all.extend(own.map(|trouble| trouble.text.clone()));
        }
        all
    }

    /// Commands that go on from one cluster.
    fn next_of(&self, placement: &PlacementReport, cluster: &ClusterReport) -> Vec<String> {
        let object = self.object();
        let mut commands = works(cluster);
        if cluster.step() == Step::Failing {
            let causes = cluster.causes();
            commands.extend(causes.iter().take(1).map(|it| describe(&cluster.name, it)));
            commands.push(format!("bellwether rollout retry {object}"));
        }
        if let Reason::Waits(wait) = &cluster.reason {
            commands.extend(match &**wait {
                Wait::Slots { blocker, .. } | Wait::Group { blocker, .. } => {
                    Some(format!("bellwether why {} {object}", blocker.cluster))
                }
                Wait::Budget(_) => {
                    let failing = placement.failing().next();
                    failing.map(|it| format!("bellwether why {} {object}", it.name))
                }
                Wait::Held(_) => Some(format!("bellwether rollout resume {object}")),
            });
        }
        commands
    }

    /// The page of `why` for the whole rollout.
    pub fn why_all(&self) -> Tree {
        let (tone, stage) = self.stage();
        let title = vec![
            Span::new(Tone::Title, self.object()),
            Span::new(tone, stage),
            Span::plain(self.progress()),
        ];
        let sentences = self.sentences().into_iter();
        let nodes = sentences.map(|it| Node::leaf(vec![Span::plain(it)]));
        Tree {
            title,
            nodes: nodes.collect(),
            notes: next_line(&self.next()),
            layout: Layout::Columns,
        }
    }

    /// The document of `why` for the whole rollout.
    pub fn why_all_document(&self) -> Value {
        json!({
            "manifestWorkReplicaSet": self.name(), "namespace": self.namespace(),
            "stage": self.stage().1, "reasons": self.sentences(), "next": self.next(),
        })
    }

    /// What stops it, who fails and why, and what the others wait for.
    fn sentences(&self) -> Vec<String> {
        let mut all = self.stops();
        let mut waiting: Vec<(String, Vec<&str>)> = Vec::new();
        for cluster in self
            .report
            .placements
            .iter()
            .flat_map(PlacementReport::clusters)
        {
            match (cluster.step(), &cluster.reason) {
                (Step::Failing | Step::InProgress | Step::Soaking, _) => {
                    all.push(format!("{}: {}", cluster.name, self.state(cluster).1));
                }
                (Step::Waiting, reason) => {
                    let reason = reason.to_string();
                    match waiting.iter_mut().find(|(known, _)| *known == reason) {
                        Some((_, names)) => names.push(&cluster.name),
                        None => waiting.push((reason, vec![&cluster.name])),
                    }
                }
                (Step::Done, _) => {}
            }
        }
        for (reason, names) in waiting {
            all.push(match &*names {
                [first, .., last] if names.len() > ONE_BY_ONE => {
                    format!("{first} … {last} ({} clusters): each {reason}", names.len())
                }
                [only] => format!("{only} {reason}"),
                names => format!("{}: each {reason}", names.join(", ")),
            });
        }
        if all.is_empty() {
            all.push(match self.report.stage() {
                Stage::Empty => "its placements select no cluster".to_owned(),
                _ => "all clusters are done".to_owned(),
            });
        }
        all
    }
}

/// The command that shows an object on its member.
fn describe(cluster: &str, cause: &Cause) -> String {
    let kind = cause.kind.to_lowercase();
    let namespace = match cause.namespace.as_str() {
        "" => String::new(),
        namespace => format!(" -n {namespace}"),
    };
    format!(
        "bellwether describe {kind}/{}{namespace} --context {cluster}",
        cause.name
    )
}
