//! Workloads that live: rollouts, scaling, waiting, deleting, looking.

use crate::fleet::Fleet;

#[test]
fn a_rollout_is_followed_undone_restarted_paused_and_resumed() {
    let fleet = Fleet::start();
    let run = |command: &str| fleet.shell(command);
    run("kubectl create deployment web --image=nginx:1 --replicas=3");
    let followed = run("kubectl rollout status deployment/web --timeout=20s");
    assert!(followed.contains("successfully rolled out"), "{followed}");
    run("kubectl set image deployment/web nginx=nginx:2");
    run("kubectl annotate deployment/web kubernetes.io/change-cause=second");
    run("kubectl rollout status deployment/web --timeout=20s");
    let history = run("kubectl rollout history deployment/web");
    let lines: Vec<_> = history
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .collect();
    assert_eq!(
        lines[2..4],
        [vec!["1", "<none>"], vec!["2", "second"]],
        "{history}"
    );
    assert!(run("kubectl rollout history deployment/web --revision=1").contains("nginx:1"));
    run("kubectl rollout undo deployment/web");
    run("kubectl rollout status deployment/web --timeout=20s");
    let image = "jsonpath={.spec.template.spec.containers[0].image}";
    assert_eq!(
        run(&format!("kubectl get deployment/web -o {image}")),
        "nginx:1"
    );
    run("kubectl rollout undo deployment/web --to-revision=2");
    assert_eq!(
        run(&format!("kubectl get deployment/web -o {image}")),
        "nginx:2"
    );
    run("kubectl rollout pause deployment/web");
    run("kubectl set image deployment/web nginx=nginx:3");
    let paused = run("kubectl get deployment/web -o jsonpath={.status.updatedReplicas}");
    assert_ne!(paused, "3", "nothing is rolled out while it is paused");
    run("kubectl rollout resume deployment/web");
    run("kubectl rollout restart deployment/web");
    run("kubectl rollout status deployment/web --timeout=20s");
    let pods = run("kubectl get pods -l app=web -o jsonpath={.items[*].spec.containers[0].image}");
    assert!(pods.contains("nginx:3"), "{pods}");
}

#[test]
fn the_example_of_a_rollout_gets_stuck_and_is_undone() {
    let fleet = Fleet::start();
    let run = |command: &str| fleet.shell(command);
    run("kubectl apply -f examples/rollout/kiosk.yaml");
    run("kubectl rollout status deployment/kiosk --timeout=20s");
    run("kubectl patch deployment kiosk --patch-file examples/rollout/broken.yaml");
    let stuck = fleet.fails("kubectl rollout status deployment/kiosk --timeout=30s");
    assert!(stuck.contains("exceeded its progress deadline"), "{stuck}");
    let pods = run("kubectl get pods");
    assert!(
        pods.contains("ImagePullBackOff") || pods.contains("ErrImagePull"),
        "{pods}"
    );
    assert_eq!(
        run("kubectl get deployment/kiosk -o jsonpath={.status.availableReplicas}"),
        "3"
    );
    run("kubectl wait --for=condition=Available deployment/kiosk --timeout=5s");
    run("kubectl rollout undo deployment/kiosk");
    run("kubectl rollout status deployment/kiosk --timeout=20s");
    let events = run("kubectl events --types=Warning");
    assert!(
        events.contains("Failed to pull image \"registry.example/kiosk:2\""),
        "{events}"
    );
}

#[test]
fn the_example_of_workloads_comes_to_life() {
    let fleet = Fleet::start();
    let run = |command: &str| fleet.shell(command);
    run("kubectl apply -f examples/workloads/workloads.yaml");
    run("kubectl rollout status statefulset/database --timeout=30s");
    run("kubectl rollout status daemonset/agent --timeout=30s");
    run("kubectl wait --for=condition=Complete job/migrate --timeout=30s");
    run("kubectl wait --for=condition=Failed job/doomed --timeout=30s");
    let jobs = run("kubectl get jobs");
    assert!(
        jobs.contains("Complete") && jobs.contains("Failed"),
        "{jobs}"
    );
    assert!(run("kubectl get pvc").contains("Bound"));
    assert!(run("kubectl describe service database").contains(":5432"));
    assert!(
        run("kubectl get endpointslices -l kubernetes.io/service-name=database").contains("5432")
    );
    assert!(run("kubectl get cronjob tidy").contains("* * * * *"));
    run("kubectl create job now --from=cronjob/tidy");
    run("kubectl wait --for=condition=Complete job/now --timeout=30s");
    run("kubectl set image statefulset/database database=registry.example/database:2");
    run("kubectl rollout status statefulset/database --timeout=30s");
    assert!(run("kubectl rollout history statefulset/database").contains('2'));
    run("kubectl rollout undo statefulset/database");
    run("kubectl rollout status statefulset/database --timeout=30s");
    run("kubectl rollout restart daemonset/agent");
    run("kubectl rollout status daemonset/agent --timeout=30s");
    run("kubectl delete -f examples/workloads/workloads.yaml --timeout=30s");
    run("kubectl wait --for=delete pod -l app=database --timeout=30s");
}

