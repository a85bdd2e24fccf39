//! Volumes of pods, and where persistent ones really are.

use serde_json::Value;

use super::page::{Page, sorted};
use super::read::{items, number, quantity, shown, shown_or, text, truth};

/// A kind of volume: the member that it is, what it is said to be, and its fields.
type Source = (&'static str, &'static str, &'static [(&'static str, Field)]);

/// How a field is shown.
#[derive(Clone, Copy)]
enum Field {
    /// As it is; empty if missing.
    Plain(&'static str),
    /// A truth that is false if missing.
    Truth(&'static str),
    /// A size.
    Size(&'static str),
    /// As it is, `<none>` if missing.
    OrNone(&'static str),
    /// The fields of a list.
    List(&'static str),
    /// A number that is 0 if missing.
    Number(&'static str),
}

use Field::{List, Number, OrNone, Plain, Size, Truth};

/// The kinds of volumes that have nothing but fields.
const SOURCES: &[Source] = &[
    (
        "hostPath",
        "HostPath (bare host directory volume)",
        &[("Path", Plain("path")), ("HostPathType", OrNone("type"))],
    ),
    (
        "emptyDir",
        "EmptyDir (a temporary directory that shares a pod's lifetime)",
        &[
            ("Medium", Plain("medium")),
            ("SizeLimit", Size("sizeLimit")),
        ],
    ),
    (
        "secret",
        "Secret (a volume populated by a Secret)",
        &[
            ("SecretName", Plain("secretName")),
            ("Optional", Truth("optional")),
        ],
    ),
    (
        "configMap",
        "ConfigMap (a volume populated by a ConfigMap)",
        &[("Name", Plain("name")), ("Optional", Truth("optional"))],
    ),
    (
        "nfs",
        "NFS (an NFS mount that lasts the lifetime of a pod)",
        &[
            ("Server", Plain("server")),
            ("Path", Plain("path")),
            ("ReadOnly", Truth("readOnly")),
        ],
    ),
    (
        "persistentVolumeClaim",
        "PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)",
        &[
            ("ClaimName", Plain("claimName")),
            ("ReadOnly", Truth("readOnly")),
        ],
    ),
    (
        "local",
        "LocalVolume (a persistent volume backed by local storage on a node)",
        &[("Path", Plain("path"))],
    ),
    (
        "gcePersistentDisk",
        "GCEPersistentDisk (a Persistent Disk resource in Google Compute Engine)",
        &[
            ("PDName", Plain("pdName")),
            ("FSType", Plain("fsType")),
            ("Partition", Number("partition")),
            ("ReadOnly", Truth("readOnly")),
        ],
    ),
    (
        "awsElasticBlockStore",
        "AWSElasticBlockStore (a Persistent Disk resource in AWS)",
        &[
            ("VolumeID", Plain("volumeID")),
            ("FSType", Plain("fsType")),
            ("Partition", Number("partition")),
            ("ReadOnly", Truth("readOnly")),
        ],
    ),
    (
        "gitRepo",
        "GitRepo (a volume that is pulled from git when the pod is created)",
        &[
            ("Repository", Plain("repository")),
            ("Revision", Plain("revision")),
        ],
    ),
    (
        "fc",
        "FC (a Fibre Channel disk)",
        &[
            ("TargetWWNs", List("targetWWNs")),
            ("LUN", Number("lun")),
            ("FSType", Plain("fsType")),
            ("ReadOnly", Truth("readOnly")),
        ],
    ),
];

/// Writes the volumes of a pod; `space` is what a template is indented by.
pub(super) fn write(page: &mut Page, volumes: &Value, space: &str) {
    if items(volumes).is_empty() {
        page.line(0, format_args!("{space}Volumes:\t<none>"));
        return;
    }
    page.line(0, format_args!("{space}Volumes:"));
    let indent = if space.is_empty() { "" } else { " " };
    for volume in items(volumes) {
        page.line(1, format_args!("{indent}{}:", text(&volume["name"])));
        if volume["projected"].is_object() {
            projected(page, &volume["projected"]);
        } else if volume["downwardAPI"].is_object() {
            downward(page, &volume["downwardAPI"]);
        } else {
            source(page, volume);
        }
    }
}

/// Writes where a volume is.
pub(super) fn source(page: &mut Page, volume: &Value) {
    if volume["csi"].is_object() {
        driver(page, &volume["csi"]);
        return;
    }
    let known = SOURCES
        .iter()
        .find(|(name, _, _)| volume[*name].is_object());
    let Some((name, what, fields)) = known else {
        page.line(1, "<unknown>");
        return;
    };
    page.pair(2, "Type", what);
    for (label, field) in *fields {
        let value = |key: &str| &volume[*name][key];
        match *field {
            Plain(key) => page.pair(2, label, shown(value(key))),
            Truth(key) => page.pair(2, label, truth(value(key))),
            OrNone(key) => page.pair(2, label, shown_or(value(key), "<none>")),
            List(key) => page.pair(2, label, super::read::joined(value(key), ", ")),
            Number(key) => page.pair(2, label, number(value(key))),
            Size(key) if value(key).is_null() => page.pair(2, label, "<unset>"),
            Size(key) => page.pair(2, label, quantity(value(key))),
        }
    }
}

fn driver(page: &mut Page, csi: &Value) {
    page.pair(
        2,
        "Type",
        "CSI (a Container Storage Interface (CSI) volume source)",
    );
    page.pair(2, "Driver", text(&csi["driver"]));
    page.pair(2, "FSType", text(&csi["fsType"]));
    if csi["volumeHandle"].is_string() {
        page.pair(2, "VolumeHandle", text(&csi["volumeHandle"]));
    }
    page.pair(2, "ReadOnly", truth(&csi["readOnly"]));
    let attributes = sorted(&csi["volumeAttributes"]);
    if attributes.is_empty() {
        page.pair(2, "VolumeAttributes", "<none>");
    }
    for (at, (key, value)) in attributes.into_iter().enumerate() {
        let label = if at == 0 { "VolumeAttributes:" } else { "" };
        page.line(2, format_args!("{label}\t    {key}={}", text(value)));
    }
}

fn projected(page: &mut Page, projected: &Value) {
    page.pair(
        2,
        "Type",
        "Projected (a volume that contains injected data from multiple sources)",
    );
    for source in items(&projected["sources"]) {
        let named = [
            ("secret", "SecretName", "SecretOptionalName"),
            ("configMap", "ConfigMapName", "ConfigMapOptional"),
        ];
        let mut named = named.into_iter();
        if let Some((name, label, optional)) = named.find(|(name, ..)| source[*name].is_object()) {
            page.pair(2, label, text(&source[name]["name"]));
            page.pair(2, optional, shown_or(&source[name]["optional"], "<nil>"));
        } else if source["downwardAPI"].is_object() {
            page.pair(2, "DownwardAPI", "true");
        } else if source["serviceAccountToken"].is_object() {
            let seconds = number(&source["serviceAccountToken"]["expirationSeconds"]);
            page.pair(2, "TokenExpirationSeconds", seconds);
        }
    }
}

fn downward(page: &mut Page, downward: &Value) {
    page.pair(
        2,
        "Type",
        "DownwardAPI (a volume populated by information about the pod)",
    );
    page.line(2, "Items:");
    for item in items(&downward["items"]) {
        let path = text(&item["path"]);
        for (name, key) in [("fieldRef", "fieldPath"), ("resourceFieldRef", "resource")] {
            if item[name].is_object() {
                page.line(3, format_args!("{} -> {path}", text(&item[name][key])));
            }
        }
    }
}
