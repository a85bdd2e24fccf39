use serde_json::json;

use super::*;
use crate::cost::Budget;

fn evaluate(env: &Env, source: &str, vars: &Vars<'_>) -> String {
    let program = env.compile(source).unwrap();
    match program.evaluate(vars, &mut Budget::kubernetes()) {
        Ok(value) => value.to_string(),
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn programs_can_be_shared_between_threads() {
    fn shareable<T: Send + Sync + Clone + 'static>() {}
    shareable::<Program>();
    shareable::<Env>();
}

#[test]
fn referenced_variables_are_known() {
    let env = Env::builder()
        .variable("self", Type::Dyn)
        .variable("oldSelf", Type::Dyn)
        .build();
    let program = env.compile("self.items.all(i, i == oldSelf.item)").unwrap();
    assert!(program.references("oldSelf"));
    let program = env.compile("self.all(oldSelf, oldSelf == 1)").unwrap();
    assert!(!program.references("oldSelf"));
    assert_eq!(program.output_type(), &Type::Bool);
}

#[test]
fn literals_are_of_one_type_unless_several_are_let_in() {
    let source = "{'status': 1 < 2, 'message': 'm', 'list': [1, 'a']}.status";
    let error = Env::builder().build().compile(source).unwrap_err();
    let told = error.to_string();
    assert!(
        told.contains("expected type 'bool' but found 'string'"),
        "{told}"
    );
    let env = Env::builder().mixed_literals().build();
    assert_eq!(evaluate(&env, source, &Vars::new()), "true");
    assert!(
        env.compile("{'a': duration('x')}").is_err(),
        "the rest is still checked"
    );
}

#[test]
fn functions_of_the_embedder_see_hidden_bindings() {
    let env = Env::builder()
        .variable("cluster", Type::Dyn)
        .method(
            "scores",
            vec![Type::Dyn, Type::String],
            Type::list(Type::Dyn),
            |vars, arguments| match (vars.get("scores"), arguments.get(1)) {
                (Some(Value::Map(scores)), Some(Value::String(name))) => scores
                    .get_str(name)
                    .unwrap_or_else(|| Err(EvalError::failed("no scores"))),
                _ => Err(EvalError::failed("no scores")),
            },
        )
        .function(
            "hasConditions",
            vec![Type::Dyn],
            Type::Bool,
            |_, arguments| Ok(Value::Bool(matches!(arguments, [Value::Map(_)]))),
        )
        .build();
    let cluster = json!({"name": "c1"});
    let scores = json!({"cpu": [{"name": "a", "value": 3}]});
    let vars = Vars::new()
        .json("cluster", &cluster)
        .json("scores", &scores);
    assert_eq!(evaluate(&env, "cluster.scores('cpu')[0].value", &vars), "3");
    assert_eq!(
        evaluate(&env, "cluster.scores('gpu')", &vars),
        "error: no scores"
    );
    assert_eq!(evaluate(&env, "hasConditions(cluster)", &vars), "true");
    assert_eq!(evaluate(&env, "hasConditions(1)", &vars), "false");
    assert_eq!(
        env.compile("scores").unwrap_err().issues()[0].message,
        "undeclared reference to 'scores' (in container '')"
    );
}

#[test]
fn libraries_can_be_left_out() {
    let env = Env::builder().libraries(LibrarySet::KUBERNETES).build();
    assert!(env.compile("math.greatest(1, 2)").is_err());
    assert!(env.compile("cel.bind(a, 1, a)").is_err());
    assert!(env.compile("'a'.reverse()").is_err());
    assert!(env.compile("quantity('1').isInteger()").is_ok());
    let env = Env::builder().libraries(LibrarySet::STANDARD).build();
    assert!(env.compile("'a'.charAt(0)").is_err());
    assert!(env.compile("'a'.size()").is_ok());
}

#[test]
fn an_unbound_variable_is_an_error_of_the_evaluation() {
    let env = Env::builder().variable("object", Type::Dyn).build();
    assert_eq!(
        evaluate(&env, "object.a", &Vars::new()),
        "error: no such attribute(s): object"
    );
}

#[test]
fn values_can_be_bound_besides_json() {
    let env = Env::builder()
        .variable("n", Type::Int)
        .variable("s", Type::String)
        .variable("old", Type::optional(Type::Dyn))
        .build();
    let vars = Vars::new()
        .value("n", 7)
        .value("s", "seven")
        .optional_json("old", None);
    assert_eq!(evaluate(&env, "s + string(n)", &vars), "\"seven7\"");
    assert_eq!(evaluate(&env, "old.hasValue()", &vars), "false");
}

#[test]
fn an_optional_variable_is_read_by_its_schema() {
    let schema =
        json!({"type": "object", "properties": {"at": {"type": "string", "format": "date-time"}}});
    let decl = Arc::new(DeclType::from_schema(&schema, false).unwrap());
    let env = Env::builder()
        .schema_variable("self", &decl)
        .optional_schema_variable("oldSelf", &decl)
        .build();
    let (new, old) = (
        json!({"at": "2024-01-02T00:00:00Z"}),
        json!({"at": "2024-01-01T00:00:00Z"}),
    );
    let vars = Vars::new()
        .json("self", &new)
        .optional_json("oldSelf", Some(&old));
    let rule = "oldSelf.optMap(o, o.at < self.at).orValue(false)";
    assert_eq!(evaluate(&env, rule, &vars), "true");
    let vars = Vars::new()
        .json("self", &new)
        .optional_json("oldSelf", None);
    assert_eq!(evaluate(&env, rule, &vars), "false");
}

#[test]
fn the_condition_of_a_choice_can_be_compiled_alone() {
    let env = Env::builder().variable("object", Type::Dyn).build();
    let program = env
        .compile_condition("object.n > 1 ? {'a': 'b'} : {'a': 'c'}")
        .unwrap();
    let object = serde_json::json!({"n": 2});
    let vars = Vars::new().json("object", &object);
    let value = program.evaluate(&vars, &mut crate::Budget::kubernetes());
    assert_eq!(value.unwrap().as_bool(), Some(true));
    assert!(env.compile_condition("{'a': object.n}").is_none());
    assert!(env.compile_condition("1 +").is_none());
}