#[test]
fn the_example_of_jobs_ends_in_many_ways() {
    let fleet = Fleet::start();
    let run = |command: &str| fleet.shell(command);
    run("kubectl apply -f examples/workloads/jobs.yaml");
    run("kubectl wait --for=condition=Complete job/first-answer --timeout=30s");
    run("kubectl wait --for=condition=Failed job/chunks job/migration --timeout=60s");
    let reason = |job: &str, kind: &str| {
        let path = format!("{{.status.conditions[?(@.type==\"{kind}\")].reason}}");
        run(&format!("kubectl get job/{job} -o jsonpath={path}"))
    };
    assert_eq!(reason("first-answer", "Complete"), "SuccessPolicy");
    assert_eq!(reason("chunks", "Failed"), "FailedIndexes");
    assert_eq!(reason("migration", "Failed"), "PodFailurePolicy");
    let chunks = run("kubectl get job/chunks -o jsonpath={.status.failedIndexes}");
    assert_eq!(chunks, "1");
}

#[test]
fn a_node_is_drained_as_fast_as_budgets_allow() {
    let fleet = Fleet::start();
    let run = |command: &str| fleet.shell(command);
    run("kubectl create deployment web --image=nginx:1 --replicas=2");
    run("kubectl rollout status deployment/web --timeout=20s");
    run("kubectl create poddisruptionbudget web --selector=app=web --min-available=2");
    run("kubectl wait --for=jsonpath={.status.currentHealthy}=2 pdb/web --timeout=10s");
    let refused = fleet.fails("kubectl drain hub-node --timeout=1s");
    assert!(
        refused.contains("Cannot evict pod as it would violate the pod's disruption budget."),
        "{refused}"
    );
    run("kubectl delete pdb web");
    run("kubectl drain hub-node --timeout=20s");
    assert!(run("kubectl get nodes").contains("SchedulingDisabled"));
    run("kubectl uncordon hub-node");
    run("kubectl rollout status deployment/web --timeout=20s");
}

#[test]
fn sizes_are_changed_and_waited_for() {
    let fleet = Fleet::start();
    let run = |command: &str| fleet.shell(command);
    run("kubectl create deployment web --image=nginx:1");
    run("kubectl wait --for=create deployment/web --timeout=5s");
    run("kubectl scale deployment/web --replicas=4");
    run("kubectl wait --for=jsonpath={.status.availableReplicas}=4 deployment/web --timeout=20s");
    let wrong = fleet.fails("kubectl scale deployment/web --current-replicas=9 --replicas=1");
    assert!(
        wrong.contains("Expected replicas to be 9, was 4"),
        "{wrong}"
    );
    run("kubectl autoscale deployment/web --min=2 --max=3 --cpu-percent=80");
    run("kubectl wait --for=jsonpath={.status.replicas}=3 deployment/web --timeout=20s");
    let autoscaler = run("kubectl get hpa web");
    assert!(autoscaler.contains("cpu: <unknown>/80%"), "{autoscaler}");
    assert!(run("kubectl describe hpa web").contains("SuccessfulRescale"));
    run("kubectl expose deployment/web --port=80");
    let name = run("kubectl get pods -l app=web -o jsonpath={.items[0].metadata.name}");
    run(&format!(
        "kubectl wait --for=condition=Ready pod/{name} --timeout=5s"
    ));
    let late =
        fleet.fails("kubectl wait --for=jsonpath={.status.replicas}=7 deployment/web --timeout=1s");
    assert!(late.contains("timed out"), "{late}");
}

#[test]
fn objects_are_deleted_with_or_without_what_they_own() {
    let fleet = Fleet::start();
    let run = |command: &str| fleet.shell(command);
    run("kubectl create deployment web --image=nginx:1 --replicas=2");
    run("kubectl rollout status deployment/web --timeout=20s");
    run("kubectl delete deployment web --cascade=orphan");
    assert_eq!(
        run("kubectl get pods -l app=web -o name").lines().count(),
        2
    );
    run("kubectl create deployment web --image=nginx:1 --replicas=2");
    run("kubectl rollout status deployment/web --timeout=20s");
    assert_eq!(
        run("kubectl get replicasets -o name").lines().count(),
        1,
        "it is adopted"
    );
    run("kubectl delete deployment web --cascade=foreground --timeout=20s");
    assert_eq!(run("kubectl get pods -l app=web -o name"), "");
    run("kubectl run lone --image=nginx:1");
    run("kubectl wait --for=condition=Ready pod/lone --timeout=10s");
    run("kubectl delete pod lone --wait=false");
    run("kubectl wait --for=delete pod/lone --timeout=10s");
    run("kubectl run lone --image=nginx:1");
    run("kubectl wait --for=condition=Ready pod/lone --timeout=10s");
    run("kubectl delete pod lone --grace-period=0 --force --timeout=10s");
    fleet.fails("kubectl get pod lone");
    run("kubectl create deployment web --image=nginx:1 --replicas=2");
    run("kubectl rollout status deployment/web --timeout=20s");
    run("kubectl delete deployment web --cascade=background");
    run("kubectl wait --for=delete pod -l app=web --timeout=20s");
}

