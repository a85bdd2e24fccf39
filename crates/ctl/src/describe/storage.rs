//! Volumes, claims of volumes, and their classes.

use serde_json::Value;

use super::page::Page;
use super::read::{capital, flat_labels, items, joined, quantity, shown_or, text};
use super::subject::Subject;
use super::volumes;

/// The annotation by which a class was named before there was a field for it.
const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const DEFAULT_CLASS: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];

fn class(object: &Value) -> &str {
    match text(&object["metadata"]["annotations"][OLD_CLASS]) {
        "" => text(&object["spec"]["storageClassName"]),
        class => class,
    }
}

fn modes(modes: &Value) -> String {
    let order = [
        "ReadWriteOnce",
        "ReadOnlyMany",
        "ReadWriteMany",
        "ReadWriteOncePod",
    ];
    let short = ["RWO", "ROX", "RWX", "RWOP"];
    let given = |mode: &str| items(modes).iter().any(|known| known == mode);
    let found = order.iter().zip(short).filter(|(mode, _)| given(mode));
    found.map(|(_, short)| short).collect::<Vec<_>>().join(",")
}

fn status(subject: &Subject<'_>) -> String {
    match &subject.metadata()["deletionTimestamp"] {
        Value::Null => text(&subject.status()["phase"]).to_owned(),
        time => format!("Terminating (lasts {})", subject.moment.since(time)),
    }
}

/// Describes a claim.
pub(super) fn claim(subject: &Subject<'_>, page: &mut Page) {
    let (metadata, spec) = (subject.metadata(), subject.spec());
    page.pair(0, "Name", text(&metadata["name"]));
    page.pair(0, "Namespace", text(&metadata["namespace"]));
    page.pair(0, "StorageClass", class(subject.object));
    page.pair(0, "Status", status(subject));
    let volume = text(&spec["volumeName"]);
    page.pair(0, "Volume", volume);
    page.labels("Labels", &metadata["labels"]);
    page.annotations("Annotations", &metadata["annotations"]);
    page.finalizers(subject.object);
    let bound = subject.status();
    let (capacity, access) = if volume.is_empty() {
        (String::new(), String::new())
    } else {
        let capacity = &bound["capacity"]["storage"];
        let capacity = if capacity.is_null() {
            "0".to_owned()
        } else {
            quantity(capacity)
        };
        (capacity, modes(&bound["accessModes"]))
    };
    page.pair(0, "Capacity", capacity);
    page.pair(0, "Access Modes", access);
    page.pair_if(0, "VolumeMode", text(&spec["volumeMode"]));
    let source = &spec["dataSource"];
    if source.is_object() {
        page.line(0, "DataSource:");
        page.pair_if(1, "APIGroup", text(&source["apiGroup"]));
        page.pair(1, "Kind", text(&source["kind"]));
        page.pair(1, "Name", text(&source["name"]));
    }
    page.list("Used By", &users(subject));
    claim_conditions(subject, page);
}

/// The pods that use a claim.
fn users(subject: &Subject<'_>) -> Vec<String> {
    let name = &subject.metadata()["name"];
    let uses = |pod: &&Value| {
        let volumes = items(&pod["spec"]["volumes"]).iter();
        let mut claims = volumes.map(|volume| &volume["persistentVolumeClaim"]["claimName"]);
        claims.any(|claim| claim == name)
    };
    let pods = subject.related.pods.iter().filter(uses);
    let mut names: Vec<String> = pods
        .map(|pod| text(&pod["metadata"]["name"]).to_owned())
        .collect();
    names.sort();
    names
}

fn claim_conditions(subject: &Subject<'_>, page: &mut Page) {
    let conditions = items(&subject.status()["conditions"]);
    if conditions.is_empty() {
        return;
    }
    page.line(0, "Conditions:");
    page.line(
        1,
        "Type\tStatus\tLastProbeTime\tLastTransitionTime\tReason\tMessage",
    );
    page.line(
        1,
        "----\t------\t-----------------\t------------------\t------\t-------",
    );
    for found in conditions {
        let [kind, status, reason, message] =
            ["type", "status", "reason", "message"].map(|name| text(&found[name]));
        let [probed, since] =
            ["lastProbeTime", "lastTransitionTime"].map(|name| subject.moment.date(&found[name]));
        page.line(
            1,
            format_args!("{kind} \t{status} \t{probed} \t{since} \t{reason} \t{message}"),
        );
    }
}

