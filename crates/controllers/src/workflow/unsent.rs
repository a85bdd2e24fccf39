//! What a rehearsal does not send: requests, mail and commits that actions would send outside of the hub.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

/// Records what would be sent. Cheap to clone; all clones are one.
#[derive(Debug, Clone, Default)]
pub struct Unsent {
    recorded: Arc<Mutex<BTreeSet<String>>>,
}

impl Unsent {
    /// Returns what would have been sent so far, each once: `send POST https://…`.
    pub fn recorded(&self) -> BTreeSet<String> {
        self.recorded.lock().clone()
    }

    /// Refuses an action that sends something outside of the hub, and records it. Other actions pass.
    pub(crate) fn check(&self, action: &str, params: &Value) -> Result<(), String> {
        let Some(what) = sent_by(action, params) else {
            return Ok(());
        };
        let refused = format!("this is a rehearsal: it does not {what}");
        self.recorded.lock().insert(what);
        Err(refused)
    }
}

/// What an action sends outside of the hub, if it does.
fn sent_by(action: &str, params: &Value) -> Option<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match action {
        "http.do" => {
            let method = params["method"].as_str().unwrap_or("GET");
            Some(format!(
                "send {method} {}",
                without_query(&text(&params["url"]))
            ))
        }
        "metrics.promCheck" => Some(format!("ask {}", text(&params["metricEndpoint"]))),
        "email.send" => Some(format!("send mail by {}", text(&params["from"]["host"]))),
        "git.push" => Some(format!("push to {}", without_query(&text(&params["url"])))),
        _ => None,
    }
}

/// An address without its query, which may have a token.
fn without_query(url: &str) -> &str {
    url.split('?').next().unwrap_or(url)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_leaves_the_hub_is_refused() {
        let unsent = Unsent::default();
        let post = json!({"method": "POST", "url": "https://a.example/x?token=secret"});
        for action in ["kube.apply", "kube.read", "query.listResources"] {
            assert_eq!(unsent.check(action, &post), Ok(()), "{action}");
        }
        assert!(unsent.recorded().is_empty());
        let check = |action: &str, params: Value, expected: &str| {
            let error = unsent.check(action, &params).unwrap_err();
            assert!(error.ends_with(expected), "{error}");
            assert!(unsent.recorded().contains(expected));
        };
        check("http.do", post, "send POST https://a.example/x");
        check("http.do", json!({"url": "http://b"}), "send GET http://b");
        check(
            "git.push",
            json!({"url": "https://git.example/apps.git"}),
            "push to https://git.example/apps.git",
        );
        check(
            "email.send",
            json!({"from": {"host": "mail.example"}}),
            "send mail by mail.example",
        );
        check(
            "metrics.promCheck",
            json!({"metricEndpoint": "http://prometheus"}),
            "ask http://prometheus",
        );
    }
}
