//! Content that KubeVela stores compressed, read as if it were not.
//!
//! KubeVela writes most of a revision, and on request the objects of a tracker, as base64 of JSON compressed with gzip or
//! zstd. Types read it whole, and are written without compression. What cannot be read stays as it is.

use std::io::Read;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use super::RevisionCompression;

/// The largest content that is read: an object of 1.5 MB, as large as etcd allows, of repetitive text.
const LONGEST: u64 = 64 << 20;

/// A type whose content may be compressed.
pub(super) trait Compressed {
    /// Takes the compressed content for its own, if it can be read.
    fn inflate(&mut self);
}

/// Reads a type whose content may be compressed.
pub(super) fn inflated<'de, D: Deserializer<'de>, S: Deserialize<'de> + Compressed>(
    deserializer: D,
) -> Result<S, D::Error> {
    let mut content = S::deserialize(deserializer)?;
    content.inflate();
    Ok(content)
}

impl RevisionCompression {
    /// Returns the content; nothing if it is not compressed in a known way, or damaged.
    pub(super) fn content<T: DeserializeOwned>(&self) -> Option<T> {
        let bytes = STANDARD.decode(self.data.trim()).ok()?;
        let mut text = Vec::new();
        match self.compression_type.as_str() {
            "gzip" => read(flate2::read::GzDecoder::new(bytes.as_slice()), &mut text)?,
            "zstd" => {
                let decoder = ruzstd::decoding::StreamingDecoder::new(bytes.as_slice()).ok()?;
                read(decoder, &mut text)?;
            }
            _ => return None,
        }
        serde_json::from_slice(&text).ok()
    }
}

fn read(source: impl Read, text: &mut Vec<u8>) -> Option<()> {
    source.take(LONGEST + 1).read_to_end(text).ok()?;
    (text.len() as u64 <= LONGEST).then_some(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::oam::{ApplicationRevision, ResourceTracker};

    /// `[{"apiVersion":"v1","kind":"ConfigMap","name":"a","namespace":"b"}]`, by gzip and zstd.
    const RESOURCES: [(&str, &str); 2] = [
        (
            "gzip",
            "H4sIAAAAAAACA4uuVkosyAxLLSrOzM9TslIqM1TSUcrOzEsBsp3z89Iy030TC4BCeYm5qUChRCizuCAxGcRPUqqNBQBAwH4YQwAAAA==",
        ),
        (
            "zstd",
            "KLUv/QBYGQIAW3siYXBpVmVyc2lvbiI6InYxIiwia2luZCI6IkNvbmZpZ01hcCIsIm5hbWUiOiJhIiwibmFtZXNwYWNlIjoiYiJ9XQ==",
        ),
    ];
    /// A revision with an application of one component and its definition, by zstd.
    const REVISION: &str = "KLUv/QBYLQYAog0nHnBJ2gZ01NZ+N5CQ9rn1cUmzsQMAkYeuHU2+0v8vBN3d/YKxSc6znMB2P7iIw9okIK2yJjVIgdLd7izByOylC7qPkNSQfk8DIn27s1ReqXapl6dRZCU7Mvk9VQK//MiE4M44ZVqF1rzdTSr20ld7wH5PhOntjowHOdELwO8n6eHlBnIeBlJA8hQIt8i15mzlgCp8u6dVRqMIpfAtDQBgy5PYiMvNRBkGsE0BKrybbCauEAFXgYgYtpGkykZXRohr4gE=";

    fn tracker(compression: &Value) -> ResourceTracker {
        serde_json::from_value(json!({
            "apiVersion": "core.oam.dev/v1beta1", "kind": "ResourceTracker", "metadata": {"name": "t"},
            "spec": {"type": "versioned", "applicationGeneration": 3, "compression": compression},
        }))
        .expect("a tracker")
    }

    #[test]
    fn compressed_trackers_are_read_and_written_plain() {
        for (form, data) in RESOURCES {
            let read = tracker(&json!({"type": form, "data": data}));
            assert_eq!(read.spec.managed_resources[0].name, "a", "{form}");
            let written = serde_json::to_value(&read).expect("JSON");
            assert_eq!(written["spec"]["compression"], Value::Null, "{form}");
            assert_eq!(written["spec"]["managedResources"][0]["namespace"], "b");
            assert_eq!(written["spec"]["applicationGeneration"], 3);
        }
    }

    #[test]
    fn what_cannot_be_read_stays_as_it_is() {
        for compression in [
            json!({"type": "brotli", "data": "AAAA"}),
            json!({"type": "gzip", "data": "no base64"}),
            json!({"type": "zstd", "data": RESOURCES[0].1}),
            json!({"type": "gzip", "data": &RESOURCES[0].1[..20]}),
        ] {
            let read = serde_json::to_value(tracker(&compression)).expect("JSON");
            assert_eq!(read["spec"]["compression"], compression);
        }
    }

    #[test]
    fn compressed_revisions_are_read_whole() {
        let revision = json!({
            "apiVersion": "core.oam.dev/v1beta1", "kind": "ApplicationRevision", "metadata": {"name": "shop-v1"},
            "spec": {"application": {"metadata": {}, "spec": {"components": []}},
                "compression": {"type": "zstd", "data": REVISION}},
        });
        let read: ApplicationRevision = serde_json::from_value(revision).expect("a revision");
        let read = serde_json::to_value(read).expect("JSON");
        let spec = &read["spec"];
        assert_eq!(spec["application"]["spec"]["components"][0]["name"], "web");
        assert_eq!(
            spec["componentDefinitions"]["webservice"]["kind"],
            "ComponentDefinition"
        );
        assert_eq!(spec["compression"], Value::Null);
    }
}