/// Describes a volume.
pub(super) fn volume(subject: &Subject<'_>, page: &mut Page) {
    let (metadata, spec) = (subject.metadata(), subject.spec());
    page.pair(0, "Name", text(&metadata["name"]));
    page.labels("Labels", &metadata["labels"]);
    page.annotations("Annotations", &metadata["annotations"]);
    page.finalizers(subject.object);
    page.pair(0, "StorageClass", class(subject.object));
    page.pair(0, "Status", status(subject));
    let claim = &spec["claimRef"];
    let claim = match claim {
        Value::Null => String::new(),
        claim => format!("{}/{}", text(&claim["namespace"]), text(&claim["name"])),
    };
    page.pair(0, "Claim", claim);
    page.pair(
        0,
        "Reclaim Policy",
        text(&spec["persistentVolumeReclaimPolicy"]),
    );
    page.pair(0, "Access Modes", modes(&spec["accessModes"]));
    page.pair_if(0, "VolumeMode", text(&spec["volumeMode"]));
    page.pair(0, "Capacity", quantity(&spec["capacity"]["storage"]));
    affinity(page, &spec["nodeAffinity"]["required"]);
    page.pair(0, "Message", text(&subject.status()["message"]));
    page.line(0, "Source:");
    volumes::source(page, spec);
}

fn affinity(page: &mut Page, required: &Value) {
    if required.is_null() {
        page.pair(0, "Node Affinity", "<none>");
        return;
    }
    page.pair(0, "Node Affinity", "");
    let terms = items(&required["nodeSelectorTerms"]);
    let none = if terms.is_empty() { "<none>" } else { "" };
    page.pair(1, "Required Terms", none);
    for (number, term) in terms.iter().enumerate() {
        let requirements = items(&term["matchExpressions"]);
        if requirements.is_empty() {
            page.pair(2, &format!("Term {number}"), "<none>");
        }
        for (at, requirement) in requirements.iter().enumerate() {
            let key = text(&requirement["key"]);
            let operator = text(&requirement["operator"]).to_lowercase();
            let values = match joined(&requirement["values"], ", ") {
                values if values.is_empty() => values,
                values => format!(" [{values}]"),
            };
            let label = if at == 0 {
                format!("Term {number}:")
            } else {
                String::new()
            };
            page.line(2, format_args!("{label}\t{key} {operator}{values}"));
        }
    }
}

/// Describes a class of volumes.
pub(super) fn storage_class(subject: &Subject<'_>, page: &mut Page) {
    let (metadata, object) = (subject.metadata(), subject.object);
    page.pair(0, "Name", text(&metadata["name"]));
    let is_default = DEFAULT_CLASS
        .iter()
        .any(|name| metadata["annotations"][*name] == "true");
    page.pair(0, "IsDefaultClass", if is_default { "Yes" } else { "No" });
    page.pair(0, "Annotations", flat_labels(&metadata["annotations"]));
    page.pair(0, "Provisioner", text(&object["provisioner"]));
    page.pair(0, "Parameters", flat_labels(&object["parameters"]));
    let expands = object["allowVolumeExpansion"]
        .as_bool()
        .map_or("<unset>", capital);
    page.pair(0, "AllowVolumeExpansion", expands);
    let options = items(&object["mountOptions"]);
    if options.is_empty() {
        page.pair(0, "MountOptions", "<none>");
    } else {
        page.line(0, "MountOptions:");
    }
    for option in options {
        page.line(1, text(option));
    }
    for (label, name) in [
        ("ReclaimPolicy", "reclaimPolicy"),
        ("VolumeBindingMode", "volumeBindingMode"),
    ] {
        if !object[name].is_null() {
            page.pair(0, label, shown_or(&object[name], ""));
        }
    }
}
