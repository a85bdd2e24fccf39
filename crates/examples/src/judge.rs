//! Expressions about objects and requests, in CEL.

use bellwether_cel::{Budget, Env, Program, Type, Vars};
use serde_json::{Value, json};

/// What an expression is about.
#[derive(Debug, Clone, PartialEq)]
pub enum Sight {
    /// One object; none if it does not exist.
    Object(Option<Value>),
    /// All objects of a type that were asked for.
    Objects(Vec<Value>),
    /// What a server was asked.
    Requests(Vec<Value>),
    /// What a repository has.
    Repository(Value),
}

/// Compiles expressions.
#[derive(Debug, Clone)]
pub struct Judge {
    env: Env,
}

impl Default for Judge {
    fn default() -> Self {
        Self::new()
    }
}

impl Judge {
    /// Declares `object`, `objects`, `requests` and `repository`.
    pub fn new() -> Self {
        let env = Env::builder()
            .variable("object", Type::Dyn)
            .variable("objects", Type::Dyn)
            .variable("requests", Type::Dyn)
            .variable("repository", Type::Dyn)
            .mixed_literals()
            .build();
        Self { env }
    }

    /// Compiles an expression.
    pub fn compile(&self, expression: &str) -> Result<Program, String> {
        self.env
            .compile(expression)
            .map_err(|errors| errors.to_string())
    }
}

/// Evaluates an expression: what stands against it if it is not true. A field that is missing is not an error of the
/// script: it may come later.
pub fn objection(program: &Program, sight: &Sight) -> Option<String> {
    let (mut object, mut repository) = (Value::Null, Value::Null);
    let (mut objects, mut requests) = (json!([]), json!([]));
    match sight {
        Sight::Object(seen) => object = seen.clone().unwrap_or_default(),
        Sight::Objects(all) => objects = json!(all),
        Sight::Requests(all) => requests = json!(all),
        Sight::Repository(seen) => repository = seen.clone(),
    }
    let vars = Vars::new()
        .json("object", &object)
        .json("objects", &objects)
        .json("requests", &requests)
        .json("repository", &repository);
    match program.evaluate(&vars, &mut Budget::kubernetes()) {
        Ok(value) if value.as_bool() == Some(true) => None,
        Ok(_) => Some("it is false".to_owned()),
        Err(error) => Some(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(expression: &str, sight: &Sight) -> Option<String> {
        objection(&Judge::new().compile(expression).unwrap(), sight)
    }

    #[test]
    fn expressions_know_objects_lists_and_requests() {
        let object = Sight::Object(Some(json!({"status": {"phase": "running", "ready": 2}})));
        assert_eq!(
            judge(
                "object.status.phase == 'running' && object.status.ready == 2",
                &object
            ),
            None
        );
        let objects = Sight::Objects(vec![json!({"a": 1}), json!({"a": 2})]);
        assert_eq!(
            judge("objects.all(o, o.a > 0) && size(objects) == 2", &objects),
            None
        );
        let requests = Sight::Requests(vec![json!({"method": "POST"})]);
        assert_eq!(
            judge(
                "requests.filter(r, r.method == 'POST').size() == 1",
                &requests
            ),
            None
        );
    }

    #[test]
    fn a_missing_field_is_not_there_yet() {
        let object = Sight::Object(Some(json!({})));
        assert_eq!(
            judge("object.status.phase == 'running'", &object).as_deref(),
            Some("no such key: status")
        );
        assert!(judge("object.status.phase == 'running'", &Sight::Object(None)).is_some());
    }
}
