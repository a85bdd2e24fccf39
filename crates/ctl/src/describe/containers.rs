//! Containers of pods and of pod templates.

use bellwether_json::quantity::Quantity;
use serde_json::Value;

use super::page::{Page, sorted};
use super::read::{capital, items, number, or_none, quantity, shown, text, truth};
use super::subject::Moment;

/// What containers are described with.
pub(super) struct Containers<'a> {
    pub(super) label: &'a str,
    pub(super) list: &'a Value,
    pub(super) statuses: &'a Value,
    /// The pod that they belong to; none if it is only a template.
    pub(super) pod: Option<&'a Value>,
    pub(super) moment: &'a Moment,
}

impl Containers<'_> {
    /// Writes all containers, below a label.
    pub(super) fn write(&self, page: &mut Page) {
        let space = if self.pod.is_some() { "" } else { "  " };
        let none = if items(self.list).is_empty() {
            " <none>"
        } else {
            ""
        };
        page.line(0, format_args!("{space}{}:{none}", self.label));
        for container in items(self.list) {
            let indent = if self.pod.is_some() { "" } else { " " };
            page.line(1, format_args!("{indent}{}:", text(&container["name"])));
            let status = items(self.statuses)
                .iter()
                .find(|status| status["name"] == container["name"]);
            basics(page, container, status);
            words(page, "Command", &container["command"]);
            words(page, "Args", &container["args"]);
            if let Some(status) = status {
                self.state(page, status);
            }
            resources(page, 2, &container["resources"]);
            for (label, name) in [
                ("Liveness", "livenessProbe"),
                ("Readiness", "readinessProbe"),
                ("Startup", "startupProbe"),
            ] {
                if container[name].is_object() {
                    page.pair(2, label, probe(&container[name]));
                }
            }
            sources(page, &container["envFrom"]);
            self.environment(page, container);
            mounts(page, container);
        }
    }

    fn state(&self, page: &mut Page, status: &Value) {
        self.one_state(page, "State", &status["state"]);
        if status["lastState"]["terminated"].is_object() {
            self.one_state(page, "Last State", &status["lastState"]);
        }
        page.pair(2, "Ready", capital(truth(&status["ready"])));
        page.pair(2, "Restart Count", number(&status["restartCount"]));
    }

    fn one_state(&self, page: &mut Page, label: &str, state: &Value) {
        let (running, ended) = (&state["running"], &state["terminated"]);
        if running.is_object() {
            page.pair(2, label, "Running");
            page.pair(3, "Started", self.moment.date(&running["startedAt"]));
        } else if ended.is_object() {
            page.pair(2, label, "Terminated");
            page.pair_if(3, "Reason", text(&ended["reason"]));
            page.pair_if(3, "Message", text(&ended["message"]));
            page.pair(3, "Exit Code", number(&ended["exitCode"]));
            if number(&ended["signal"]) > 0 {
                page.pair(3, "Signal", number(&ended["signal"]));
            }
            page.pair(3, "Started", self.moment.date(&ended["startedAt"]));
            page.pair(3, "Finished", self.moment.date(&ended["finishedAt"]));
        } else {
            page.pair(2, label, "Waiting");
            page.pair_if(3, "Reason", text(&state["waiting"]["reason"]));
        }
    }

    fn environment(&self, page: &mut Page, container: &Value) {
        let variables = items(&container["env"]);
        let none = if variables.is_empty() { "\t<none>" } else { "" };
        page.line(2, format_args!("Environment:{none}"));
        for variable in variables {
            let name = text(&variable["name"]);
            let from = &variable["valueFrom"];
            if from.is_null() {
                let mut lines = text(&variable["value"]).split('\n');
                page.pair(3, name, lines.next().unwrap_or_default());
                lines.for_each(|line| page.line(3, format_args!("\t{line}")));
                continue;
            }
            page.pair(3, name, self.source(container, from));
        }
    }

    /// Where a variable gets its value from.
    fn source(&self, container: &Value, from: &Value) -> String {
        let key_of = |source: &Value, place: &str| {
            let (key, name) = (text(&source["key"]), text(&source["name"]));
            let optional = truth(&source["optional"]);
            format!("<set to the key '{key}' {place} '{name}'>\tOptional: {optional}")
        };
        let field = &from["fieldRef"];
        if field.is_object() {
            let path = text(&field["fieldPath"]);
            let value = self.pod.and_then(|pod| pod_field(pod, path));
            let version = text(&field["apiVersion"]);
            return format!("{} ({version}:{path})", value.unwrap_or_default());
        }
        let resource = &from["resourceFieldRef"];
        if resource.is_object() {
            let name = text(&resource["resource"]);
            let value = resource_value(container, resource).unwrap_or_default();
            let value = match (value.as_str(), name) {
                ("0", "limits.cpu" | "limits.memory") => "node allocatable",
                (value, _) => value,
            };
            return format!("{value} ({name})");
        }
        if from["secretKeyRef"].is_object() {
            return key_of(&from["secretKeyRef"], "in secret");
        }
        key_of(&from["configMapKeyRef"], "of config map")
    }
}

fn basics(page: &mut Page, container: &Value, status: Option<&Value>) {
    if let Some(status) = status {
        page.pair(2, "Container ID", text(&status["containerID"]));
    }
    page.pair(2, "Image", text(&container["image"]));
    if let Some(status) = status {
        page.pair(2, "Image ID", text(&status["imageID"]));
    }
    for (one, several, field) in [
        ("Port", "Ports", "containerPort"),
        ("Host Port", "Host Ports", "hostPort"),
    ] {
        let ports: Vec<String> = items(&container["ports"])
            .iter()
            .map(|port| format!("{}/{}", number(&port[field]), text(&port["protocol"])))
            .collect();
        let label = if ports.len() > 1 { several } else { one };
        page.pair(2, label, or_none(&ports.join(", ")));
    }
    let profile = &container["securityContext"]["seccompProfile"];
    if profile.is_object() {
        page.pair(2, "SeccompProfile", text(&profile["type"]));
        page.pair_if(3, "LocalhostProfile", text(&profile["localhostProfile"]));
    }
}

