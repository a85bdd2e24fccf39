//! What Secrets hold is never shown: not in statuses, not in Events, not in differences, not in logs.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::*;

const PLAIN: &str = "hush-hush-42";
const ENCODED: &str = "aHVzaC1odXNoLTQy";

/// What the program logs at most: of its clients, not the refusals of servers, which quote what they refuse.
const FILTER: &str = "trace,hyper=info,hyper_util=info,h2=info,rustls=info,kube=info,tower=info";

/// Everything that is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A template that wants an object, with a name of its own.
fn about(name: &str, record: Option<&str>, object: Value) -> Value {
    let mut wanted = json!({"complianceType": "musthave", "objectDefinition": object});
    if let Some(record) = record {
        wanted["recordDiff"] = json!(record);
    }
    json!({"objectDefinition": {
        "apiVersion": POLICY_API, "kind": "ConfigurationPolicy", "metadata": {"name": name},
        "spec": {"remediationAction": "inform", "severity": "low", "object-templates": [wanted]},
    }})
}

fn object(kind: &str, name: &str, field: &str, value: Value) -> Value {
    json!({"apiVersion": "v1", "kind": kind,
        "metadata": {"name": name, "namespace": "default"}, (field): value})
}

#[tokio::test(start_paused = true)]
async fn what_secrets_hold_is_shown_nowhere() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::new(FILTER))
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let bed = Bed::start().await;
    let secrets = bed.on_member("v1", "Secret", "default");
    let params = PostParams::default();
    for (name, value) in [("own", ENCODED), ("other", "b3RoZXI=")] {
        let secret = object("Secret", name, "data", json!({"p": value}));
        let secret = serde_json::from_value(secret).unwrap();
        secrets.create(&params, &secret).await.unwrap();
    }
    bed.create_config_map("copy", json!({"p": "wrong"})).await;
    let read = "{{ fromSecret \"default\" \"own\" \"p\" | base64dec }}";
    let failing = "{{ fromSecret \"default\" \"own\" \"p\" | base64dec | atoi | toYaml }}";
    let duration = "{{ (mustToDate \"2006\" (fromSecret \"default\" \"own\" \"p\" | base64dec)) }}";
    let pod = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "refused", "namespace": "default"},
        "spec": {"type": read, "ports": [{"port": 80}]}});
    let wanted = object("Secret", "other", "data", json!({"p": ENCODED}));
    let of_strings = object("Secret", "other", "stringData", json!({"p": PLAIN}));
    // The server refuses a Service whose type is what the Secret holds, and says it back.
    let mut refused = about("refused", None, pod);
    refused["objectDefinition"]["spec"]["remediationAction"] = json!("enforce");
    bed.replicate(json!({"policy-templates": [
        about("plain", None, wanted.clone()),
        about("logged", Some("Log"), wanted),
        about("strings", Some("Log"), of_strings),
        about("copied", None, object("ConfigMap", "copy", "data", json!({"p": read}))),
        about("copied-to-log", Some("Log"), object("ConfigMap", "copy", "data", json!({"p": read}))),
        about("failing", None, object("ConfigMap", "copy", "data", json!({"p": failing}))),
        about("date", None, object("ConfigMap", "copy", "data", json!({"p": duration}))),
        refused,
    ]}))
    .await;
    let all_said = async |count: usize| {
        bed.world
            .until("everything is reported".to_owned(), async || {
                let replica = bed.replicas().get(REPLICA).await.unwrap();
                let status = replica.data["status"].clone();
                let details = status["details"].as_array().cloned().unwrap_or_default();
                let said = details.iter().filter(|it| it["history"][0].is_object());
                let is_there = said.count() == count
                    && status["observedGeneration"] == json!(replica.metadata.generation);
                is_there.then_some(()).ok_or(status.to_string())
            })
            .await;
    };
    all_said(8).await;
    bed.world.pass(5).await;

    let mut shown = serde_json::to_string(&bed.replicas().get(REPLICA).await.unwrap()).unwrap();
    let everything = kube::api::ListParams::default();
    for (client, kinds) in [
        (&bed.member, &["Policy", "ConfigurationPolicy"][..]),
        (&bed.world.client, &["Policy"]),
    ] {
        for kind in kinds {
            let objects = api(client, POLICY_API, kind, MEMBER);
            let objects = objects.list(&everything).await.unwrap();
            shown += &serde_json::to_string(&objects.items).unwrap();
        }
        let events = api(client, "v1", "Event", MEMBER);
        let events = events.list(&everything).await.unwrap();
        shown += &serde_json::to_string(&events.items).unwrap();
    }
    // What people wrote into the policy in clear is not ours to hide.
    let literal = |text: &str| {
        let spelled = [format!("\"p\":\"{PLAIN}\""), format!("\"p\":\"{ENCODED}\"")];
        spelled
            .iter()
            .fold(text.to_owned(), |text, it| text.replace(it, ""))
    };
    for (place, text) in [
        ("an object", literal(&shown)),
        (
            "the log",
            String::from_utf8_lossy(&log.0.lock()).into_owned(),
        ),
    ] {
        for value in [PLAIN, ENCODED] {
            let found = text.find(value);
            let around = found.map(|at| {
                let start = text.floor_char_boundary(at.saturating_sub(300));
                let end = text.floor_char_boundary((at + 100).min(text.len()));
                &text[start..end]
            });
            assert!(found.is_none(), "{place} shows {value}: {around:?}");
        }
    }
    assert!(
        shown.contains("(redacted)"),
        "errors quote what they do not like"
    );
}
