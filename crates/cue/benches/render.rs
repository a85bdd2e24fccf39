//! Rendering: compile once, evaluate many times, as a controller does.
//!
//! The templates are our own, of the size and shape that applications use: a web service with a
//! small and a big parameter, a job, three traits and a health check.
//!
//! - `compiled` renders each from its compiled form.
//! - `from_text` parses and compiles as well, as if nothing were cached.
//! - `scale` renders with 20, 200 and 2,000 variables: the cost per variable stays the same.
//! - `fill_results` and `start_over` run a workflow of so many steps, whose results come one after the other: by
//!   filling them into one evaluation, and by evaluating everything again with all results so far.
//! - `parallel` renders on one and on two threads: twice as many items a second on two, as far as the
//!   machine goes. The controls beside it show how far: `arithmetic` shares nothing at all between the
//!   threads, `allocation` nothing but the allocator.

#![allow(clippy::expect_used, reason = "a failure here is a failed test")]

use std::fmt::Write as _;

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

/// What is rendered: template, parameter, context, and the field to export.
struct Workload {
    source: &'static str,
    parameter: String,
    context: &'static str,
    field: &'static str,
}

fn workload(name: &str) -> Workload {
    let (source, parameter, context, field) = match name {
        "webservice_small" => (WEBSERVICE, SMALL.to_owned(), CONTEXT, "output"),
        "webservice_big" => (WEBSERVICE, big_parameter(20), CONTEXT, "output"),
        "task" => (TASK, JOB.to_owned(), CONTEXT, "output"),
        "scaler" => (SCALER, r#"{"replicas":3}"#.to_owned(), CONTEXT, "patch"),
        "gateway" => (GATEWAY, ROUTES.to_owned(), CONTEXT, "outputs"),
        "storage" => (STORAGE, VOLUMES.to_owned(), CONTEXT, "patch"),
        _ => (HEALTH, "null".to_owned(), LIVE, "isHealth"),
    };
    Workload {
        source,
        parameter,
        context,
        field,
    }
}

const WORKLOADS: [&str; 7] = [
    "webservice_small",
    "webservice_big",
    "task",
    "scaler",
    "gateway",
    "storage",
    "health",
];

const SMALL: &str = r#"{"image":"nginx","ports":[{"port":80,"expose":true}]}"#;

const JOB: &str = r#"{"image":"perl","count":10,"cmd":["perl","-e","1"],"cpu":"1",
    "volumes":[{"name":"tmp","mountPath":"/tmp","type":"emptyDir"}]}"#;

const ROUTES: &str = r#"{"domain":"shop.example.com","http":{"/":80,"/api":8080},"class":"nginx"}"#;

const VOLUMES: &str = r#"{"pvc":[{"name":"data","mountPath":"/data"}],
    "configMap":[{"name":"conf","mountPath":"/etc/conf","data":{"a":"b"}}],
    "emptyDir":[{"name":"tmp","mountPath":"/tmp"}]}"#;

/// Compiled once, rendered many times.
#[divan::bench(args = WORKLOADS)]
fn compiled(bencher: divan::Bencher<'_, '_>, name: &str) {
    let work = workload(name);
    bench(
        bencher,
        work.source,
        &work.parameter,
        work.context,
        work.field,
    );
}

/// Parsed, compiled and rendered every time.
#[divan::bench(args = WORKLOADS)]
fn from_text(bencher: divan::Bencher<'_, '_>, name: &str) {
    let work = workload(name);
    let (parameter, context) = (value(&work.parameter), value(work.context));
    let parameter = Some(&parameter).filter(|parameter| **parameter != Value::Null);
    bencher.bench(|| render(&template(work.source), parameter, &context, work.field));
}

#[divan::bench(args = [20, 200, 2000])]
fn scale(bencher: divan::Bencher<'_, '_>, variables: usize) {
    let parameter = big_parameter(variables);
    bench(bencher, WEBSERVICE, &parameter, CONTEXT, "output");
}

/// A workflow whose steps each take the result of the one before.
fn steps(count: usize) -> String {
    let mut source = String::from(WEBSERVICE);
    for step in 0..count {
        let before = match step {
            0 => "\"start\"".to_owned(),
            _ => format!("step{}.result.token", step - 1),
        };
        write!(
            source,
            "\nstep{step}: {{request: {{url: \"https://host/{step}\", token: {before}}}, result?: {{token: string, code: int}}, \
             if result != _|_ {{done: result.code < 300}}}}\n"
        )
        .expect("writing to a text cannot fail");
    }
    source
}

