//! Rollout strategies as users write them.

use bellwether_api::cluster::{
    MandatoryDecisionGroup, RolloutAll, RolloutProgressive, RolloutProgressivePerGroup,
    RolloutStrategy, RolloutStrategyType,
};
use bellwether_api::meta::{IntOrString, Unknown};
use bellwether_json::duration::{DurationError, GoDuration};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::limits::RolloutError;

/// The shape of a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// Every cluster at once.
    #[default]
    All,
    /// Some clusters at a time.
    Progressive,
    /// One group at a time.
    ProgressivePerGroup,
}

/// A number of clusters: `3`, or `"30%"` of those in question, rounded up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Threshold {
    /// So many.
    Number(i64),
    /// A percentage, or digits in quotes. Read when it is used.
    Text(String),
}

/// A group that goes before all that are not mandatory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct MandatoryGroup {
    /// Every group of this name; wins over the index.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group_name: String,
    /// The group with this index, when there is no name.
    pub group_index: i64,
}

/// How to roll out. Numbers and deadlines are kept as written and checked by each decision.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Strategy {
    /// The shape.
    pub kind: Kind,
    /// How long a cluster must have been well before it makes room.
    pub min_success_time: GoDuration,
    /// How long a cluster may take: `"None"`, empty, or a duration.
    pub progress_deadline: String,
    /// How many clusters may fail without stopping the rollout: of all, or of each group.
    pub max_failures: Option<Threshold>,
    /// How many clusters may be in flight.
    pub max_concurrency: Option<Threshold>,
    /// The groups that go first, in the order of their indexes, and tolerate no failure.
    pub mandatory_decision_groups: Vec<MandatoryGroup>,
}

/// The fields of `all`, `progressive` and `progressivePerGroup` together.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct Config {
    min_success_time: Option<GoDuration>,
    /// A number instead of a duration; only in the flat notation.
    min_success_time_seconds: Option<i64>,
    progress_deadline: Option<String>,
    max_failures: Option<Threshold>,
    max_concurrency: Option<Threshold>,
    mandatory_decision_groups: Option<Vec<MandatoryGroup>>,
}

impl Strategy {
    /// Reads `rolloutStrategy` as it stands in resources. Only the part that `type` names is
    /// read; nothing at all means everything at once.
    pub fn from_json(strategy: &Value) -> Result<Self, RolloutError> {
        let kind = kind(strategy)?;
        let part = match kind {
            Kind::All => "all",
            Kind::Progressive => "progressive",
            Kind::ProgressivePerGroup => "progressivePerGroup",
        };
        let config = match strategy.get(part) {
            None | Some(Value::Null) => Config::default(),
            Some(config) => read(config)?,
        };
        if config.min_success_time_seconds.is_some() {
            let problem = "unknown field `minSuccessTimeSeconds`";
            return Err(RolloutError::Strategy(problem.to_owned()));
        }
        if kind != Kind::Progressive && config.max_concurrency.is_some() {
            let problem = format!("unknown field `{part}.maxConcurrency`");
            return Err(RolloutError::Strategy(problem));
        }
        Ok(Self::new(kind, config))
    }

    /// Reads the flat notation, with all fields beside `type`.
    pub fn from_flat_json(strategy: &Value) -> Result<Self, RolloutError> {
        let kind = kind(strategy)?;
        let mut config = strategy.clone();
        if let Some(fields) = config.as_object_mut() {
            fields.remove("type");
        }
        Ok(Self::new(kind, read(&config)?))
    }

    fn new(kind: Kind, config: Config) -> Self {
        let seconds = config.min_success_time_seconds.unwrap_or_default();
        Self {
            kind,
            min_success_time: config
                .min_success_time
                .unwrap_or_else(|| GoDuration::from_secs(seconds)),
            progress_deadline: config.progress_deadline.unwrap_or_default(),
            max_failures: config.max_failures,
            max_concurrency: config.max_concurrency,
            mandatory_decision_groups: config.mandatory_decision_groups.unwrap_or_default(),
        }
    }
}

impl TryFrom<&RolloutStrategy> for Strategy {
    type Error = RolloutError;