#[test]
fn workloads_and_their_events_are_described() {
    let fleet = Fleet::start();
    let run = |command: &str| fleet.shell(command);
    run("kubectl create deployment web --image=nginx:1 --replicas=2");
    run("kubectl rollout status deployment/web --timeout=20s");
    let described = run("kubectl describe deployment web");
    for part in [
        "2 desired | 2 updated | 2 total | 2 available | 0 unavailable",
        "NewReplicaSetAvailable",
        "MinimumReplicasAvailable",
        "ScalingReplicaSet",
    ] {
        assert!(described.contains(part), "{part} is missing in {described}");
    }
    let name = run("kubectl get pods -l app=web -o jsonpath={.items[0].metadata.name}");
    let described = run(&format!("kubectl describe pod {name}"));
    for part in [
        "Controlled By:  ReplicaSet/web-",
        "Successfully assigned",
        "Container started",
        "ContainersReady",
    ] {
        assert!(described.contains(part), "{part} is missing in {described}");
    }
    let events = run("kubectl events --for deployment/web");
    assert!(events.contains("Scaled up replica set"), "{events}");
    let events = run("kubectl get events --field-selector reason=Started -o name");
    assert_eq!(events.lines().count(), 2, "{events}");
    let nodes = run("kubectl get nodes");
    assert!(
        nodes.contains("hub-node") && nodes.contains("Ready"),
        "{nodes}"
    );
    assert!(run("kubectl describe node hub-node").contains(&name));
    assert!(run("kubectl --context cluster1 get nodes").contains("cluster1-node"));
    assert!(run("kubectl get serviceaccounts -A").contains("kube-system"));
}

#[test]
fn changes_are_watched_as_they_happen() {
    let fleet = Fleet::start();
    fleet.shell("kubectl create deployment web --image=nginx:1 --replicas=0");
    let watch = fleet.spawn("kubectl get pods -w -o name");
    fleet.shell("kubectl scale deployment/web --replicas=1");
    fleet.shell("kubectl rollout status deployment/web --timeout=20s");
    let first = watch.line();
    assert!(first.starts_with("pod/web-"), "{first}");
    let watch = fleet.spawn("kubectl get deployment web --watch-only -o name");
    // The watch may begin at any time: keep the object moving until it is seen.
    let seen = (2..20).find_map(|replicas| {
        fleet.shell(&format!(
            "kubectl scale deployment/web --replicas={replicas}"
        ));
        fleet.shell("kubectl rollout status deployment/web --timeout=20s");
        watch.try_line()
    });
    assert!(seen.is_some(), "nothing was seen");
}

#[test]
fn what_needs_containers_says_that_there_are_none() {
    let fleet = Fleet::start();
    fleet.shell("kubectl run lone --image=nginx:1");
    fleet.shell("kubectl wait --for=condition=Ready pod/lone --timeout=10s");
    for command in [
        "exec lone -- ls",
        "port-forward lone 8080:80",
        "attach lone",
    ] {
        let refusal = fleet.fails(&format!("kubectl {command}"));
        assert!(
            refusal.contains("embedded clusters do not run containers"),
            "{command}: {refusal}"
        );
    }
    // What containers would write and use is made up.
    let log = fleet.shell("kubectl logs lone");
    assert!(log.ends_with("lone: started\n"), "{log}");
    let used = fleet.shell("kubectl top pods --no-headers");
    assert!(used.starts_with("lone ") && used.contains("Mi"), "{used}");
    let used = fleet.shell("kubectl top nodes --no-headers");
    assert!(used.contains("hub-node") && used.contains('%'), "{used}");
}

#[test]
fn without_the_simulator_nothing_moves() {
    let fleet = Fleet::start_with(&["--simulate-workloads=false"]);
    fleet.shell("kubectl create deployment web --image=nginx:1");
    fleet.fails("kubectl rollout status deployment/web --timeout=1s");
    assert_eq!(fleet.shell("kubectl get pods,nodes -o name"), "");
}

#[test]
fn a_fleet_that_was_killed_goes_on_with_its_rollouts() {
    let mut fleet = Fleet::start();
    fleet.shell("kubectl create deployment web --image=nginx:1 --replicas=3");
    fleet.kill_and_restart();
    fleet.shell("kubectl rollout status deployment/web --timeout=20s");
    let old = fleet.shell("kubectl get pods -l app=web -o name");
    fleet.shell("kubectl set image deployment/web nginx=nginx:2");
    fleet.kill_and_restart();
    fleet.shell("kubectl rollout status deployment/web --timeout=20s");
    // A rollout is done when the new pods are there; the old ones may still be ending.
    let old = old.split_whitespace().collect::<Vec<_>>().join(" ");
    fleet.shell(&format!("kubectl wait --for=delete {old} --timeout=20s"));
    let pods =
        fleet.shell("kubectl get pods -l app=web -o jsonpath={.items[*].spec.containers[0].image}");
    assert_eq!(pods, "nginx:2 nginx:2 nginx:2");
}
