//! A world for workflows: objects, a server that counts requests, and a log that survives.

#![allow(dead_code, reason = "every test uses a part of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use bellwether_api::workflow::{StepPhase, WorkflowStep};
use bellwether_workflow::{
    Definition, Done, Entry, Pass, Plan, Request, Settings, Spec, State, Woken, spec,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// Templates that tests use.
pub(crate) const TEMPLATES: &[(&str, &str)] = &[
    (
        "note",
        "import \"vela/builtin\"\nparameter: text: *\"\" | string\nsay: builtin.#Message & {$params: message: parameter.text}",
    ),
    (
        "post",
        "import \"vela/http\"\nparameter: url: string\ncall: http.#HTTPDo & {$params: {method: \"POST\", url: parameter.url}}\ncode: call.$returns.statusCode",
    ),
    (
        "post-then-wait",
        "import (\"vela/http\", \"vela/kube\", \"vela/builtin\")\nparameter: {url: string, door: string}\ncall: http.#HTTPDo & {$params: {method: \"POST\", url: parameter.url}} @step(1)\nlook: kube.#Read & {$params: value: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: parameter.door}} @step(2)\nhold: builtin.#ConditionalWait & {$params: {continue: look.$returns.value.data.open == \"yes\", message: \"shut\"}} @step(3)",
    ),
    (
        "wait",
        "import (\"vela/kube\", \"vela/builtin\")\nparameter: door: string\nlook: kube.#Read & {$params: value: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: parameter.door}}\nhold: builtin.#ConditionalWait & {$params: {continue: look.$returns.value.data.open == \"yes\", message: \"shut\"}}",
    ),
    (
        "post-then-suspend",
        "import (\"vela/http\", \"vela/builtin\")\nparameter: url: string\ncall: http.#HTTPDo & {$params: {method: \"POST\", url: parameter.url}} @step(1)\nask: builtin.#Suspend & {$params: message: \"go on?\"} @step(2)",
    ),
    ("unused", "import \"strings\"\nparameter: {}"),
    ("emit", "parameter: v: _\ngot: parameter.v"),
    (
        "boom",
        "import \"vela/builtin\"\nstop: builtin.#Fail & {$params: message: \"boom\"}",
    ),
    (
        "halt",
        "import \"vela/builtin\"\nstop: builtin.#Break & {$params: message: \"enough\"}",
    ),
    (
        "back",
        "import \"vela/oam\"\nback: oam.#RollbackApp & {$params: updateSpec: false}",
    ),
    ("seen", "parameter: {...}\nseen: parameter"),
    ("broken", "a: 1\na: 2"),
];

/// The same, compiled once for all worlds.
static DEFINITIONS: LazyLock<BTreeMap<String, Arc<Definition>>> = LazyLock::new(|| {
    let compiled = |source: &str| Arc::new(Definition::new(source));
    let all = TEMPLATES.iter();
    all.map(|(name, source)| ((*name).to_owned(), compiled(source)))
        .collect()
});

/// The world around a workflow.
pub(crate) struct World {
    pub(crate) spec: Spec,
    pub(crate) settings: Settings,
    /// What is durable.
    pub(crate) log: Vec<Entry>,
    pub(crate) now: Timestamp,
    /// Objects by name.
    pub(crate) objects: BTreeMap<String, Value>,
    /// Requests that arrived, by address, with the key that each had.
    pub(crate) requests: Vec<(String, String)>,
    /// What the server did, by address: it knows keys, and does nothing for one that it answered before.
    pub(crate) effects: BTreeMap<String, u32>,
    answered: BTreeSet<String>,
    /// Addresses that fail so often before they answer.
    pub(crate) failing: BTreeMap<String, u32>,
    /// After so many writes and requests the process ends.
    pub(crate) crash_after: Option<u32>,
    last_pass: Option<Timestamp>,
}

/// The process ended.
#[derive(Debug)]
pub(crate) struct Crash;

impl World {
    /// A workflow of these steps; `mode` is how they are ordered.
    pub(crate) fn new(mode: &str, steps: Value) -> Self {
        let mut steps: Vec<WorkflowStep> = serde_json::from_value(steps).expect("steps");
        spec::name_steps(&mut steps);
        let context = json!({"name": "r", "namespace": "ns"});
        Self {
            spec: Spec {
                name: "r".to_owned(),
                namespace: "ns".to_owned(),
                uid: "uid".to_owned(),
                mode: serde_json::from_value(json!({"steps": mode})).expect("a mode"),
                steps,
                context: context.as_object().expect("an object").clone(),
                definitions: DEFINITIONS.clone(),
                ..Spec::default()
            }
            .with_compensations(),
            settings: Settings::default(),
            log: Vec::new(),
            now: "2026-01-01T00:00:00Z".parse().expect("a time"),
            objects: BTreeMap::new(),
            requests: Vec::new(),
            effects: BTreeMap::new(),
            answered: BTreeSet::new(),
            failing: BTreeMap::new(),
            crash_after: None,
            last_pass: None,
        }
    }

    pub(crate) fn state(&self) -> State {
        State::of(&self.log)
    }

    fn risk(&mut self) -> Result<(), Crash> {
        match &mut self.crash_after {
            None => Ok(()),
            Some(0) => {
                self.crash_after = None;
                self.last_pass = None;
                Err(Crash)
            }
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }

    /// Makes one pass; returns when to look again.
    pub(crate) fn pass(&mut self, woken: Woken) -> Result<Option<Timestamp>, Crash> {
        let (spec, settings) = (self.spec.clone(), self.settings.clone());
        let mut pass = Pass::new(&spec, &settings, self.state(), woken).after(self.last_pass);
        // What need not be durable yet is written with what has to be, and lost with the process before.
        let mut buffered: Vec<Entry> = Vec::new();
        loop {
            let Plan {
                append,
                actions,
                is_durable,
                settled,
            } = pass.decide(self.now);
            buffered.extend(append);
            self.risk()?;
            if is_durable || settled.is_some() {
                self.log.append(&mut buffered);
            }
            self.risk()?;
            if let Some(settled) = settled {
                self.last_pass = Some(self.now);
                return Ok(settled.wake_at);
            }
            assert!(!actions.is_empty(), "a plan has actions or is settled");
            for request in actions {
                let result = self.carry_out(&request);
                self.risk()?;
                pass.complete(&request, result, self.now);
            }
        }
    }

    /// Makes passes until the workflow is done or waits for something other than time.
    pub(crate) fn run(&mut self) -> State {
        let mut woken = Woken::All;
        for _ in 0..500 {
            match self.pass(std::mem::replace(&mut woken, Woken::Timer)) {
                Err(Crash) => woken = Woken::All,
                Ok(None) => return self.state(),
                Ok(Some(time)) => self.now = self.now.max(time),
            }
            if self.state().finished.is_some() {
                return self.state();
            }
        }
        self.state()
    }

    /// Lets time pass.
    pub(crate) fn sleep(&mut self, seconds: i64) {
        self.now = self
            .now
            .checked_add(SignedDuration::from_secs(seconds))
            .expect("a time");
    }

    fn carry_out(&mut self, request: &Request) -> Result<Done, String> {
        let params = &request.call.params;
        let value = match request.call.name.as_str() {
            "kube.read" => {
                let name = params["value"]["metadata"]["name"]
                    .as_str()
                    .expect("a name");
                match self.objects.get(name) {
                    Some(object) => json!({"value": object}),
                    None => json!({"err": format!("configmaps {name:?} not found")}),
                }
            }
            "http.do" => {
                let url = params["url"].as_str().expect("an address").to_owned();
                let key = format!("{}/{}", request.id, request.call.path);
                self.requests.push((url.clone(), key.clone()));
                if let Some(left) = self.failing.get_mut(&url)
                    && *left > 0
                {
                    *left -= 1;
                    return Err("EOF".to_owned());
                }
                if self.answered.insert(key) {
                    *self.effects.entry(url).or_default() += 1;
                }
                json!({"statusCode": 200, "body": "ok"})
            }
            "oam.rollback-app" => json!({"revision": "shop-v1", "restored": "shop-v1"}),
            other => panic!("{other} is not part of this world"),
        };
        Ok(Done {
            value,
            ..Done::default()
        })
    }

    /// Opens a door.
    pub(crate) fn open(&mut self, door: &str) {
        self.objects
            .insert(door.to_owned(), json!({"data": {"open": "yes"}}));
    }

    /// Phases of steps by name, with reasons.
    pub(crate) fn phases(&self) -> Vec<String> {
        let show = |phase: &StepPhase, reason: &str| {
            if reason.is_empty() {
                phase.to_string()
            } else {
                format!("{phase}/{reason}")
            }
        };
        let state = self.state();
        state
            .steps
            .iter()
            .map(|step| format!("{} {}", step.name, show(&step.phase, step.reason.as_str())))
            .collect()
    }
}
