//! `bellwether` beside `kubectl`: the same words on the same objects print the same.

use crate::fleet::Fleet;

/// Objects of every kind that has a description of its own.
const ZOO: &str = "crates/bellwether/tests/kubectl/zoo.yaml";

/// What a command did: whether it succeeded, what it printed, what it complained.
type Outcome = (bool, String, String);

struct Twins {
    fleet: Fleet,
}

impl Twins {
    fn start() -> Self {
        let fleet = Fleet::start();
        fleet.shell(&format!("kubectl apply -f {ZOO}"));
        fleet.shell("kubectl apply -f examples/access/ann.yaml");
        fleet.shell("kubectl rollout status deployment/monkeys --timeout=30s");
        fleet.shell("kubectl rollout status statefulset/elephants --timeout=30s");
        fleet.shell("kubectl wait --for=condition=Complete job/eggs --timeout=30s");
        fleet.shell("kubectl wait --for=condition=Ready pod/lion --timeout=30s");
        Self { fleet }
    }

    fn both(&self, kubectl: &str, ours: &str) -> (Outcome, Outcome) {
        let binary = env!("CARGO_BIN_EXE_bellwether");
        let theirs = self.fleet.run(&format!("kubectl {kubectl}"));
        let ours = self.fleet.run(&format!("{binary} {ours}"));
        (theirs, ours)
    }

    /// Runs words that change nothing. They tell how long ago things were, and things go on: only
    /// what differs every time is a difference.
    #[track_caller]
    fn check(&self, words: &str) {
        let mut last = None;
        for _ in 0..5 {
            let (theirs, ours) = self.both(words, words);
            if theirs == ours {
                return;
            }
            last = Some((theirs, ours));
        }
        if let Some((theirs, ours)) = last {
            assert_eq!(theirs, ours, "{words}");
        }
    }

    /// Runs words once for each, each in a namespace of its own.
    #[track_caller]
    fn check_apart(&self, words: &str) {
        let (verb, rest) = words.split_once(' ').unwrap();
        let (theirs, ours) = self.both(
            &format!("-n theirs {verb} {rest}"),
            &format!("{verb} -n ours {rest}"),
        );
        let plain = |(succeeded, printed, complained): Outcome, name: &str| {
            let text = |text: String| text.replace(name, "NAMESPACE");
            (succeeded, text(printed), text(complained))
        };
        assert_eq!(plain(theirs, "theirs"), plain(ours, "ours"), "{words}");
    }
}

#[test]
fn objects_are_described_in_the_same_words() {
    let twins = Twins::start();
    for kind in [
        "pods",
        "deployments",
        "replicasets",
        "statefulsets",
        "daemonsets",
        "jobs",
        "cronjobs",
        "rc",
        "services",
        "endpoints",
        "endpointslices",
        "ingresses",
        "ingressclasses",
        "networkpolicies",
        "csr",
        "configmaps",
        "secrets",
        "serviceaccounts",
        "pvc",
        "pv",
        "storageclasses",
        "hpa",
        "pdb",
        "quota",
        "limits",
        "roles",
        "rolebindings",
        "clusterroles",
        "clusterrolebindings",
        "priorityclasses",
        "nodes",
        "namespaces",
        "controllerrevisions",
        "managedclusters",
    ] {
        twins.check(&format!("describe {kind}"));
    }
    for words in [
        "describe pod lion",
        "describe deploy/monkeys svc/monkeys",
        "describe pod monk",
        "describe pod nosuch",
        "describe nosuch x",
        "describe pods -l app=none",
        "describe crd --context cluster1",
    ] {
        twins.check(words);
    }
}

