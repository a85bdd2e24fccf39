//! Packed charts, and what is refused of them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::Write as _;

use bellwether_helm::Chart;
use flate2::Compression;
use flate2::write::GzEncoder;

/// A tar archive of files: name, type, content.
fn packed(files: &[(&str, u8, &[u8])]) -> Vec<u8> {
    let mut tar = Vec::new();
    for (name, kind, content) in files {
        let mut header = [0_u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        header[156] = *kind;
        tar.extend_from_slice(&header);
        tar.extend_from_slice(content);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&tar).unwrap();
    encoder.finish().unwrap()
}

const CHART: (&str, u8, &[u8]) = (
    "app/Chart.yaml",
    b'0',
    b"apiVersion: v2\nname: app\nversion: 1.0.0\n",
);

#[track_caller]
fn refused(archive: &[u8], expected: &str) {
    let error = Chart::from_archive(archive).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn archives_are_unpacked_also_inside_of_archives() {
    let kid = packed(&[
        ("kid/Chart.yaml", b'0', b"name: kid\nversion: 2.0.0\n"),
        ("kid/values.yaml", b'0', b"a: 1\n"),
    ]);
    let archive = packed(&[
        CHART,
        ("app/", b'5', b""),
        ("app/charts/kid-2.0.0.tgz", b'0', &kid),
    ]);
    let chart = Chart::from_archive(&archive).unwrap();
    assert_eq!(chart.name(), "app");
    assert_eq!(chart.dependencies[0].metadata.version, "2.0.0");
}

#[test]
fn archives_that_leave_their_directory_or_are_too_large_are_refused() {
    refused(
        &packed(&[CHART, ("app/../x", b'0', b"")]),
        "parent directory",
    );
    refused(
        &packed(&[CHART, ("x", b'0', b"")]),
        "outside the base directory",
    );
    refused(&packed(&[CHART, ("app/l", b'2', b"")]), "links are refused");
    refused(
        &packed(&[CHART, ("app/big", b'0', &vec![0; 6 * 1024 * 1024])]),
        "larger than 5242880",
    );
    let bomb = vec![0_u8; 21 * 5 * 1024 * 1024];
    refused(
        &packed(&[CHART, ("app/bomb", b'0', &bomb)]),
        "larger than 104857600",
    );
    refused(b"PK", "not a gzipped archive");
    refused(
        &packed(&[("app/values.yaml", b'0', b"")]),
        "Chart.yaml file is missing",
    );
}