    /// Reads the strategy of a resource. Only the part that its type names is read.
    fn try_from(written: &RolloutStrategy) -> Result<Self, RolloutError> {
        let (kind, config) = match &written.kind {
            RolloutStrategyType::All => (Kind::All, written.all.as_ref().map(of_all)),
            RolloutStrategyType::Progressive => {
                let part = written.progressive.as_ref();
                (Kind::Progressive, part.map(of_progressive))
            }
            RolloutStrategyType::ProgressivePerGroup => {
                let part = written.progressive_per_group.as_ref();
                (Kind::ProgressivePerGroup, part.map(of_groups))
            }
            RolloutStrategyType::Other(other) if other.is_empty() => (Kind::All, None),
            RolloutStrategyType::Other(other) => {
                return Err(RolloutError::UnknownType(other.clone()));
            }
        };
        Ok(Self::new(kind, config.transpose()?.unwrap_or_default()))
    }
}

fn of_all(part: &RolloutAll) -> Result<Config, RolloutError> {
    known(&part.other)?;
    Ok(Config {
        min_success_time: soak(part.min_success_time.as_ref())?,
        progress_deadline: part.progress_deadline.clone(),
        max_failures: part.max_failures.as_ref().map(Threshold::from),
        ..Config::default()
    })
}

fn of_progressive(part: &RolloutProgressive) -> Result<Config, RolloutError> {
    known(&part.other)?;
    Ok(Config {
        min_success_time: soak(part.min_success_time.as_ref())?,
        progress_deadline: part.progress_deadline.clone(),
        max_failures: part.max_failures.as_ref().map(Threshold::from),
        max_concurrency: part.max_concurrency.as_ref().map(Threshold::from),
        mandatory_decision_groups: Some(mandatory(&part.mandatory_decision_groups)?),
        ..Config::default()
    })
}

fn of_groups(part: &RolloutProgressivePerGroup) -> Result<Config, RolloutError> {
    known(&part.other)?;
    Ok(Config {
        min_success_time: soak(part.min_success_time.as_ref())?,
        progress_deadline: part.progress_deadline.clone(),
        max_failures: part.max_failures.as_ref().map(Threshold::from),
        mandatory_decision_groups: Some(mandatory(&part.mandatory_decision_groups)?),
        ..Config::default()
    })
}

fn soak(text: Option<&String>) -> Result<Option<GoDuration>, RolloutError> {
    let duration = text.map(|text| text.parse()).transpose();
    duration.map_err(|error: DurationError| RolloutError::Strategy(error.to_string()))
}

/// Refuses fields that this version does not know.
fn known(other: &Unknown) -> Result<(), RolloutError> {
    match other.keys().next() {
        None => Ok(()),
        Some(field) => Err(RolloutError::Strategy(format!("unknown field `{field}`"))),
    }
}

fn mandatory(written: &[MandatoryDecisionGroup]) -> Result<Vec<MandatoryGroup>, RolloutError> {
    let group = |it: &MandatoryDecisionGroup| {
        known(&it.other)?;
        Ok(MandatoryGroup {
            group_name: it.group_name.clone().unwrap_or_default(),
            group_index: it.group_index.map_or(0, i64::from),
        })
    };
    written.iter().map(group).collect()
}

impl From<&IntOrString> for Threshold {
    fn from(written: &IntOrString) -> Self {
        match written {
            IntOrString::Int(number) => Self::Number(i64::from(*number)),
            IntOrString::String(text) => Self::Text(text.clone()),
        }
    }
}

fn kind(strategy: &Value) -> Result<Kind, RolloutError> {
    match strategy.get("type") {
        None | Some(Value::Null) => Ok(Kind::All),
        Some(Value::String(kind)) => match kind.as_str() {
            "All" | "" => Ok(Kind::All),
            "Progressive" => Ok(Kind::Progressive),
            "ProgressivePerGroup" => Ok(Kind::ProgressivePerGroup),
            other => Err(RolloutError::UnknownType(other.to_owned())),
        },
        Some(other) => Err(RolloutError::UnknownType(other.to_string())),
    }
}

fn read(config: &Value) -> Result<Config, RolloutError> {
    Config::deserialize(config).map_err(|error| RolloutError::Strategy(error.to_string()))
}