#[test]
fn objects_are_shown_in_the_same_forms() {
    let twins = Twins::start();
    for words in [
        "get pods",
        "get pods -o wide",
        "get pods -o yaml",
        "get pods -o json",
        "get pods -o name",
        "get pods -o jsonpath={.items[*].metadata.name}",
        "get pods -o custom-columns=NAME:.metadata.name,IMAGES:.spec.containers[*].image,L:.metadata.labels,X:.x",
        "get pods -o custom-columns=NAME:.metadata.name --no-headers",
        "get pod lion -o yaml",
        "get pod lion -o json",
        "get pods -A",
        "get pods -l app=monkeys --show-labels",
        "get pods -L app",
        "get pods --no-headers",
        "get pods --sort-by=.metadata.name",
        "get pods --field-selector=status.phase=Running",
        "get pods --field-selector=spec.bad=1",
        "get deploy,svc",
        "get all",
        "get pod/lion svc/monkeys",
        "get deploy,rs,ds,sts,svc,jobs,cj,hpa,pdb,ingress,pv,pvc,sc,nodes,rc -o wide",
        "get cm settings -o jsonpath={.data.colour}",
        "get cm settings -o jsonpath={.data.nosuch}",
        "get cm -n kube-public",
        "get pod nosuch",
        "get pod nosuch --ignore-not-found",
        "get nosuch",
        "get managedclusters",
        "get pods --context cluster1",
    ] {
        twins.check(words);
    }
}

#[test]
fn objects_are_changed_with_the_same_words() {
    let twins = Twins::start();
    twins.fleet.shell("kubectl create namespace theirs");
    twins.fleet.shell("kubectl create namespace ours");
    let file = twins.fleet.directory().join("map.yaml");
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    let map = file.display();
    write("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}");
    for words in [
        "apply -f examples/web/web.yaml",
        "apply -f examples/web/web.yaml",
        "apply -f examples/web/web.yaml --dry-run=client",
        "apply -f examples/web/web.yaml --dry-run=server",
        "apply -f examples/web/web.yaml --server-side",
        "apply -f examples/web/conflict.yaml",
        "apply -f /nonexistent.yaml",
        "wait --for=condition=Available deployment/web --timeout=20s",
        "wait --for=jsonpath={.spec.type}=ClusterIP service/web --timeout=5s",
        "wait --for=condition=Nope deployment/web --timeout=1s",
        "wait --for=create cm/nosuch --timeout=1s",
        "wait --for=delete cm/nosuch --timeout=1s",
        "wait --for=condition=Ready pod/nosuch --timeout=1s",
        "wait --for=condition=Ready pod -l app=nosuch --timeout=1s",
        "delete -f examples/web/web.yaml --dry-run=server",
        "delete -f examples/web/web.yaml",
        "delete -f examples/web/web.yaml",
        "delete -f examples/web/web.yaml --ignore-not-found",
        "delete cm/nosuch cm/nosuch2",
        "delete cm",
        "delete nosuch x",
    ] {
        twins.check_apart(words);
    }
    twins.check_apart(&format!("apply -f {map}"));
    twins.check_apart(&format!("apply -o name -f {map}"));
    twins.check_apart("wait --for=delete cm/a --timeout=1s");
    twins.check_apart("delete cm a --dry-run=client");
    twins.check_apart("delete cm a -o name");
    for wrong in [
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: A_}",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndaata: {}",
        "apiVersion: v1\nkind: Nope\nmetadata: {name: b}",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {}",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: elsewhere}",
        "",
    ] {
        write(wrong);
        twins.check_apart(&format!("apply -f {map}"));
    }
}

#[test]
fn changes_are_shown_in_the_same_forms() {
    let fleet = Fleet::start();
    fleet.shell("kubectl create configmap m --from-literal=k=0");
    let binary = env!("CARGO_BIN_EXE_bellwether");
    let words = [
        "get configmaps -w -o name",
        "get configmap m -w -o yaml",
        "get configmap m -w -o json",
        "get configmap m -w -o custom-columns=N:.metadata.name,K:.data.k",
        "get configmap m -w -o custom-columns=N:.metadata.name,K:.data.k --no-headers",
    ];
    let watches = words.map(|words| {
        let theirs = fleet.spawn(&format!("kubectl {words}"));
        let ours = fleet.spawn(&format!("{binary} {words}"));
        // What is there is shown as soon as the watch has begun.
        let first = (theirs.line(), ours.line());
        assert_eq!(first.0, first.1, "{words}");
        (words, theirs, ours)
    });
    for value in 1..4 {
        fleet.shell(&format!(
            "kubectl patch configmap m --type=merge -p {{\"data\":{{\"k\":\"{value}\"}}}}"
        ));
    }
    for (words, theirs, ours) in &watches {
        let lines = if words.contains("yaml") || words.contains("json") {
            30
        } else {
            3
        };
        for _ in 0..lines {
            assert_eq!(theirs.line(), ours.line(), "{words}");
        }
    }
}