fn result(step: usize) -> Value {
    value(&format!(r#"{{"token":"t{step}","code":200}}"#))
}

/// Asks for what the next step sends, as a workflow does before each.
fn next(evaluation: &mut bellwether_cue::host::Evaluation, step: usize) -> usize {
    let root = evaluation.root();
    let name = format!("step{step}");
    let found = evaluation.lookup(root, &name).expect("it is declared");
    let request = evaluation.lookup(found, "request").expect("it is declared");
    evaluation.json(request).expect("it is concrete").len()
}

const STEPS: [usize; 3] = [3, 10, 30];

/// Results are filled into one evaluation.
#[divan::bench(args = STEPS)]
fn fill_results(bencher: divan::Bencher<'_, '_>, count: usize) {
    let (template, parameter, context) = (template(&steps(count)), value(SMALL), value(CONTEXT));
    bencher.bench(|| {
        let mut evaluation = template.evaluate(Budget::default());
        evaluation.fill(&["parameter"], parameter.clone());
        evaluation.fill(&["context"], context.clone());
        let mut length = 0;
        for step in 0..count {
            length += next(&mut evaluation, step);
            let name = format!("step{step}");
            evaluation.fill(&[&name, "result"], result(step));
        }
        length
    });
}

/// Everything is evaluated again for every step.
#[divan::bench(args = STEPS)]
fn start_over(bencher: divan::Bencher<'_, '_>, count: usize) {
    let (template, parameter, context) = (template(&steps(count)), value(SMALL), value(CONTEXT));
    bencher.bench(|| {
        let mut length = 0;
        for step in 0..count {
            let mut evaluation = template.evaluate(Budget::default());
            evaluation.fill(&["parameter"], parameter.clone());
            evaluation.fill(&["context"], context.clone());
            for before in 0..step {
                let name = format!("step{before}");
                evaluation.fill(&[&name, "result"], result(before));
            }
            length += next(&mut evaluation, step);
        }
        length
    });
}

/// Renders on every core at once; the template is shared, and each has data of its own.
#[divan::bench(args = [1, 2], sample_count = 20)]
fn parallel(bencher: divan::Bencher<'_, '_>, threads: usize) {
    let (template, parameter) = (template(WEBSERVICE), big_parameter(20));
    on_threads(bencher, threads, || {
        let (parameter, context) = (value(&parameter), value(CONTEXT));
        let template = &template;
        move || render(template, Some(&parameter), &context, "output")
    });
}

/// What two cores are worth to work that touches no memory.
#[divan::bench(args = [1, 2], sample_count = 20)]
fn arithmetic(bencher: divan::Bencher<'_, '_>, threads: usize) {
    on_threads(bencher, threads, || {
        || {
            // Several chains, so that the units of the core are busy.
            let mut chains: [usize; 8] = std::array::from_fn(divan::black_box);
            for round in 0..20_000 {
                for chain in &mut chains {
                    *chain = chain.wrapping_mul(0x9e37_79b9).wrapping_add(round);
                }
            }
            chains.iter().fold(0, |sum, chain| sum ^ chain)
        }
    });
}

/// What two cores are worth to work that only allocates, in pieces of the size of a node.
#[divan::bench(args = [1, 2], sample_count = 20)]
fn allocation(bencher: divan::Bencher<'_, '_>, threads: usize) {
    on_threads(bencher, threads, || {
        || {
            let pieces: Vec<Vec<u8>> = (0..2_000).map(|size| vec![1; 16 + size % 512]).collect();
            pieces.iter().map(Vec::len).sum()
        }
    });
}

/// How often each thread does its work in a sample: so often that starting it does not count.
const ROUNDS: usize = 64;

/// Does the same work on so many threads at once.
fn on_threads<W: FnMut() -> usize>(
    bencher: divan::Bencher<'_, '_>,
    threads: usize,
    prepare: impl Fn() -> W + Sync,
) {
    bencher
        .counter(divan::counter::ItemsCount::new(threads * ROUNDS))
        .bench(|| {
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        let mut work = prepare();
                        for _ in 0..ROUNDS {
                            divan::black_box(work());
                        }
                    });
                }
            });
        });
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
