//! Speed of compiling and evaluating rules as works and resource definitions use them.

#![expect(
    clippy::expect_used,
    reason = "the expressions are constants of this file"
)]

use std::sync::Arc;

use bellwether_cel::{Budget, DeclType, Env, Program, Type, Vars};
use divan::{Bencher, black_box};
use serde_json::{Value, json};

const JOB_COMPLETE: &str =
    "object.status.conditions.exists(c, c.type == 'Complete' && c.status == 'True')";

fn main() {
    divan::main();
}

fn job(conditions: usize) -> Value {
    let conditions: Vec<Value> = (0..conditions)
        .map(|index| {
            let last = index + 1 == conditions;
            json!({
                "type": if last { "Complete" } else { "Suspended" },
                "status": if last { "True" } else { "False" },
            })
        })
        .collect();
    json!({"kind": "Job", "status": {"conditions": conditions}})
}

fn compiled(source: &str) -> Program {
    Env::builder()
        .variable("object", Type::Dyn)
        .build()
        .compile(source)
        .expect("a constant of this file")
}

#[divan::bench]
fn compile_job_complete(bencher: Bencher) {
    let env = Env::builder().variable("object", Type::Dyn).build();
    bencher.bench(|| env.compile(black_box(JOB_COMPLETE)));
}

#[divan::bench(args = [1, 2, 10, 1000])]
fn evaluate_job_complete(bencher: Bencher, conditions: usize) {
    let program = compiled(JOB_COMPLETE);
    let object = job(conditions);
    bencher.bench(|| {
        let vars = Vars::new().json("object", black_box(&object));
        program
            .evaluate(&vars, &mut Budget::kubernetes())
            .map(|value| value.as_bool())
    });
}

#[divan::bench]
fn evaluate_pod_phase(bencher: Bencher) {
    let program = compiled("object.status.phase in ['Succeeded', 'Failed']");
    let object = json!({"status": {"phase": "Failed"}});
    bencher.bench(|| {
        let vars = Vars::new().json("object", black_box(&object));
        program
            .evaluate(&vars, &mut Budget::kubernetes())
            .map(|value| value.as_bool())
    });
}

#[divan::bench]
fn evaluate_rule_on_schema(bencher: Bencher) {
    let schema = json!({"type": "object", "properties": {
        "replicas": {"type": "integer"},
        "maxReplicas": {"type": "integer"},
        "since": {"type": "string", "format": "date-time"},
    }});
    let decl = Arc::new(DeclType::from_schema(&schema, false).expect("a constant of this file"));
    let env = Env::builder().schema_variable("self", &decl).build();
    let program = env
        .compile(
            "self.replicas <= self.maxReplicas && self.since > timestamp('2020-01-01T00:00:00Z')",
        )
        .expect("a constant of this file");
    let object = json!({"replicas": 2, "maxReplicas": 5, "since": "2024-05-06T07:08:09Z"});
    bencher.bench(|| {
        let vars = Vars::new().json("self", black_box(&object));
        program
            .evaluate(&vars, &mut Budget::kubernetes())
            .map(|value| value.as_bool())
    });
}
