//! Manifests from files, directories and standard input.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::Error;

/// Files that a directory is searched for.
const EXTENSIONS: [&str; 3] = ["json", "yaml", "yml"];

/// What kubectl calls standard input.
const STANDARD_INPUT: &str = "STDIN";

/// An object of a manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// The file that it is in.
    pub place: String,
    /// The object.
    pub object: Value,
}

/// All objects in files, directories, or standard input (`-`), in order; lists are taken apart.
/// `verb` is what is to be done with them.
pub fn read_manifests(
    paths: &[PathBuf],
    recursive: bool,
    verb: &str,
) -> Result<Vec<Manifest>, Error> {
    let mut objects = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .map_err(|error| unreadable(STANDARD_INPUT, &error))?;
            parse(&text, STANDARD_INPUT, &mut objects)?;
            continue;
        }
        if !path.exists() {
            let path = path.display();
            return Err(Error::Usage(format!("the path \"{path}\" does not exist")));
        }
        for file in files(path, recursive)? {
            let place = file.display().to_string();
            let text =
                std::fs::read_to_string(&file).map_err(|error| unreadable(&place, &error))?;
            parse(&text, &place, &mut objects)?;
        }
    }
    if objects.is_empty() {
        return Err(Error::Usage(format!("no objects passed to {verb}")));
    }
    Ok(objects)
}

fn unreadable(place: &str, error: &std::io::Error) -> Error {
    Error::Manifest {
        place: place.to_owned(),
        why: error.to_string(),
    }
}

fn files(path: &Path, recursive: bool) -> Result<Vec<PathBuf>, Error> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let place = path.display().to_string();
    let entries = std::fs::read_dir(path).map_err(|error| unreadable(&place, &error))?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| unreadable(&place, &error))?;
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            if recursive {
                found.extend(files(&path, recursive)?);
            }
        } else if path
            .extension()
            .is_some_and(|end| EXTENSIONS.iter().any(|known| end == *known))
        {
            found.push(path);
        }
    }
    Ok(found)
}

fn parse(text: &str, place: &str, objects: &mut Vec<Manifest>) -> Result<(), Error> {
    let wrong = |why: String| Error::Manifest {
        place: place.to_owned(),
        why,
    };
    let documents =
        bellwether_json::yaml::from_yaml(text).map_err(|error| wrong(error.to_string()))?;
    let found = |object: Value| Manifest {
        place: place.to_owned(),
        object,
    };
    for (index, document) in documents.into_iter().enumerate() {
        let is_list = document["kind"]
            .as_str()
            .is_some_and(|kind| kind.ends_with("List"));
        match document {
            Value::Null => {}
            mut document if is_list && document["items"].is_array() => {
                if let Value::Array(items) = document["items"].take() {
                    objects.extend(items.into_iter().map(found));
                }
            }
            document if document["kind"].is_string() && document["apiVersion"].is_string() => {
                objects.push(found(document));
            }
            _ => {
                return Err(wrong(format!(
                    "document {} is not an object: apiVersion and kind are needed",
                    index + 1
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_read_in_order_and_lists_are_taken_apart() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            std::fs::write(directory.path().join(name), text).unwrap();
        };
        write(
            "b.yaml",
            "apiVersion: v1\nkind: B\n---\n---\napiVersion: v1\nkind: C\n",
        );
        write(
            "a.json",
            r#"{"apiVersion":"v1","kind":"List","items":[{"kind":"A"}]}"#,
        );
        write("notes.txt", "not a manifest");
        let objects = read_manifests(&[directory.path().to_owned()], false, "apply").unwrap();
        let kinds: Vec<_> = objects
            .iter()
            .map(|found| found.object["kind"].clone())
            .collect();
        assert_eq!(kinds, ["A", "B", "C"]);
    }

    #[test]
    fn what_is_no_object_is_named_with_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("x.yaml");
        std::fs::write(&file, "apiVersion: v1\nkind: A\n---\nhello: world\n").unwrap();
        let error = read_manifests(&[file], false, "apply")
            .unwrap_err()
            .to_string();
        assert!(
            error.ends_with("x.yaml: document 2 is not an object: apiVersion and kind are needed")
        );
    }
}
