//! Which representation of an answer the client wants, read from its `Accept` header.

use crate::status::ApiError;

/// How the answer is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Format {
    /// `application/json`
    #[default]
    Json,
    /// `application/yaml`
    Yaml,
    /// `application/vnd.kubernetes.protobuf`, of built-in kinds.
    Protobuf,
}

impl Format {
    /// The content type of an answer.
    pub(crate) const fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => bellwether_protobuf::MEDIA_TYPE,
        }
    }
}

/// What of an object is answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Projection {
    /// The object itself.
    #[default]
    Object,
    /// `as=Table`: rows and columns for people.
    Table,
    /// `as=PartialObjectMetadata(List)`: only type and metadata.
    Metadata,
}

/// Format and projection of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Representation {
    /// How it is written.
    pub format: Format,
    /// What is written.
    pub projection: Projection,
}

const AVAILABLE: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// Picks the first acceptable representation; clients list them in order of preference. Whether there
/// is one in protobuf depends on what is asked for.
pub(crate) fn negotiate(
    accept: Option<&str>,
    has_protobuf: bool,
) -> Result<Representation, ApiError> {
    let accept = accept.unwrap_or("").trim();
    if accept.is_empty() {
        return Ok(Representation::default());
    }
    let mut clauses: Vec<Clause<'_>> = accept.split(',').filter_map(Clause::parse).collect();
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    clauses
        .iter()
        .filter_map(Clause::representation)
        .find(|found| has_protobuf || found.format != Format::Protobuf)
        .ok_or_else(|| ApiError::not_acceptable(AVAILABLE))
}

struct Clause<'a> {
    media_type: &'a str,
    quality: f32,
    group: &'a str,
    version: &'a str,
    target: &'a str,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let mut clause = Self {
            media_type: parts.next().filter(|media_type| !media_type.is_empty())?,
            quality: 1.0,
            group: "",
            version: "",
            target: "",
        };
        for (key, value) in parts.filter_map(|part| part.split_once('=')) {
            match key.trim() {
                "q" => clause.quality = value.trim().parse().unwrap_or(0.0),
                "g" => clause.group = value.trim(),
                "v" => clause.version = value.trim(),
                "as" => clause.target = value.trim(),
                _ => {}
            }
        }
        Some(clause)
    }

    fn representation(&self) -> Option<Representation> {
        let format = match self.media_type {
            "application/json" | "*/*" | "application/*" => Format::Json,
            "application/yaml" => Format::Yaml,
            bellwether_protobuf::MEDIA_TYPE if self.target.is_empty() => Format::Protobuf,
            _ => return None,
        };
        let projection = match self.target {
            "" => Projection::Object,
            _ if self.group != "meta.k8s.io" || !matches!(self.version, "v1" | "v1beta1") => {
                return None;
            }
            "Table" => Projection::Table,
            "PartialObjectMetadata" | "PartialObjectMetadataList" => Projection::Metadata,
            _ => return None,
        };
        Some(Representation { format, projection })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(accept: &str, want: Option<(Format, Projection)>) {
        let got = negotiate(Some(accept), false)
            .ok()
            .map(|found| (found.format, found.projection));
        assert_eq!(got, want, "{accept}");
    }

    #[test]
    fn the_first_representation_that_we_have_wins() {
        check("", Some((Format::Json, Projection::Object)));
        check("*/*", Some((Format::Json, Projection::Object)));
        check("application/yaml", Some((Format::Yaml, Projection::Object)));
        check(
            "application/vnd.kubernetes.protobuf,application/json",
            Some((Format::Json, Projection::Object)),
        );
        check(
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            Some((Format::Json, Projection::Table)),
        );
        check(
            "application/json;as=Nonsense;v=v1;g=meta.k8s.io,application/json",
            Some((Format::Json, Projection::Object)),
        );
        check(
            "application/json;q=0.1,application/yaml;q=0.9",
            Some((Format::Yaml, Projection::Object)),
        );
        let both = "application/vnd.kubernetes.protobuf,application/json";
        let found = negotiate(Some(both), true).unwrap();
        assert_eq!(found.format, Format::Protobuf);
        check("application/x-nope", None);
        check("application/vnd.kubernetes.protobuf", None);
    }
}
