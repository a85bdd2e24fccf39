//! CEL over clusters: `managedCluster`, `scores()` and `parseJSON()`.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use bellwether_cel::{
    Budget, Env, EvalError, Key, LibrarySet, Map, Program, Stage, Text, Type, Value, Vars,
};

/// The variable that holds the whole object of the cluster.
const CLUSTER: &str = "managedCluster";
/// Where `scores()` finds what add-ons gave; no expression can name it.
const SCORES: &str = "$scores";

static ENVIRONMENT: LazyLock<Env> = LazyLock::new(|| {
    let object = Type::map(Type::String, Type::Dyn);
    Env::builder()
        .variable(CLUSTER, object.clone())
        .libraries(LibrarySet::KUBERNETES)
        .method(
            "scores",
            vec![object, Type::String],
            Type::list(Type::Dyn),
            scores,
        )
        .function(
            "parseJSON",
            vec![Type::String],
            Type::Dyn,
            |_, arguments| {
                let text = arguments
                    .first()
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                let json: serde_json::Value = serde_json::from_str(text)
                    .map_err(|error| EvalError::failed(format!("parseJSON: {error}")))?;
                Ok(owned(json))
            },
        )
        .build()
});

fn scores<'a>(vars: &Vars<'a>, arguments: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let name = arguments.get(1).and_then(Value::as_str).unwrap_or_default();
    let found = match vars.get(SCORES) {
        Some(Value::Map(scores)) => scores.get_str(name),
        _ => None,
    };
    found.unwrap_or_else(|| {
        let message = format!("there is no AddOnPlacementScore {name:?} of this cluster");
        Err(EvalError::failed(message))
    })
}

/// JSON that nobody else keeps. Its depth is bounded by the parser it comes from.
fn owned<'a>(json: serde_json::Value) -> Value<'a> {
    match json {
        serde_json::Value::String(text) => Value::text(text),
        serde_json::Value::Array(items) => Value::list(items.into_iter().map(owned).collect()),
        serde_json::Value::Object(fields) => {
            let field =
                |(key, value): (String, _)| (Key::String(Text::Shared(key.into())), owned(value));
            let fields: BTreeMap<_, _> = fields.into_iter().map(field).collect();
            Value::Map(Map::Shared(Arc::new(fields)))
        }
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::from(value),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(number) => Value::from(number),
            None => Value::from(number.as_f64().unwrap_or(f64::NAN)),
        },
    }
}

/// Why an expression is not true of a cluster.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unmet {
    /// It is false, or fails.
    No(String),
    /// Nobody knows: it takes too much.
    OverBudget(String),
}

/// A compiled expression.
#[derive(Debug, Clone)]
pub(super) struct Expression(Program);

impl Expression {
    /// Compiles, or says why not as Kubernetes does.
    pub(super) fn compile(source: &str) -> Result<Self, String> {
        ENVIRONMENT.compile(source).map(Self).map_err(|errors| {
            let stage = match errors.stage() {
                Stage::Compile => "compilation failed",
                Stage::Program => "program instantiation failed",
            };
            format!("{stage}: {errors}")
        })
    }

    /// Why the expression is not true of a cluster; none if it is.
    pub(super) fn unmet(
        &self,
        cluster: &serde_json::Value,
        scores: &serde_json::Value,
        budget: &mut Budget,
    ) -> Option<Unmet> {
        let vars = Vars::new().json(CLUSTER, cluster).json(SCORES, scores);
        let source = self.0.source();
        match self.0.evaluate(&vars, budget) {
            Ok(Value::Bool(true)) => None,
            Ok(Value::Bool(false)) => Some(Unmet::No(format!("expression {source}"))),
            Ok(other) => {
                let kind = other.type_name();
                Some(Unmet::No(format!(
                    "expression {source}, which gives a {kind}, not a bool"
                )))
            }
            Err(error) if error.is_over_budget() => Some(Unmet::OverBudget(format!(
                "expression {source}, which exceeds the CEL evaluation budget"
            ))),
            Err(error) => Some(Unmet::No(format!(
                "expression {source}, which fails: {error}"
            ))),
        }
    }
}
