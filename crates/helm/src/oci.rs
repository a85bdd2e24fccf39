//! Charts in registries: which layer of an image manifest is the chart.

use serde::Deserialize;

use crate::error::{Error, Result};

/// The type of the layer with the packed chart.
pub const CHART_LAYER: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// The type of the configuration, which is `Chart.yaml` as JSON.
pub const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";

/// A blob of a registry.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Blob {
    /// What it is.
    pub media_type: String,
    /// How it is asked for, and what it has to hash to: `sha256:…`.
    pub digest: String,
    /// How many bytes it has.
    pub size: u64,
}

#[derive(Debug, Deserialize)]
struct ImageManifest {
    config: Blob,
    layers: Vec<Blob>,
}

/// The packed chart that a manifest of a registry names.
pub fn chart_layer(manifest: &[u8]) -> Result<Blob> {
    let manifest: ImageManifest = serde_json::from_slice(manifest).map_err(|error| {
        Error::chart(format!(
            "the manifest of the registry is unreadable: {error}"
        ))
    })?;
    if manifest.config.media_type != CONFIG {
        let message = format!(
            "the artifact is not a Helm chart: its configuration is of type {:?}",
            manifest.config.media_type
        );
        return Err(Error::chart(message));
    }
    let mut layers = manifest.layers.into_iter();
    layers
        .find(|layer| layer.media_type == CHART_LAYER)
        .ok_or_else(|| Error::chart("the artifact has no layer with a chart"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layer_of_the_chart_is_found() {
        let manifest = format!(
            r#"{{"config":{{"mediaType":"{CONFIG}","digest":"sha256:1","size":2}},
                "layers":[{{"mediaType":"x","digest":"sha256:0","size":1}},
                          {{"mediaType":"{CHART_LAYER}","digest":"sha256:2","size":3}}]}}"#
        );
        assert_eq!(chart_layer(manifest.as_bytes()).unwrap().digest, "sha256:2");
        assert!(chart_layer(b"{}").is_err());
    }
}
