//! Plays an example: starts its fleet, does what the script says, and waits for what it promises.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bellwether_ctl::apply::{self, Apply};
use bellwether_ctl::{Connection, Manifest};
use kube::api::{DeleteParams, ListParams, Patch as ApiPatch, PatchParams};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::chaos::{Chaos, Killer};
use crate::fleet::Fleet;
use crate::judge::{Judge, Sight, objection};
use crate::library::Example;
use crate::observe::{self, PAUSE, Tell, api, find_type, problem, to_json};
use crate::repository::Repositories;
use crate::script::{Expectation, Patch, Script, ScriptError, Step, Subject};
use crate::server::Server;

/// How long a request is tried again while the fleet is not there.
const REQUEST_LIMIT: Duration = Duration::from_mins(1);
/// The kinds that the commentary is about.
const NARRATED: [&str; 3] = [
    "applications.core.oam.dev",
    "workflowruns.core.oam.dev",
    "rollouts.standard.oam.dev",
];

/// Why an example was not what it promises to be.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// The script is wrong.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The fleet did not start.
    #[error("{0}")]
    Fleet(String),
    /// Something could not be done.
    #[error("step {number} ({say}): {problem}")]
    Step {
        /// Which step, from 1.
        number: usize,
        /// What it says.
        say: String,
        /// What is wrong.
        problem: String,
    },
    /// Something that is always true was not.
    #[error("a promise was broken: {0}")]
    Broken(String),
}

/// How an example is played.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The program that is the fleet.
    pub program: PathBuf,
    /// Kills the fleet while the example is played.
    pub chaos: Option<Chaos>,
    /// Runs the hub and each agent in a process of its own.
    pub is_apart: bool,
}

/// Plays an example. Succeeds only if everything that it promises was seen.
pub async fn play(
    example: &Example,
    settings: &Settings,
    tell: impl Fn(&str) + Send + Sync + 'static,
) -> Result<(), PlayError> {
    let script = example.script()?;
    let tell: Tell = Arc::new(tell);
    tell(&format!(
        "{}: {}\n\n{}",
        example.name,
        script.title,
        script.about.trim_end()
    ));
    let mut servers = BTreeMap::new();
    for (name, answers) in &script.servers {
        let server = Server::start(answers).await.map_err(PlayError::Fleet)?;
        servers.insert(name.clone(), server);
    }
    let repositories = Repositories::create(&script.repositories, example);
    let repositories = repositories.await.map_err(PlayError::Fleet)?;
    let fleet = start_fleet(&script, settings, &repositories, &tell).await;
    let fleet = Arc::new(fleet.map_err(PlayError::Fleet)?);
    let player = Player {
        example,
        script: &script,
        fleet: Arc::clone(&fleet),
        servers,
        repositories,
        tell,
        broken: Arc::default(),
        chaos: settings.chaos,
    };
    let result = Box::pin(player.run()).await;
    if result.is_err() {
        let words = fleet.last_words();
        if !words.is_empty() {
            (player.tell)(&format!("\nWhat the fleet said last:\n{words}"));
        }
    }
    fleet.stop().await;
    result
}

async fn start_fleet(
    script: &Script,
    settings: &Settings,
    repositories: &Repositories,
    tell: &Tell,
) -> Result<Fleet, String> {
    let mut spec = script.fleet.clone();
    if spec.together && settings.is_apart {
        return Err("this example needs all its clusters in one process".to_owned());
    }
    spec.arguments.extend(repositories.arguments());
    let members = match spec.clusters {
        1 => "1 member".to_owned(),
        count => format!("{count} members"),
    };
    let apart = if settings.is_apart {
        ", each a process of its own"
    } else {
        ""
    };
    tell(&format!("\nStarting a fleet: a hub and {members}{apart}."));
    Fleet::start(&settings.program, &spec, settings.is_apart).await
}

struct Player<'a> {
    example: &'a Example,
    script: &'a Script,
    fleet: Arc<Fleet>,
    servers: BTreeMap<String, Server>,
    repositories: Repositories,
    tell: Tell,
    broken: Arc<Mutex<Vec<String>>>,
    chaos: Option<Chaos>,
}

