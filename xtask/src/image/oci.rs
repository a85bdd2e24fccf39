//! An OCI image as an archive in the OCI image layout. The same input gives the same bytes: there are no times, and everything is
//! in a fixed order.

use std::collections::BTreeMap;

use bellwether_archive::{Attributes, Kind, WriteError, Writer};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The user that the program runs as: nobody that any base image knows.
pub(crate) const USER: u32 = 65532;

/// When everything was made, as far as the image is concerned.
const CREATED: &str = "1970-01-01T00:00:00Z";

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
const EMPTY: &str = "application/vnd.oci.empty.v1+json";

/// A file of the image.
#[derive(Debug, Clone)]
pub(crate) struct File {
    /// Its path, without `/` in front.
    pub(crate) path: String,
    /// Permissions.
    pub(crate) mode: u32,
    /// What is in it.
    pub(crate) content: Vec<u8>,
}

/// An image for one architecture.
#[derive(Debug, Clone)]
pub(crate) struct Image {
    /// As OCI names it: `amd64`, `arm64`.
    pub(crate) architecture: String,
    /// All files; the first one is the program.
    pub(crate) files: Vec<File>,
    /// What people should know.
    pub(crate) labels: BTreeMap<String, String>,
    /// What it is made of, as SPDX in JSON.
    pub(crate) sbom: Value,
}

/// Contents by their digest, and the manifests of the image, one an architecture, each with its bill of materials.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    blobs: BTreeMap<String, Vec<u8>>,
    manifests: Vec<Value>,
}

impl Layout {
    /// Adds an image, and its bill of materials as an artifact that refers to it. Returns the digest of the image.
    pub(crate) fn add(&mut self, image: &Image) -> Result<String, WriteError> {
        let layer = layer(&image.files)?;
        let layer = self.blob(LAYER, layer);
        let entry = image.files.first().map(|file| format!("/{}", file.path));
        let config = json!({
            "created": CREATED,
            "architecture": image.architecture,
            "os": "linux",
            "config": {
                "User": format!("{USER}:{USER}"),
                "Entrypoint": [entry],
                "WorkingDir": "/",
                "Labels": image.labels,
            },
            "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
            "history": [{"created": CREATED, "created_by": "cargo xtask image"}],
        });
        let config = self.blob(CONFIG, config.to_string().into_bytes());
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer],
            "annotations": image.labels,
        });
        let subject = self.blob(MANIFEST, manifest.to_string().into_bytes());
        let mut listed = subject.clone();
        listed["platform"] = json!({"architecture": image.architecture, "os": "linux"});
        self.manifests.push(listed);
        self.refer(&subject, &image.sbom);
        Ok(subject["digest"].as_str().unwrap_or_default().to_owned())
    }

    /// Adds a bill of materials of a manifest.
    fn refer(&mut self, subject: &Value, sbom: &Value) {
        const SPDX: &str = "application/spdx+json";
        let sbom = self.blob(SPDX, sbom.to_string().into_bytes());
        let empty = self.blob(EMPTY, b"{}".to_vec());
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": SPDX,
            "config": empty, "layers": [sbom], "subject": subject,
        });
        let mut listed = self.blob(MANIFEST, manifest.to_string().into_bytes());
        listed["artifactType"] = SPDX.into();
        self.manifests.push(listed);
    }

    fn blob(&mut self, media_type: &str, content: Vec<u8>) -> Value {
        let digest = hex(&content);
        let descriptor = json!({
            "mediaType": media_type, "digest": format!("sha256:{digest}"), "size": content.len(),
        });
        self.blobs.insert(digest, content);
        descriptor
    }

    /// Returns the archive. What has the tag is an index of all architectures: programs that copy images take an archive with one entry
    /// only, or ask for its name.
    pub(crate) fn into_archive(mut self, tag: &str) -> Result<Vec<u8>, WriteError> {
        let mut archive = Writer::new(Vec::new());
        let of = |manifests: &[Value]| json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
        let image = of(&self.manifests).to_string().into_bytes();
        let mut image = self.blob(INDEX, image);
        image["annotations"] = json!({"org.opencontainers.image.ref.name": tag});
        let index = of(&[image]);
        archive.file("oci-layout", FILE, br#"{"imageLayoutVersion":"1.0.0"}"#)?;
        archive.file("index.json", FILE, index.to_string().as_bytes())?;
        for folder in ["blobs/", "blobs/sha256/"] {
            archive.directory(folder, FOLDER)?;
        }
        for (digest, content) in &self.blobs {
            archive.file(&format!("blobs/sha256/{digest}"), FILE, content)?;
        }
        archive.finish()
    }
}

const FILE: Attributes = Attributes {
    kind: Kind::File,
    mode: 0o644,
    owner: 0,
};

