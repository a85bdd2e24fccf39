//! What Go does to values and texts.
//!
//! Kubernetes, Helm and Open Cluster Management are written in Go, and much of what Go's standard
//! library does shows in what their users write and read: how a number prints, what a duration is,
//! which characters `%q` escapes. This crate is the one place for it. Nothing here does I/O.
//!
//! | module | what it is in Go |
//! |---|---|
//! | [`value`] | values with their kinds and types, as `reflect` sees them |
//! | [`mod@print`] | `fmt`: `Sprint`, `Sprintln`, `Sprintf` |
//! | [`float`] | `strconv.FormatFloat` |
//! | [`number`] | `strconv.ParseInt`, `ParseUint`, `ParseFloat`; `math.Pow10` |
//! | [`quote`] | `strconv.Quote` and its relatives, and back |
//! | [`mod@base64`] | `encoding/base64` |
//! | [`escape`] | `HTMLEscape`, `JSEscape`, `QueryEscape` |
//! | [`regexp`] | `regexp`: RE2's patterns |
//! | [`civil`], [`layout`] | `time.Time`, `Format` and `Parse` |
//! | [`json`] | `encoding/json` for values |
//! | [`toml`] | TOML, as Go's most used library has it |
//! | [`path`], [`url`] | `path`, `net/url` |
//! | [`duration`] | `time.Duration` |
//! | [`tabwriter`] | `text/tabwriter` |
//! | [`cron`] | schedules, as Kubernetes reads them |
//! | [`semver`] | versions and constraints, as sprig and Helm read them |

pub mod base64;
pub mod civil;
pub mod cron;
pub mod duration;
pub mod escape;
pub mod float;
pub mod json;
pub mod layout;
pub mod number;
pub mod path;
pub mod print;
pub mod quote;
pub mod regexp;
pub mod semver;
pub mod tabwriter;
pub mod toml;
pub mod url;
pub mod value;
