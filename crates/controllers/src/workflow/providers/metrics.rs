//! Asks Prometheus whether a condition holds, and for how long it has.

use std::collections::BTreeMap;

use bellwether_cue::host::{Budget, Template};
use bellwether_go::url::query_escape;
use bellwether_workflow::{Done, Request, duration};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::http::{Extras, HttpClient};

/// Since when the condition has held, and since when it has not.
const SUCCESS: &str = "metrics.success.time";
const FAILURE: &str = "metrics.fail.time";

/// Asks, and says whether the condition has held for long enough, or failed for too long.
pub async fn check(http: &HttpClient, now: Timestamp, request: &Request) -> Result<Done, String> {
    let params = &request.call.params;
    let text = |name: &str| params[name].as_str().unwrap_or_default();
    let endpoint = text("metricEndpoint").trim_end_matches('/');
    let query = query_escape(text("query").as_bytes());
    let url = format!("{endpoint}/api/v1/query?query={query}");
    let answer = http
        .send(&json!({"method": "GET", "url": url}), &Extras::default())
        .await?;
    let body = answer["body"].as_str().unwrap_or_default();
    let body: Value = serde_json::from_str(body).map_err(|error| error.to_string())?;
    let result = value_of(&body).ok_or("the query has no single value as its result")?;
    let condition = text("condition");
    let holds = evaluate(&result, condition)?;
    let (since, other, limit, word) = if holds {
        (SUCCESS, FAILURE, text("duration"), "success")
    } else {
        (FAILURE, SUCCESS, text("failDuration"), "failure")
    };
    let limit = duration::parse(limit).map_err(|error| error.to_string())?;
    let began: Option<Timestamp> = request.memory.get(since).and_then(|time| time.parse().ok());
    let is_over = began.is_some_and(|began| now.duration_since(began) >= limit);
    let message = format!(
        "The healthy condition should be {condition}, and the query result is {result}, indicating {word}."
    );
    Ok(Done {
        value: json!({"message": message, "failed": !holds && is_over, "result": holds && is_over}),
        memory: BTreeMap::from([
            (since.to_owned(), began.unwrap_or(now).to_string()),
            (other.to_owned(), String::new()),
        ]),
        ..Done::default()
    })
}

/// The one value of an answer: a scalar, or a vector with one element.
fn value_of(body: &Value) -> Option<String> {
    let data = &body["data"];
    let value = match data["resultType"].as_str()? {
        "scalar" => &data["result"][1],
        "vector" if data["result"].as_array()?.len() == 1 => &data["result"][0]["value"][1],
        _ => return None,
    };
    value.as_str().map(str::to_owned)
}

fn evaluate(value: &str, condition: &str) -> Result<bool, String> {
    let number: f64 = value
        .parse()
        .map_err(|_| format!("{value:?} is not a number"))?;
    if !number.is_finite() {
        return Ok(false);
    }
    let source = format!("result: {number} {condition}");
    let template = Template::compile(&source);
    let template =
        template.map_err(|problems| format!("condition {condition:?}: {}", problems[0]))?;
    let mut evaluation = template.evaluate(Budget::default());
    let root = evaluation.root();
    let result = evaluation.lookup(root, "result").ok_or("no result")?;
    match evaluation.json(result) {
        Ok(text) => Ok(text == "true"),
        Err(problem) => Err(format!("condition {condition:?}: {problem}")),
    }
}
