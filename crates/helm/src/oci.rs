//! Charts in registries: layers of image manifests.

use serde::Deserialize;

/// The type of the layer with the packed chart.
pub const CHART_LAYER: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

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