fn words(page: &mut Page, label: &str, list: &Value) {
    if !items(list).is_empty() {
        page.line(2, format_args!("{label}:"));
    }
    for word in items(list) {
        text(word).split('\n').for_each(|line| page.line(3, line));
    }
}

/// Requests and limits.
pub(super) fn resources(page: &mut Page, level: usize, resources: &Value) {
    for (label, name) in [("Limits", "limits"), ("Requests", "requests")] {
        let entries = sorted(&resources[name]);
        if !entries.is_empty() {
            page.line(level, format_args!("{label}:"));
        }
        for (name, value) in entries {
            page.pair(level + 1, name, quantity(value));
        }
    }
}

fn probe(probe: &Value) -> String {
    let count = |name: &str| number(&probe[name]);
    let attributes = format!(
        "delay={}s timeout={}s period={}s #success={} #failure={}",
        count("initialDelaySeconds"),
        count("timeoutSeconds"),
        count("periodSeconds"),
        count("successThreshold"),
        count("failureThreshold"),
    );
    let (http, tcp, grpc) = (&probe["httpGet"], &probe["tcpSocket"], &probe["grpc"]);
    let what = if probe["exec"].is_object() {
        format!("exec {}", super::read::go_list(&probe["exec"]["command"]))
    } else if http.is_object() {
        let scheme = text(&http["scheme"]).to_lowercase();
        let (host, port) = (text(&http["host"]), shown(&http["port"]));
        let path = match text(&http["path"]) {
            path if path.is_empty() || path.starts_with('/') => path.to_owned(),
            path => format!("/{path}"),
        };
        format!("http-get {scheme}://{host}:{port}{path}")
    } else if tcp.is_object() {
        format!("tcp-socket {}:{}", text(&tcp["host"]), shown(&tcp["port"]))
    } else if grpc.is_object() {
        format!(
            "grpc <pod>:{} {}",
            number(&grpc["port"]),
            text(&grpc["service"])
        )
    } else {
        "unknown".to_owned()
    };
    format!("{what} {attributes}")
}

fn sources(page: &mut Page, sources: &Value) {
    if items(sources).is_empty() {
        return;
    }
    page.line(2, "Environment Variables from:");
    for source in items(sources) {
        let (kind, reference) = match &source["configMapRef"] {
            Value::Null => ("Secret", &source["secretRef"]),
            reference => ("ConfigMap", reference),
        };
        let prefix = match text(&source["prefix"]) {
            "" => String::new(),
            prefix => format!(" with prefix '{prefix}'"),
        };
        let (name, optional) = (text(&reference["name"]), truth(&reference["optional"]));
        page.line(
            3,
            format_args!("{name}\t{kind}{prefix}\tOptional: {optional}"),
        );
    }
}

fn mounts(page: &mut Page, container: &Value) {
    let by_path = |list: &Value, path: &str| {
        let mut found: Vec<Value> = items(list).to_vec();
        found.sort_by(|one, other| text(&one[path]).cmp(text(&other[path])));
        found
    };
    let mounts = by_path(&container["volumeMounts"], "mountPath");
    let none = if mounts.is_empty() { "\t<none>" } else { "" };
    page.line(2, format_args!("Mounts:{none}"));
    for mount in mounts {
        let mode = if truth(&mount["readOnly"]) {
            "ro"
        } else {
            "rw"
        };
        let part = match text(&mount["subPath"]) {
            "" => String::new(),
            path => format!(",path={path:?}"),
        };
        let (path, name) = (text(&mount["mountPath"]), text(&mount["name"]));
        page.line(3, format_args!("{path} from {name} ({mode}{part})"));
    }
    let devices = by_path(&container["volumeDevices"], "devicePath");
    if !devices.is_empty() {
        page.line(2, format_args!("Devices:{none}"));
    }
    for device in devices {
        let (path, name) = (text(&device["devicePath"]), text(&device["name"]));
        page.line(3, format_args!("{path} from {name}"));
    }
}

/// A field of a pod that a variable may ask for, as far as kubectl resolves it.
fn pod_field(pod: &Value, path: &str) -> Option<String> {
    let metadata = &pod["metadata"];
    match path.strip_prefix("metadata.")? {
        name @ ("name" | "namespace" | "uid") => Some(text(&metadata[name]).to_owned()),
        _ => None,
    }
}

/// A request or limit of a container, in units of the divisor.
fn resource_value(container: &Value, source: &Value) -> Option<String> {
    let (list, name) = text(&source["resource"]).split_once('.')?;
    let read = |value: &Value| shown(value).parse::<Quantity>().ok();
    let found = read(&container["resources"][list][name]).unwrap_or_else(|| 0.into());
    let divisor = read(&source["divisor"]).filter(|divisor| !divisor.is_zero());
    let divisor = divisor.unwrap_or_else(|| 1.into());
    let rounded_up = |value: i64, unit: i64| value.checked_add(unit - 1)?.checked_div(unit);
    let units = if name == "cpu" {
        rounded_up(found.milli_value(), divisor.milli_value())
    } else {
        rounded_up(found.value(), divisor.value())
    };
    units.map(|units| units.to_string())
}
