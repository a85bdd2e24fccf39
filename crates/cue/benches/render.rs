//! Rendering: compile once, evaluate many times, as a controller does.
//!
//! The templates are our own, of the size and shape that applications use: a web service with a
//! small and a big parameter, a job, three traits and a health check. `scale` shows that the cost
//! grows linearly with the parameter.

#![allow(clippy::expect_used, reason = "a failure here is a failed test")]

use bellwether_cue::builtins::parse_json;
use bellwether_cue::host::{Budget, Template};
use bellwether_cue::value::Value;

const WEBSERVICE: &str = include_str!("templates/webservice.cue");
const TASK: &str = include_str!("templates/task.cue");
const SCALER: &str = include_str!("templates/scaler.cue");
const GATEWAY: &str = include_str!("templates/gateway.cue");
const STORAGE: &str = include_str!("templates/storage.cue");
const HEALTH: &str = include_str!("templates/health.cue");

const CONTEXT: &str =
    r#"{"name":"shop","appName":"store","revision":"shop-v1","namespace":"default"}"#;

const LIVE: &str = r#"{"name":"shop","output":{
    "metadata":{"name":"shop","generation":3,"annotations":{"a":"b"}},
    "spec":{"replicas":3},
    "status":{"updatedReplicas":3,"readyReplicas":3,"replicas":3,"observedGeneration":3}}}"#;

/// The allocator of the binary, counted.
#[global_allocator]
static ALLOCATOR: divan::AllocProfiler<mimalloc::MiMalloc> =
    divan::AllocProfiler::new(mimalloc::MiMalloc);

fn main() {
    divan::main();
}

fn value(json: &str) -> Value {
    parse_json(json).expect("benchmark data is JSON")
}

fn template(source: &str) -> Template {
    Template::compile(source).expect("benchmark templates compile")
}

/// One render: inject, check, export the given field.
fn render(template: &Template, parameter: Option<&Value>, context: &Value, field: &str) -> usize {
    let mut evaluation = template.evaluate(Budget::default());
    if let Some(parameter) = parameter {
        evaluation.fill(&["parameter"], parameter.clone());
    }
    evaluation.fill(&["context"], context.clone());
    let root = evaluation.root();
    let problems = evaluation.validate(root);
    assert!(problems.is_empty(), "{problems:?}");
    let result = evaluation
        .lookup(root, field)
        .expect("the template has the field");
    evaluation
        .json(result)
        .expect("the result is concrete")
        .len()
}

fn bench(
    bencher: divan::Bencher<'_, '_>,
    source: &str,
    parameter: &str,
    context: &str,
    field: &str,
) {
    let (template, parameter, context) = (template(source), value(parameter), value(context));
    let parameter = Some(&parameter).filter(|parameter| **parameter != Value::Null);
    bencher.bench(|| render(&template, parameter, &context, field));
}

#[divan::bench]
fn webservice_small(bencher: divan::Bencher<'_, '_>) {
    let parameter = r#"{"image":"nginx","ports":[{"port":80,"expose":true}]}"#;
    bench(bencher, WEBSERVICE, parameter, CONTEXT, "output");
}

#[divan::bench]
fn webservice_big(bencher: divan::Bencher<'_, '_>) {
    bench(bencher, WEBSERVICE, &big_parameter(20), CONTEXT, "output");
}

#[divan::bench(args = [20, 200, 2000])]
fn scale(bencher: divan::Bencher<'_, '_>, variables: usize) {
    bench(
        bencher,
        WEBSERVICE,
        &big_parameter(variables),
        CONTEXT,
        "output",
    );
}

#[divan::bench]
fn webservice_compile(bencher: divan::Bencher<'_, '_>) {
    bencher.bench(|| template(WEBSERVICE));
}

#[divan::bench]
fn task(bencher: divan::Bencher<'_, '_>) {
    let parameter = r#"{"image":"perl","count":10,"cmd":["perl","-e","1"],"cpu":"1",
        "volumes":[{"name":"tmp","mountPath":"/tmp","type":"emptyDir"}]}"#;
    bench(bencher, TASK, parameter, CONTEXT, "output");
}

#[divan::bench]
fn scaler(bencher: divan::Bencher<'_, '_>) {
    bench(bencher, SCALER, r#"{"replicas":3}"#, CONTEXT, "patch");
}

#[divan::bench]
fn gateway(bencher: divan::Bencher<'_, '_>) {
    let parameter = r#"{"domain":"shop.example.com","http":{"/":80,"/api":8080},"class":"nginx"}"#;
    bench(bencher, GATEWAY, parameter, CONTEXT, "outputs");
}

#[divan::bench]
fn storage(bencher: divan::Bencher<'_, '_>) {
    let parameter = r#"{"pvc":[{"name":"data","mountPath":"/data"}],
        "configMap":[{"name":"conf","mountPath":"/etc/conf","data":{"a":"b"}}],
        "emptyDir":[{"name":"tmp","mountPath":"/tmp"}]}"#;
    bench(bencher, STORAGE, parameter, CONTEXT, "patch");
}

#[divan::bench]
fn health(bencher: divan::Bencher<'_, '_>) {
    bench(bencher, HEALTH, "null", LIVE, "isHealth");
}

/// Renders on every core at once; the template is shared.
#[divan::bench(threads = [1, 2])]
fn webservice_parallel(bencher: divan::Bencher<'_, '_>) {
    let parameter = r#"{"image":"nginx","ports":[{"port":80,"expose":true}]}"#;
    bench(bencher, WEBSERVICE, parameter, CONTEXT, "output");
}

/// Four ports, ten mounts, probes, and as many variables as asked for.
fn big_parameter(variables: usize) -> String {
    let env: Vec<String> = (0..variables)
        .map(|i| format!(r#"{{"name":"VAR_{i}","value":"value {i}"}}"#))
        .collect();
    let mounts = |kind: &str, more: &str| {
        let entry =
            |i: usize| format!(r#"{{"name":"{kind}-{i}","mountPath":"/{kind}/{i}",{more}}}"#);
        [entry(0), entry(1)].join(",")
    };
    format!(
        r#"{{"image":"shop:1","cmd":["run"],"cpu":"1","memory":"1Gi",
        "labels":{{"a":"b","c":"d"}},"annotations":{{"e":"f"}},
        "ports":[{{"port":80,"expose":true}},{{"port":443,"name":"https","expose":true}},{{"port":53,"protocol":"UDP"}},{{"port":9090,"containerPort":9091}}],
        "env":[{}],
        "volumeMounts":{{"pvc":[{}],"configMap":[{}],"secret":[{}],"emptyDir":[{}],"hostPath":[{}]}},
        "livenessProbe":{{"httpGet":{{"path":"/health","port":80}}}},
        "readinessProbe":{{"tcpSocket":{{"port":80}},"periodSeconds":5}}}}"#,
        env.join(","),
        mounts("pvc", r#""claimName":"data""#),
        mounts("configmap", r#""cmName":"conf""#),
        mounts("secret", r#""secretName":"sec""#),
        mounts("emptydir", r#""medium":"Memory""#),
        mounts("hostpath", r#""path":"/var""#),
    )
}
