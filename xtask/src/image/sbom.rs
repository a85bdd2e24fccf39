//! What a program is made of: the packages of `Cargo.lock` that it can reach, as SPDX.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use serde_json::{Value, json};

/// A package as `Cargo.lock` has it.
#[derive(Debug, Default, Clone)]
struct Package {
    name: String,
    version: String,
    source: String,
    checksum: String,
    dependencies: Vec<String>,
}

/// Returns a document about a package and everything that it depends on, also for its tests: the lock file does not say which.
pub(crate) fn spdx(lock: &str, root: &str) -> anyhow::Result<Value> {
    let packages = parse(lock);
    let all = reachable(&packages, root)?;
    let id = |package: &Package| {
        let text = format!("{}-{}", package.name, package.version);
        let plain = text.chars().map(|it| match it {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '.' => it,
            _ => '-',
        });
        format!("SPDXRef-{}", plain.collect::<String>())
    };
    let described: Vec<Value> = all
        .iter()
        .map(|package| describe(package, &id(package)))
        .collect();
    let main = all.iter().find(|package| package.name == root);
    let main = main.with_context(|| format!("{root} is not in the lock file"))?;
    let digest = super::oci::hex(lock.as_bytes());
    Ok(json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": root,
        "documentNamespace": format!("https://bellwether.dev/spdx/{root}-{digest}"),
        "creationInfo": {"created": "1970-01-01T00:00:00Z", "creators": ["Tool: cargo-xtask-image"]},
        "packages": described,
        "relationships": [{
            "spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
            "relatedSpdxElement": id(main),
        }],
    }))
}

fn describe(package: &Package, id: &str) -> Value {
    let location = if package.source.is_empty() {
        "NOASSERTION"
    } else {
        &package.source
    };
    let mut described = json!({
        "name": package.name, "SPDXID": id, "versionInfo": package.version,
        "downloadLocation": location, "filesAnalyzed": false,
        "externalRefs": [{
            "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
            "referenceLocator": format!("pkg:cargo/{}@{}", package.name, package.version),
        }],
    });
    if !package.checksum.is_empty() {
        described["checksums"] =
            json!([{"algorithm": "SHA256", "checksumValue": package.checksum}]);
    }
    described
}

/// Reads the packages. The file is written by Cargo: one field a line, lists with one entry a line.
fn parse(lock: &str) -> Vec<Package> {
    let mut packages: Vec<Package> = Vec::new();
    let mut is_package = false;
    for line in lock.lines().map(str::trim) {
        if line.starts_with('[') && !line.starts_with("[\"") {
            is_package = line == "[[package]]";
            if is_package {
                packages.push(Package::default());
            }
            continue;
        }
        let Some(package) = packages.last_mut().filter(|_| is_package) else {
            continue;
        };
        let value = |text: &str| text.trim_matches([' ', '"', ',']).to_owned();
        match line.split_once(" = ") {
            Some(("name", text)) => package.name = value(text),
            Some(("version", text)) => package.version = value(text),
            Some(("source", text)) => package.source = value(text),
            Some(("checksum", text)) => package.checksum = value(text),
            None if line.starts_with('"') => package.dependencies.push(value(line)),
            _ => {}
        }
    }
    packages
}

/// The packages that a package needs, itself among them, sorted by name and version.
fn reachable<'a>(packages: &'a [Package], root: &str) -> anyhow::Result<Vec<&'a Package>> {
    // A dependency is named by its name alone, unless there are several versions of it.
    let mut by_name: BTreeMap<String, usize> = BTreeMap::new();
    for (index, package) in packages.iter().enumerate() {
        by_name.insert(package.name.clone(), index);
        by_name.insert(format!("{} {}", package.name, package.version), index);
    }
    let first = by_name.get(root);
    let mut open = vec![*first.with_context(|| format!("{root} is not in the lock file"))?];
    let mut found: BTreeSet<usize> = BTreeSet::new();
    while let Some(index) = open.pop() {
        if found.insert(index) {
            let names = packages[index].dependencies.iter();
            open.extend(names.filter_map(|name| by_name.get(name)));
        }
    }
    let mut found: Vec<&Package> = found.into_iter().map(|index| &packages[index]).collect();
    found.sort_by(|one, other| (&one.name, &one.version).cmp(&(&other.name, &other.version)));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = r#"version = 4

[[package]]
name = "a"
version = "1.0.0"
dependencies = [
 "b 2.0.0",
]

[[package]]
name = "b"
version = "1.0.0"

[[package]]
name = "b"
version = "2.0.0"
source = "registry+https://example.com/index"
checksum = "00ff"

[[package]]
name = "unrelated"
version = "1.0.0"
"#;

    #[test]
    fn only_what_a_program_can_reach_is_part_of_it() {
        let document = spdx(LOCK, "a").unwrap();
        let packages = document["packages"].as_array().unwrap();
        let names: Vec<String> = packages
            .iter()
            .map(|it| format!("{} {}", it["name"], it["versionInfo"]).replace('"', ""))
            .collect();
        assert_eq!(names, ["a 1.0.0", "b 2.0.0"]);
        assert_eq!(packages[1]["checksums"][0]["checksumValue"], "00ff");
        assert_eq!(
            document["relationships"][0]["relatedSpdxElement"],
            "SPDXRef-a-1.0.0"
        );
        assert!(spdx(LOCK, "c").is_err());
    }

    #[test]
    fn the_lock_file_of_this_workspace_can_be_read() {
        let lock = include_str!("../../../Cargo.lock");
        let document = spdx(lock, "bellwether").unwrap();
        let packages = document["packages"].as_array().unwrap();
        assert!(
            packages.iter().any(|it| it["name"] == "kube"),
            "{}",
            packages.len()
        );
        assert!(packages.iter().all(|it| it["versionInfo"] != ""));
    }
}
