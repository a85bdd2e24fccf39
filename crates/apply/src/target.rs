//! How one object is treated: the strategy by which it is written, and what happens to changes of others.

use serde_json::Value;

use crate::baseline::Baseline;
use crate::compliance::Rule;
use crate::fields::FieldSelector;
use crate::manifest::Manifest;
use crate::ownership::Ownership;
use crate::three_way::ThreeWay;

/// What names the whole object among fields.
pub(crate) const EVERYTHING: &str = "*";

/// What is known of the object on the cluster.
#[derive(Debug, Clone, Copy)]
pub enum Live<'a> {
    /// Nothing: it was not read.
    Unknown,
    /// It does not exist.
    Absent,
    /// It exists.
    Present(&'a Value),
}

/// How an object is brought to the cluster.
#[derive(Debug, Clone, PartialEq)]
pub enum Strategy<'a> {
    /// The object is replaced, keeping what only the server can know; a few kinds have rules of
    /// their own. What others changed is undone.
    Update,
    /// The server applies it: only fields of the manifest are kept.
    ServerSide(ServerSide<'a>),
    /// It is patched by what changed since it was last applied, which an annotation or the caller has.
    ThreeWay(ThreeWay<'a>),
    /// It is made to comply with a definition: it has what is defined, nothing else, or is deleted.
    Comply(Rule),
    /// It is created if it does not exist, and then left alone.
    CreateOnly,
    /// It is never written.
    ReadOnly,
}

impl Strategy<'_> {
    /// Returns true if it writes to objects that exist.
    pub fn is_updating(&self) -> bool {
        !matches!(self, Self::CreateOnly | Self::ReadOnly)
    }

    /// Returns true if a decision runs programs of users, which may take long.
    pub fn has_programs(&self) -> bool {
        match self {
            Self::ServerSide(settings) => {
                let mut ignored = settings.ignore.iter();
                ignored.any(|ignored| ignored.fields.has_programs())
            }
            Self::ThreeWay(settings) => !settings.recreate.is_empty(),
            _ => false,
        }
    }

    /// The settings that a baseline depends on besides the manifest.
    pub(crate) fn settings(&self) -> String {
        match self {
            Self::ServerSide(settings) => {
                format!("ServerSideApply {} {}", settings.manager, settings.force)
            }
            Self::ThreeWay(settings) => format!("ThreeWay {:?}", settings.annotation),
            Self::Comply(rule) => format!("Comply {rule:?}"),
            Self::Update | Self::CreateOnly | Self::ReadOnly => "Update".to_owned(),
        }
    }

    /// The manager in whose name the server applies fields; empty for other strategies.
    pub(crate) fn manager(&self) -> &str {
        match self {
            Self::ServerSide(settings) => settings.manager,
            _ => "",
        }
    }
}

/// Settings of a server-side apply.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerSide<'a> {
    /// In whose name fields are applied.
    pub manager: &'a str,
    /// Whether fields of others are taken from them.
    pub force: bool,
    /// Fields that are left to the cluster.
    pub ignore: Vec<IgnoredFields<'a>>,
    /// The annotation that has a hash of what was applied, where fields are ignored.
    pub hash_annotation: &'a str,
}

/// Fields that are left to the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IgnoredFields<'a> {
    /// The fields.
    pub fields: FieldSelector<'a>,
    /// Since when.
    pub condition: IgnoreCondition,
}

/// Since when fields are left to the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IgnoreCondition {
    /// Since the object exists.
    Present,
    /// Since the cluster changed them, until the manifest changes.
    Changed,
}

/// What happens to changes of others while the manifest stays the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drift<'a> {
    /// They are undone.
    Undo,
    /// They stay; an object that was deleted is created again.
    Keep,
    /// They stay in the fields that these JSONPaths name; `*` is the whole object. An object that was
    /// deleted stays deleted.
    KeepFields(&'a [String]),
    /// They stay, and an object that was deleted stays deleted.
    KeepDeleted,
}

/// Everything that a decision about one object looks at.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The manifest, in the namespace where it belongs.
    pub manifest: &'a Manifest,
    /// How it is brought to the cluster.
    pub strategy: &'a Strategy<'a>,
    /// What happens to changes of others.
    pub drift: Drift<'a>,
    /// By what the object is known to be ours.
    pub ownership: Ownership<'a>,
    /// What was written last, if this is remembered.
    pub baseline: Option<&'a Baseline>,
    /// Whether this very manifest is known to have been applied before.
    pub applied_before: bool,
}

impl Target<'_> {
    /// Returns true if a decision runs programs of users, which may take long.
    pub(crate) fn has_programs(&self) -> bool {
        let keeps = |paths: &[String]| paths.iter().any(|path| path != EVERYTHING);
        let by_drift = matches!(self.drift, Drift::KeepFields(paths) if keeps(paths));
        by_drift || self.strategy.has_programs()
    }

    /// Returns true if the baseline is of this very manifest.
    pub(crate) fn is_remembered(&self) -> bool {
        let (manifest, settings) = (&self.manifest.object, self.strategy.settings());
        self.baseline
            .is_some_and(|known| known.is_of(manifest, &settings))
    }
}