const FOLDER: Attributes = Attributes {
    kind: Kind::Directory,
    mode: 0o755,
    owner: 0,
};

/// The digest of bytes in hexadecimal digits.
pub(crate) fn hex(content: &[u8]) -> String {
    bellwether_archive::hex(&Sha256::digest(content))
}

/// The file system: files in the order of their paths, each after the folders that it is in, and an empty `tmp` for everybody.
fn layer(files: &[File]) -> Result<Vec<u8>, WriteError> {
    let mut entries: BTreeMap<String, (Attributes, &[u8])> = BTreeMap::new();
    let shared = Attributes {
        mode: 0o1777,
        ..FOLDER
    };
    entries.insert("tmp/".to_owned(), (shared, &[]));
    for file in files {
        for (at, _) in file.path.match_indices('/') {
            let folder = file.path[..=at].to_owned();
            entries.entry(folder).or_insert((FOLDER, &[]));
        }
        let attributes = Attributes {
            mode: file.mode,
            ..FILE
        };
        entries.insert(file.path.clone(), (attributes, &file.content));
    }
    let mut archive = Writer::new(Vec::new());
    for (name, (attributes, content)) in entries {
        archive.entry(&name, attributes, content.len() as u64, content)?;
    }
    archive.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use bellwether_archive::Reader;

    use super::*;

    fn image() -> Image {
        let file = |path: &str, mode, content: &[u8]| File {
            path: path.to_owned(),
            mode,
            content: content.to_vec(),
        };
        Image {
            architecture: "amd64".to_owned(),
            files: vec![
                file("usr/bin/program", 0o755, b"\x7fELF"),
                file("etc/passwd", 0o644, b"nonroot:x:65532:65532::/:/none\n"),
            ],
            labels: BTreeMap::from([("version".to_owned(), "1".to_owned())]),
            sbom: json!({"spdxVersion": "SPDX-2.3"}),
        }
    }

    fn unpack(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut reader = Reader::new(archive);
        let mut files = BTreeMap::new();
        while let Some(entry) = reader.next_entry().unwrap() {
            let mut content = Vec::new();
            reader.read_to_end(&mut content).unwrap();
            files.insert(entry.name, content);
        }
        files
    }

    fn built() -> (String, Vec<u8>) {
        let mut layout = Layout::default();
        let digest = layout.add(&image()).unwrap();
        (digest, layout.into_archive("bellwether:1").unwrap())
    }

    #[test]
    fn the_same_files_give_the_same_image() {
        assert_eq!(built(), built());
    }

    #[test]
    fn every_digest_is_that_of_its_content() {
        let (digest, archive) = built();
        let files = unpack(&archive);
        let read = |digest: &Value| -> Vec<u8> {
            let name = digest.as_str().unwrap().replace("sha256:", "blobs/sha256/");
            let content = files[&name].clone();
            assert_eq!(
                format!("sha256:{}", hex(&content)),
                digest.as_str().unwrap()
            );
            content
        };
        let json_of = |content: &[u8]| -> Value { serde_json::from_slice(content).unwrap() };
        let entries = json_of(&files["index.json"]);
        let [tagged] = entries["manifests"].as_array().unwrap().as_slice() else {
            panic!("more than one image: {entries}");
        };
        assert_eq!(
            tagged["annotations"]["org.opencontainers.image.ref.name"],
            "bellwether:1"
        );
        let index = json_of(&read(&tagged["digest"]));
        let listed = &index["manifests"][0];
        assert_eq!(listed["digest"], digest);
        assert_eq!(listed["platform"]["architecture"], "amd64");
        let manifest = json_of(&read(&listed["digest"]));
        let config = json_of(&read(&manifest["config"]["digest"]));
        assert_eq!(config["config"]["User"], "65532:65532");
        assert_eq!(config["config"]["Entrypoint"], json!(["/usr/bin/program"]));
        let layer = &manifest["layers"][0];
        assert_eq!(config["rootfs"]["diff_ids"], json!([layer["digest"]]));
        let content = read(&layer["digest"]);
        assert_eq!(layer["size"], content.len());
        let names: Vec<String> = unpack(&content).into_keys().collect();
        let expected = [
            "etc/",
            "etc/passwd",
            "tmp/",
            "usr/",
            "usr/bin/",
            "usr/bin/program",
        ];
        assert_eq!(names, expected, "there is nothing else, and no shell");
        let about = json_of(&read(&index["manifests"][1]["digest"]));
        assert_eq!(about["subject"]["digest"], digest);
        let sbom = json_of(&read(&about["layers"][0]["digest"]));
        assert_eq!(sbom["spdxVersion"], "SPDX-2.3");
    }
}
