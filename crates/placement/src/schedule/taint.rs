//! Taints of clusters and what placements tolerate.

use bellwether_api::cluster;
use jiff::{SignedDuration, Timestamp};

use super::cluster::{Cluster, Taint, TaintEffect};
use super::placement::Misconfigured;

/// The part of a placement that conditions name.
const PART: &str = "TaintToleration";

/// Taints that do not keep a placement away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Toleration {
    /// Empty: any.
    key: String,
    /// None: any.
    value: Option<String>,
    /// None: any.
    effect: Option<TaintEffect>,
    /// For how long after a taint appeared.
    seconds: Option<i64>,
}

impl Toleration {
    pub(super) fn new(toleration: &cluster::Toleration) -> Result<Self, Misconfigured> {
        let problem = |message: String| Err(Misconfigured::new(PART, message));
        let key = toleration.key.clone().unwrap_or_default();
        let value = toleration.value.clone().unwrap_or_default();
        let value = match toleration.operator.as_str() {
            "" | "Equal" if key.is_empty() => {
                return problem("If the key is empty, operator must be Exists.".to_owned());
            }
            "" | "Equal" => Some(value),
            "Exists" if value.is_empty() => None,
            "Exists" => {
                let message = "If the operator is Exists, the value should be empty.";
                return problem(message.to_owned());
            }
            other => return problem(format!("incorrect toleration operator: {other}")),
        };
        let effect = match toleration.effect.as_ref().map(cluster::TaintEffect::as_str) {
            None | Some("") => None,
            Some(effect) => match TaintEffect::read(effect) {
                Some(effect) => Some(effect),
                None => return problem(format!("incorrect toleration effect: {effect}")),
            },
        };
        Ok(Self {
            key,
            value,
            effect,
            seconds: toleration.toleration_seconds,
        })
    }

    fn is_about(&self, taint: &Taint) -> bool {
        (self.key.is_empty() || self.key == taint.key)
            && self
                .value
                .as_ref()
                .is_none_or(|value| *value == taint.value)
            && self.effect.is_none_or(|effect| effect == taint.effect)
    }

    /// Until when it tolerates a taint that it is about.
    fn until(&self, taint: &Taint) -> Timestamp {
        let Some(seconds) = self.seconds else {
            return Timestamp::MAX;
        };
        // Without a time the taint counts as having been there always.
        let added = taint.time_added.unwrap_or(Timestamp::MIN);
        let end = added.checked_add(SignedDuration::from_secs(seconds));
        end.unwrap_or(Timestamp::MAX)
    }
}

/// Until when all taints of a cluster are tolerated, none forever; or the first that is not.
pub(super) fn tolerated<'a>(
    tolerations: &[Toleration],
    cluster: &'a Cluster,
    is_decided: bool,
    now: Timestamp,
) -> Result<Option<Timestamp>, &'a Taint> {
    let mut end = Timestamp::MAX;
    for taint in &cluster.taints {
        let is_harmless = match taint.effect {
            TaintEffect::PreferNoSelect => true,
            TaintEffect::NoSelectIfNew => is_decided,
            TaintEffect::NoSelect => false,
        };
        if is_harmless {
            continue;
        }
        let about = tolerations.iter().filter(|it| it.is_about(taint));
        let until = about.map(|it| it.until(taint)).max();
        match until {
            Some(until) if now < until => end = end.min(until),
            _ => return Err(taint),
        }
    }
    Ok((end < Timestamp::MAX).then_some(end))
}
