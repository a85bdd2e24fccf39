//! Packed charts: gzip and tar, under bounds.

use std::io::Read as _;

use flate2::read::MultiGzDecoder;

use crate::error::{Error, Result};

/// Bytes of all files together.
const MAX_CHART_BYTES: usize = 100 * 1024 * 1024;

/// Bytes of one file.
const MAX_FILE_BYTES: usize = 5 * 1024 * 1024;

/// Files in one chart.
const MAX_FILES: usize = 10_000;

const BLOCK: usize = 512;

/// The files of a packed chart, without the directory that all of them are in.
pub(crate) fn files(archive: &[u8]) -> Result<Vec<(String, Vec<u8>)>> {
    entries(&unpack(archive)?, path_in_chart)
}

/// The files of any archive that charts or overlays may come in, under the same bounds as those of a packed chart.
pub fn archive_files(archive: &[u8]) -> Result<Vec<(String, Vec<u8>)>> {
    entries(&unpack(archive)?, |name| {
        path_in_chart(&format!("./{}", name.trim_start_matches("./")))
    })
}

fn unpack(archive: &[u8]) -> Result<Vec<u8>> {
    if !archive.starts_with(&[0x1F, 0x8B]) {
        return Err(Error::chart("the chart is not a gzipped archive (.tgz)"));
    }
    let mut unpacked = Vec::new();
    let mut decoder = MultiGzDecoder::new(archive).take(MAX_CHART_BYTES as u64 + 1);
    decoder
        .read_to_end(&mut unpacked)
        .map_err(|error| Error::chart(format!("the chart cannot be unpacked: {error}")))?;
    if unpacked.len() > MAX_CHART_BYTES {
        let message = format!("the unpacked chart is larger than {MAX_CHART_BYTES} bytes");
        return Err(Error::chart(message));
    }
    Ok(unpacked)
}

/// The files in an archive, each at the place that its name is turned into.
fn entries(tar: &[u8], place: impl Fn(&str) -> Result<String>) -> Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    let mut rest = tar;
    let mut long_name: Option<String> = None;
    while rest.len() >= BLOCK && rest[..BLOCK].iter().any(|byte| *byte != 0) {
        let (header, after) = rest.split_at(BLOCK);
        let size = octal(&header[124..136])
            .filter(|size| *size <= after.len())
            .ok_or_else(|| Error::chart("the archive of the chart is damaged"))?;
        let content = &after[..size];
        rest = &after[size.next_multiple_of(BLOCK).min(after.len())..];
        match header[156] {
            b'0' | 0 => {
                let name = long_name.take().unwrap_or_else(|| name(header));
                files.push((place(&name)?, file_content(&name, content)?));
                if files.len() > MAX_FILES {
                    let message = format!("the chart has more than {MAX_FILES} files");
                    return Err(Error::chart(message));
                }
            }
            // A long name for the next entry: GNU's form, and that of pax.
            b'L' => long_name = Some(until_zero(content)),
            b'x' => long_name = pax_path(content).or(long_name),
            b'1' | b'2' => {
                let name = long_name.take().unwrap_or_else(|| name(header));
                let message = format!("the chart contains the link {name:?}; links are refused");
                return Err(Error::chart(message));
            }
            // Directories and attributes mean nothing.
            _ => long_name = None,
        }
    }
    Ok(files)
}

fn file_content(name: &str, content: &[u8]) -> Result<Vec<u8>> {
    if content.len() > MAX_FILE_BYTES {
        let message =
            format!("the file {name:?} of the chart is larger than {MAX_FILE_BYTES} bytes");
        return Err(Error::chart(message));
    }
    Ok(content.to_vec())
}

/// The path without the first directory; paths that leave the chart are refused.
fn path_in_chart(name: &str) -> Result<String> {
    let name = name.replace('\\', "/");
    let Some((first, inside)) = name.split_once('/') else {
        return Err(Error::chart(format!(
            "chart illegally contains content outside the base directory: {name:?}"
        )));
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in inside.split('/') {
        match part {
            "" | "." => {}
            ".." => return Err(Error::chart("chart illegally references parent directory")),
            part => parts.push(part),
        }
    }
    let is_drive = inside.as_bytes().get(1) == Some(&b':');
    if parts.is_empty() || first.is_empty() || inside.starts_with('/') || is_drive {
        return Err(Error::chart(format!(
            "chart illegally contains content outside the base directory: {name:?}"
        )));
    }
    Ok(parts.join("/"))
}

fn octal(field: &[u8]) -> Option<usize> {
    let text = until_zero(field);
    usize::from_str_radix(text.trim(), 8).ok()
}

fn until_zero(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn name(header: &[u8]) -> String {
    let name = until_zero(&header[..100]);
    let prefix = until_zero(&header[345..500]);
    if prefix.is_empty() || &header[257..262] != b"ustar" {
        return name;
    }
    format!("{prefix}/{name}")
}

/// The `path` of an extended header: lines of `LENGTH KEY=VALUE`.
fn pax_path(content: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(content);
    text.lines().find_map(|line| {
        let (_, pair) = line.split_once(' ')?;
        pair.strip_prefix("path=").map(str::to_owned)
    })
}
