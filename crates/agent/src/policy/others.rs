//! Evaluates templates that are not ConfigurationPolicies.

use bellwether_api::policy::{CertificatePolicy, OperatorPolicy};
use bellwether_api::{Kind as _, KindNames};
use bellwether_policy::compliance::Message;
use bellwether_policy::config_policy::Facts;
use bellwether_policy::{certificate, operator};
use bellwether_runtime::{Next, RequestError};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::evaluate::{Evaluator, RETRY};
use super::events;
use super::member::{Request, core_resource, id_of, resource_of};

impl Evaluator<'_> {
    /// Evaluates the object of a template if this agent knows its kind. Returns it with its status, and when it
    /// is to be evaluated again.
    pub(super) async fn evaluate_kind(
        &self,
        kind: &str,
        live: Value,
    ) -> Result<(Value, Next), RequestError> {
        match kind {
            "ConfigurationPolicy" => {
                let (policy, next) = self.evaluate(live).await?;
                Ok((serde_json::to_value(policy).unwrap_or(Value::Null), next))
            }
            "CertificatePolicy" => self.evaluate_certificates(live).await,
            "OperatorPolicy" => self.evaluate_operator(live).await,
            _ => Ok((live, None)),
        }
    }

    /// Evaluates a CertificatePolicy. Returns it with its status, and when a certificate is due.
    pub(super) async fn evaluate_certificates(
        &self,
        live: Value,
    ) -> Result<(Value, Next), RequestError> {
        let policy: CertificatePolicy = read(&live)?;
        let answers = self.answers;
        let namespaces = core_resource("Namespace", "namespaces", false);
        let secrets = core_resource("Secret", "secrets", true);
        answers.track_kind(&namespaces).await;
        answers.track_kind(&secrets).await;
        let all = answers.member.list(&namespaces, "", "").await?;
        // A selector that cannot be read selects nothing, which is reported.
        let selected = certificate::namespaces(&policy, &all).unwrap_or_default();
        let mut certificates = Vec::new();
        for namespace in &selected {
            let selector = certificate::selector(&policy);
            let found = answers.member.list(&secrets, namespace, &selector).await?;
            certificates.extend(found.iter().filter_map(certificate::certificate));
        }
        let report = certificate::evaluate(&policy, &selected, &certificates, self.moment());
        let status = serde_json::to_value(&report.status).unwrap_or(Value::Null);
        let names = CertificatePolicy::NAMES;
        let message = report.is_news.then_some(report.message);
        let live = self.write_report(names, live, status, message).await?;
        Ok((live, report.due))
    }

    /// Evaluates an OperatorPolicy.
    pub(super) async fn evaluate_operator(
        &self,
        live: Value,
    ) -> Result<(Value, Next), RequestError> {
        let policy: OperatorPolicy = read(&live)?;
        let name = policy.metadata.name.clone().unwrap_or_default();
        if let Some(end) = self.rest(&name, policy.metadata.generation) {
            return Ok((live, Some(end)));
        }
        let repairs = self.answers.repairs();
        let (now, policy) = (self.moment(), &policy);
        let start = || |facts: &mut Facts| operator::evaluate(policy, facts, &self.world(), now);
        let is_watched = |question: &_| !operator::is_unwatchable(question);
        let conclusion = self.answered(start, is_watched).await?;
        self.note_repairs(&name, repairs);
        let mut live = live;
        for report in conclusion.reports {
            let status = serde_json::to_value(&report.status).unwrap_or(Value::Null);
            let message = report.is_news.then_some(report.message);
            let names = OperatorPolicy::NAMES;
            live = self.write_report(names, live, status, message).await?;
        }
        let retry = conclusion.retries.then(|| self.now.checked_add(RETRY).ok());
        let next = [retry.flatten(), conclusion.again_at].into_iter();
        Ok((live, next.flatten().min()))
    }

    /// Writes a status if it differs, with an event if there is a message.
    async fn write_report(
        &self,
        names: KindNames,
        mut live: Value,
        status: Value,
        message: Option<String>,
    ) -> Result<Value, RequestError> {
        let member = self.answers.member;
        if live["status"] == status {
            return Ok(live);
        }
        if let Some(text) = message {
            let newest = status["history"][0]["lastTimestamp"].as_str();
            let at = newest.and_then(|at| at.parse().ok()).unwrap_or(self.now);
            let message = Message { at, text };
            events::record(member, self.policy, &live, &message).await;
        }
        live["status"] = status;
        let resource = resource_of(names);
        let name = live["metadata"]["name"].as_str().unwrap_or_default();
        let id = id_of(&resource, &member.cluster, name);
        let request = Request::ReplaceStatus;
        let answers = self.answers;
        answers.put(request, &resource, &id, &live).await
    }
}

fn read<K: DeserializeOwned>(live: &Value) -> Result<K, RequestError> {
    serde_json::from_value(live.clone())
        .map_err(|error| RequestError::Unreached(format!("unreadable policy: {error}")))
}
