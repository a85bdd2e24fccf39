//! Archives of sources, and files as they are cached.

use bellwether_helm::archive_files;
use bytes::Bytes;

use super::fetch::{Fetched, Files, Part, Problem};

/// Does something that may take long on a thread of its own.
pub(super) async fn blocking<T, F>(work: F) -> Result<T, Problem>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, String> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(Problem::lasting),
        Err(error) => Err(Problem::temporary(format!(
            "reading the source ended early: {error}"
        ))),
    }
}

/// The files of an archive, with its digest.
pub(super) async fn fetched(
    (digest, archive): (String, Bytes),
    part: Part<'_>,
) -> Result<Fetched, Problem> {
    let folder = match part {
        Part::Everything => None,
        Part::Folder(folder) => Some(folder.to_owned()),
    };
    let files = blocking(move || {
        let files = archive_files(&archive).map_err(|error| error.to_string())?;
        let files: Files = files
            .into_iter()
            .map(|(path, content)| (path, content.into()))
            .collect();
        let files = without_common_folder(files);
        match folder {
            Some(folder) => within(&files, &folder),
            None => Ok(files),
        }
    })
    .await?;
    Ok(Fetched { digest, files })
}

/// Archives of repositories and charts have one folder that everything is in.
fn without_common_folder(files: Files) -> Files {
    let first = |path: &str| path.split_once('/').map(|(folder, _)| folder.to_owned());
    let Some(common) = files.keys().next().and_then(|path| first(path)) else {
        return files;
    };
    if files
        .keys()
        .any(|path| first(path).as_ref() != Some(&common))
    {
        return files;
    }
    let inside = |path: String| path[common.len() + 1..].to_owned();
    files
        .into_iter()
        .map(|(path, content)| (inside(path), content))
        .collect()
}

/// The files in a folder, by their path in it.
pub(super) fn within(files: &Files, folder: &str) -> Result<Files, String> {
    let parts: Vec<&str> = folder
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    if parts.is_empty() {
        return Ok(files.clone());
    }
    let prefix = format!("{}/", parts.join("/"));
    let inside: Files = files
        .iter()
        .filter_map(|(path, content)| {
            Some((path.strip_prefix(&prefix)?.to_owned(), content.clone()))
        })
        .collect();
    if inside.is_empty() {
        return Err(format!("there is no folder {folder:?} in the source"));
    }
    Ok(inside)
}

/// Files as bytes: lengths and contents.
pub(super) fn encode(files: &Files) -> Vec<u8> {
    let mut encoded = Vec::new();
    for (path, content) in files {
        for part in [path.as_bytes(), content] {
            encoded.extend_from_slice(&(part.len() as u64).to_be_bytes());
            encoded.extend_from_slice(part);
        }
    }
    encoded
}

/// Files from bytes; none if these were not written by [`encode`].
pub(super) fn decode(encoded: &Bytes) -> Option<Files> {
    let mut files = Files::new();
    let mut position = 0;
    let mut part = || {
        let start = position + 8;
        let length = u64::from_be_bytes(encoded.get(position..start)?.try_into().ok()?);
        let end = start.checked_add(usize::try_from(length).ok()?)?;
        encoded.get(start..end)?;
        position = end;
        Some((encoded.slice(start..end), end))
    };
    let mut end = 0;
    while end < encoded.len() {
        let (path, _) = part()?;
        let (content, after) = part()?;
        files.insert(String::from_utf8(path.to_vec()).ok()?, content);
        end = after;
    }
    Some(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(paths: &[&str]) -> Files {
        paths
            .iter()
            .map(|path| {
                (
                    (*path).to_owned(),
                    Bytes::from(format!("content of {path}")),
                )
            })
            .collect()
    }

    #[test]
    fn files_are_decoded_as_they_were_encoded() {
        let all = files(&["a", "b/c", "empty"]);
        let encoded = Bytes::from(encode(&all));
        assert_eq!(decode(&encoded), Some(all));
        assert_eq!(decode(&encoded.slice(..encoded.len() - 1)), None);
        assert_eq!(decode(&Bytes::from_static(&[0xff; 20])), None);
        assert_eq!(decode(&Bytes::new()), Some(Files::new()));
    }

    #[test]
    fn the_folder_that_everything_is_in_does_not_count() {
        let keys = |files: Files| files.into_keys().collect::<Vec<_>>();
        assert_eq!(
            keys(without_common_folder(files(&["web-1/a", "web-1/b/c"]))),
            ["a", "b/c"]
        );
        assert_eq!(
            keys(without_common_folder(files(&["a", "b/c"]))),
            ["a", "b/c"]
        );
        assert_eq!(
            keys(without_common_folder(files(&["a/x", "b/c"]))),
            ["a/x", "b/c"]
        );
    }

    #[test]
    fn a_folder_that_is_not_there_is_reported() {
        let all = files(&["chart/Chart.yaml", "charts/x"]);
        assert_eq!(
            within(&all, "./chart/")
                .unwrap()
                .into_keys()
                .collect::<Vec<_>>(),
            ["Chart.yaml"]
        );
        assert_eq!(within(&all, "").unwrap(), all);
        assert!(within(&all, "other").unwrap_err().contains("no folder"));
    }
}