impl Player<'_> {
    async fn run(&self) -> Result<(), PlayError> {
        self.label_members().await.map_err(PlayError::Fleet)?;
        // Ends with this function.
        let mut tasks = JoinSet::new();
        self.start_observers(&mut tasks).map_err(PlayError::Fleet)?;
        let steps = self.script.steps.len();
        let killer = self.chaos.map(|chaos| {
            let (fleet, tell) = (Arc::clone(&self.fleet), Arc::clone(&self.tell));
            Killer::start(chaos, steps, fleet, tell, &mut tasks)
        });
        for (index, step) in self.script.steps.iter().enumerate() {
            (self.tell)(&format!("\n{}. {}", index + 1, step.say));
            if let Some(killer) = &killer {
                killer.begin(index);
            }
            let done = self.step(step).await;
            done.map_err(|problem| PlayError::Step {
                number: index + 1,
                say: step.say.clone(),
                problem,
            })?;
            if let Some(broken) = self.broken.lock().first() {
                return Err(PlayError::Broken(broken.clone()));
            }
        }
        if let Some(killer) = &killer {
            let kills = killer.count();
            (self.tell)(&format!(
                "\nProcesses of the fleet were killed {kills} times at random."
            ));
        }
        (self.tell)("\nEverything that was promised was seen.");
        Ok(())
    }

    async fn label_members(&self) -> Result<(), String> {
        for (cluster, labels) in &self.script.fleet.labels {
            let patch = Patch {
                object: format!("managedclusters/{cluster}"),
                namespace: String::new(),
                cluster: "hub".to_owned(),
                subresource: None,
                with: json!({"metadata": {"labels": labels}}),
            };
            self.patch(&patch).await?;
        }
        Ok(())
    }

    fn start_observers(&self, tasks: &mut JoinSet<()>) -> Result<(), String> {
        let judge = Judge::new();
        for kind in NARRATED {
            tasks.spawn(observe::narrate(
                Arc::clone(&self.fleet),
                kind,
                Arc::clone(&self.tell),
            ));
        }
        for promise in &self.script.always {
            let program = judge.compile(&promise.that)?;
            let broken = Arc::clone(&self.broken);
            tasks.spawn(observe::guard(
                Arc::clone(&self.fleet),
                promise.clone(),
                program,
                broken,
            ));
        }
        Ok(())
    }

    async fn step(&self, step: &Step) -> Result<(), String> {
        for (name, answers) in &step.answer {
            if let Some(server) = self.servers.get(name) {
                server.set(answers).await?;
            }
        }
        for commit in &step.commit {
            self.repositories.commit(commit, self.example).await?;
            (self.tell)(&format!(
                "    somebody commits to {}: {}",
                commit.repository, commit.message
            ));
        }
        for file in &step.apply {
            self.apply(file, &step.cluster).await?;
        }
        for patch in &step.patch {
            self.patch(patch).await?;
            (self.tell)(&format!("    patched {}", patch.object));
        }
        for subject in &step.delete {
            self.delete(subject).await?;
            (self.tell)(&format!("    deleted {}", subject.object));
        }
        for command in &step.run {
            self.command(command).await?;
        }
        if step.kill {
            let killed = self.fleet.kill_and_restart().await?;
            (self.tell)(&format!("    kill -9 of {killed}; started again"));
        }
        for expected in &step.expect {
            self.expect(expected).await?;
        }
        Ok(())
    }

    /// Replaces `${NAME}` by the address of the server of that name, and names of repositories by their addresses.
    fn fill(&self, text: &str) -> String {
        self.servers
            .iter()
            .fold(self.repositories.fill(text), |text, (name, server)| {
                text.replace(&format!("${{{name}}}"), &server.url())
            })
    }

    async fn apply(&self, file: &str, cluster: &str) -> Result<(), String> {
        let text = self.fill(self.example.file(file).unwrap_or_default());
        let documents =
            bellwether_json::yaml::from_yaml(&text).map_err(|error| format!("{file}: {error}"))?;
        let manifests: Vec<Manifest> = documents
            .into_iter()
            .map(|object| Manifest {
                place: file.to_owned(),
                object,
            })
            .collect();
        let told = self
            .retry(cluster, async |connection| {
                let (mut out, mut notes) = (Vec::new(), Vec::new());
                let applied = apply::run(
                    &connection,
                    &Apply::default(),
                    manifests.clone(),
                    &mut out,
                    &mut notes,
                )
                .await;
                let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
                match applied {
                    Ok(()) => Ok(text(out)),
                    Err(error) => Err(format!("{error} {}", text(notes))),
                }
            })
            .await?;
        for line in told.lines() {
            (self.tell)(&format!("    {line}"));
        }
        Ok(())
    }

    async fn patch(&self, patch: &Patch) -> Result<(), String> {
        let (kind, name) = patch.object.split_once('/').unwrap_or_default();
        self.retry(&patch.cluster, async |connection| {
            let kind = find_type(&connection, kind).await?;
            let api = api(&connection, &kind, Some(&patch.namespace));
            let (parameters, change) = (PatchParams::default(), ApiPatch::Merge(&patch.with));
            let patched = match &patch.subresource {
                Some(subresource) => {
                    api.patch_subresource(subresource, name, &parameters, &change)
                        .await
                }
                None => api.patch(name, &parameters, &change).await,
            };
            patched.map(drop).map_err(problem)
        })
        .await
    }

    async fn delete(&self, subject: &Subject) -> Result<(), String> {
        let (kind, name) = subject.object.split_once('/').unwrap_or_default();
        self.retry(&subject.cluster, async |connection| {
            let kind = find_type(&connection, kind).await?;
            let api = api(&connection, &kind, Some(&subject.namespace));
            match api.delete(name, &DeleteParams::default()).await {
                Ok(_) => Ok(()),
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                Err(error) => Err(problem(error)),
            }
        })
        .await
    }

    async fn command(&self, command: &str) -> Result<(), String> {
        (self.tell)(&format!("    $ bellwether {command}"));
        let output = self
            .retry("hub", async |_| {
                let output = tokio::process::Command::new(self.fleet.program())
                    .args(command.split_whitespace())
                    .env("KUBECONFIG", self.fleet.kubeconfig())
                    .output()
                    .await
                    .map_err(|error| error.to_string())?;
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                if output.status.success() {
                    Ok(text(&output.stdout))
                } else {
                    Err(format!("{}{}", text(&output.stdout), text(&output.stderr)))
                }
            })
            .await?;
        for line in output.lines() {
            (self.tell)(&format!("      {line}"));
        }
        Ok(())
    }

    /// Tries something until it succeeds: the fleet may have been killed a moment ago.
    async fn retry<T>(
        &self,
        cluster: &str,
        attempt: impl AsyncFn(Connection) -> Result<T, String>,
    ) -> Result<T, String> {
        let last = Mutex::new(String::new());
        let tries = async {
            loop {
                let connection = self.fleet.connect(cluster).await;
                let result = match connection {
                    Ok(connection) => attempt(connection).await,
                    Err(problem) => Err(problem),
                };
                match result {
                    Ok(done) => return done,
                    Err(problem) => *last.lock() = problem,
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        let limit = if self.chaos.is_some() {
            REQUEST_LIMIT
        } else {
            REQUEST_LIMIT / 6
        };
        let done = tokio::time::timeout(limit, tries).await;
        done.map_err(|_| last.lock().clone())
    }

    async fn expect(&self, expected: &Expectation) -> Result<(), String> {
        let program = match &expected.that {
            Some(expression) => Some(Judge::new().compile(expression)?),
            None => None,
        };
        let last = Mutex::new((String::new(), Sight::Object(None)));
        let seen = async {
            loop {
                match self.look(expected).await {
                    Err(problem) => last.lock().0 = problem,
                    Ok(sight) => {
                        let objection = match (&program, &sight) {
                            (_, Sight::Object(None)) if expected.gone => None,
                            (_, Sight::Object(None)) => Some("it does not exist".to_owned()),
                            _ if expected.gone => Some("it exists".to_owned()),
                            (Some(program), sight) => objection(program, sight),
                            (None, _) => None,
                        };
                        match objection {
                            None => return,
                            Some(objection) => *last.lock() = (objection, sight),
                        }
                    }
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        let factor = if self.chaos.is_some() { 3 } else { 1 };
        let what = match (&expected.that, expected.gone) {
            (_, true) => "is gone",
            (Some(expression), _) => expression,
            (None, _) => "exists",
        };
        let subject = expected.subject();
        let limit = expected.limit() * factor;
        if tokio::time::timeout(limit, seen).await.is_err() {
            let (objection, sight) = last.into_inner();
            let found = describe(&sight);
            return Err(format!(
                "not seen within {limit:?}: {subject}: {what}: {objection}\n{found}"
            ));
        }
        let what = what.split_whitespace().collect::<Vec<_>>().join(" ");
        match &expected.say {
            Some(say) => (self.tell)(&format!("    seen: {say}")),
            None => (self.tell)(&format!("    seen: {subject}: {what}")),
        }
        Ok(())
    }

    async fn look(&self, expected: &Expectation) -> Result<Sight, String> {
        if let Some(name) = &expected.server {
            let server = self.servers.get(name).ok_or("there is no such server")?;
            return Ok(Sight::Requests(server.requests()));
        }
        if let Some(name) = &expected.repository {
            return self.repositories.see(name).await.map(Sight::Repository);
        }
        let connection = self.fleet.connect(&expected.cluster).await?;
        let subject = expected.object.as_ref().or(expected.objects.as_ref());
        let subject = subject.map(String::as_str).unwrap_or_default();
        let (kind, name) = subject.split_once('/').unwrap_or((subject, ""));
        let kind = find_type(&connection, kind).await?;
        let api = api(&connection, &kind, Some(&expected.namespace));
        if expected.object.is_some() {
            let object = api.get_opt(name).await.map_err(problem)?;
            return Ok(Sight::Object(object.as_ref().map(to_json)));
        }
        let parameters = ListParams {
            label_selector: expected.labels.clone(),
            ..ListParams::default()
        };
        let listed = api.list(&parameters).await.map_err(problem)?;
        Ok(Sight::Objects(listed.items.iter().map(to_json).collect()))
    }
}

fn describe(sight: &Sight) -> String {
    let value = match sight {
        Sight::Object(None) => return String::new(),
        Sight::Object(Some(object)) => object.clone(),
        Sight::Repository(seen) => seen.clone(),
        Sight::Objects(all) | Sight::Requests(all) => Value::Array(all.clone()),
    };
    bellwether_json::yaml::to_yaml(&value)
}
