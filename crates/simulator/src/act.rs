//! Carrying out plans: requests to the cluster, and taking in their answers.

use bellwether_runtime::{EventWrite, ReconcileError, Retry, event_namespace};
use futures::future::join_all;
use http::Request;
use kube::Client;
use serde::Serialize;
use serde_json::{Value, json};

use crate::events::as_occurrence;
use crate::kind::{Kind, Reference};
use crate::member::Member;
use crate::plan::{Action, Create, Event, Part};

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ActError {
    /// The server refused, or did not answer.
    #[error(transparent)]
    Client(#[from] Box<kube::Error>),
    /// A request could not even be put together.
    #[error("cannot build a request: {0}")]
    Request(#[from] http::Error),
    /// An answer is not what it should be.
    #[error("cannot understand an answer: {0}")]
    Answer(#[from] serde_json::Error),
}

impl ReconcileError for ActError {
    fn retry(&self) -> Retry {
        match self {
            Self::Client(error) => error.retry(),
            Self::Request(_) | Self::Answer(_) => Retry::Slowly,
        }
    }

    fn label(&self) -> &'static str {
        match self {
            Self::Client(error) => error.label(),
            Self::Request(_) => "request",
            Self::Answer(_) => "unreadable",
        }
    }
}

impl ActError {
    /// The machine-readable reason of a refusal, and its words.
    fn refusal(&self) -> Option<(&str, &str)> {
        match self {
            Self::Client(error) => match error.as_ref() {
                kube::Error::Api(status) => Some((&status.reason, &status.message)),
                _ => None,
            },
            _ => None,
        }
    }

    fn is(&self, reason: &str) -> bool {
        self.refusal().is_some_and(|(found, _)| found == reason)
    }
}

impl Member {
    /// Does everything in order; creations and deletions that stand together at once.
    pub(crate) async fn carry_out(&self, actions: Vec<Action>) -> Result<(), ActError> {
        let _writing = self.writing();
        let (events, actions): (Vec<_>, Vec<_>) = actions
            .into_iter()
            .partition(|action| matches!(action, Action::RecordEvent(_)));
        for group in actions.chunk_by(are_independent) {
            let results = join_all(group.iter().map(|action| self.perform(action))).await;
            results.into_iter().collect::<Result<(), _>>()?;
        }
        let events = events.iter().filter_map(|action| match action {
            Action::RecordEvent(event) => Some(self.record_event(event)),
            _ => None,
        });
        join_all(events).await;
        Ok(())
    }

    async fn perform(&self, action: &Action) -> Result<(), ActError> {
        match action {
            Action::Create(create) => self.create(create).await,
            Action::Patch {
                subject,
                part,
                patch,
            } => self.patch(subject, *part, patch).await,
            Action::Delete { subject, grace } => self.delete(subject, *grace).await,
            Action::Bind { pod, node } => self.bind(pod, node).await,
            Action::RecordEvent(event) => {
                self.record_event(event).await;
                Ok(())
            }
        }
    }

    async fn create(&self, create: &Create) -> Result<(), ActError> {
        let address = path(create.kind, &create.namespace, None, "");
        let mut object = create.object.clone();
        object["apiVersion"] = create.kind.api_version().into();
        object["kind"] = create.kind.names().kind.into();
        let request = request("POST", &address, create.kind, "application/json", &object)?;
        match send(self.client(), request).await {
            Ok(created) => {
                if let Some(owner) = &create.owner {
                    self.set_trouble(&owner.uid, None);
                }
                if let Some(event) = &create.event {
                    let name = created["metadata"]["name"].as_str().unwrap_or_default();
                    self.record_event(&filled(event, name)).await;
                }
                self.take_in(create.kind, &created)
            }
            Err(error) => self.could_not_create(create, error).await,
        }
    }

    async fn could_not_create(&self, create: &Create, error: ActError) -> Result<(), ActError> {
        let Some((reason, message)) = error.refusal() else {
            return Err(error);
        };
        if message.contains("because it is being terminated") {
            // The namespace goes, and everything in it: there is nothing to be done or said.
            return Ok(());
        }
        if reason != "AlreadyExists" {
            if let Some(owner) = &create.owner {
                self.set_trouble(&owner.uid, Some(message));
            }
            if let Some(event) = &create.failed {
                self.record_event(&filled(event, message)).await;
            }
        }
        Err(error)
    }

    async fn patch(&self, subject: &Reference, part: Part, patch: &Value) -> Result<(), ActError> {
        let subresource = match part {
            Part::Main => "",
            Part::Status => "status",
            Part::Scale => "scale",
        };
        let key = &subject.key;
        let address = path(subject.kind, &key.namespace, Some(&key.name), subresource);
        let mut patch = patch.clone();
        if part != Part::Scale {
            // Only if it is still the same object.
            patch["metadata"]["uid"] = subject.uid.as_str().into();
        }
        let request = request(
            "PATCH",
            &address,
            subject.kind,
            "application/merge-patch+json",
            &patch,
        )?;
        match send(self.client(), request).await {
            Ok(_) if part == Part::Scale => Ok(()),
            Ok(changed) => self.take_in(subject.kind, &changed),
            Err(error) if error.is("NotFound") => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn delete(&self, subject: &Reference, grace: Option<i64>) -> Result<(), ActError> {
        let key = &subject.key;
        let address = path(subject.kind, &key.namespace, Some(&key.name), "");
        let mut options = json!({
            "kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": subject.uid},
            "propagationPolicy": "Background",
        });
        if let Some(grace) = grace {
            options["gracePeriodSeconds"] = grace.into();
        }
        let request = request(
            "DELETE",
            &address,
            subject.kind,
            "application/json",
            &options,
        )?;
        match send(self.client(), request).await {
            // Some kinds answer with the object, which may have to wait for its end.
            Ok(answer) if answer["kind"] == subject.kind.names().kind => {
                let finalizers = answer["metadata"]["finalizers"].as_array();
                let held = finalizers.is_some_and(|finalizers| !finalizers.is_empty());
                let waits = answer["metadata"]["deletionGracePeriodSeconds"].as_i64() > Some(0);
                if held || (waits && grace != Some(0)) {
                    self.take_in(subject.kind, &answer)
                } else {
                    self.take_out(subject, &answer);
                    Ok(())
                }
            }
            Ok(_) => Ok(()),
            Err(error) if error.is("NotFound") || error.is("Conflict") => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn bind(&self, pod: &Reference, node: &str) -> Result<(), ActError> {
        let address = path(
            Kind::Pod,
            &pod.key.namespace,
            Some(&pod.key.name),
            "binding",
        );
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": &*pod.key.name, "namespace": &*pod.key.namespace, "uid": pod.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let request = request("POST", &address, Kind::Pod, "application/json", &binding)?;
        match send(self.client(), request).await {
            Ok(_) => Ok(()),
            Err(error) if error.is("NotFound") => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Writes an event. One that cannot be written is no reason to stop.
    pub(crate) async fn record_event(&self, event: &Event) {
        let (write, namespace) = as_occurrence(event, |occurrence| {
            let write = self.correlator().lock().correlate(occurrence, self.now());
            (write, event_namespace(occurrence.about).to_owned())
        });
        let Some(write) = write else {
            return;
        };
        let base = format!("/api/v1/namespaces/{namespace}/events");
        let manager = event.source.component;
        let written = match &write {
            EventWrite::Create(object) => {
                let uri = format!("{base}?fieldManager={manager}");
                self.send_event("POST", &uri, "application/json", &**object)
                    .await
            }
            EventWrite::Patch { name, patch } => {
                let uri = format!("{base}/{name}?fieldManager={manager}");
                self.send_event("PATCH", &uri, "application/merge-patch+json", patch)
                    .await
            }
        };
        if let Err(error) = written {
            // It may have expired; the next time it will be written again.
            as_occurrence(event, |it| self.correlator().lock().forget(it));
            tracing::debug!(cluster = self.name(), reason = event.reason, %error, "event not written");
        }
    }

    async fn send_event(
        &self,
        method: &str,
        uri: &str,
        content_type: &str,
        body: &impl Serialize,
    ) -> Result<(), ActError> {
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header("content-type", content_type)
            .body(serde_json::to_vec(body)?)?;
        send(self.client(), request).await.map(drop)
    }
}

/// Whether two things can be done at the same time.
fn are_independent(one: &Action, other: &Action) -> bool {
    matches!(
        (one, other),
        (Action::Create(_), Action::Create(_)) | (Action::Delete { .. }, Action::Delete { .. })
    )
}

fn filled(event: &Event, text: &str) -> Event {
    Event {
        message: event.message.replacen("{}", text, 1),
        ..event.clone()
    }
}

/// The path of a collection, an object, or a part of one.
fn path(kind: Kind, namespace: &str, name: Option<&str>, subresource: &str) -> String {
    let names = kind.names();
    let mut path = if names.group.is_empty() {
        format!("/api/{}", names.version)
    } else {
        format!("/apis/{}/{}", names.group, names.version)
    };
    if !namespace.is_empty() {
        path.push_str("/namespaces/");
        path.push_str(namespace);
    }
    for part in [names.plural, name.unwrap_or_default(), subresource] {
        if !part.is_empty() {
            path.push('/');
            path.push_str(part);
        }
    }
    path
}

fn request(
    method: &str,
    path: &str,
    kind: Kind,
    content_type: &str,
    body: &Value,
) -> Result<Request<Vec<u8>>, http::Error> {
    let manager = match (kind, path.rsplit('/').next()) {
        (Kind::Pod, Some("status")) => "kubelet",
        (Kind::Pod, Some("binding")) => "kube-scheduler",
        _ => "kube-controller-manager",
    };
    Request::builder()
        .method(method)
        .uri(format!("{path}?fieldManager={manager}"))
        .header("content-type", content_type)
        .body(body.to_string().into_bytes())
}

async fn send(client: Client, request: Request<Vec<u8>>) -> Result<Value, ActError> {
    let text = client.request_text(request).await.map_err(Box::new)?;
    Ok(serde_json::from_str(&text)?)
}
