//! Time zones: names from the IANA database, which is part of the program, and fixed offsets.

use std::sync::LazyLock;

use jiff::tz::TimeZoneDatabase;

use super::Timestamp;
use crate::error::EvalError;

/// The bundled database; the one of the system is not looked at, so that results do not depend
/// on the machine.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// Seconds east of UTC that the zone `name` (`Europe/Berlin`, `+02:00`, `-03:30`) has at `at`.
pub(crate) fn offset_in(at: Timestamp, name: &str) -> Result<i64, EvalError> {
    if let Some((hours, minutes)) = name.split_once(':') {
        let hours = integer(hours)?;
        let minutes = integer(minutes)?;
        let total = if name.starts_with('-') {
            hours * 60 - minutes
        } else {
            hours * 60 + minutes
        };
        return Ok(total * 60);
    }
    if matches!(name, "" | "UTC") {
        return Ok(0);
    }
    let unknown = || EvalError::failed(format!("unknown time zone {name}"));
    let zone = ZONES.get(name).map_err(|_| unknown())?;
    let instant = jiff::Timestamp::from_second(at.seconds()).map_err(|_| unknown())?;
    Ok(i64::from(zone.to_offset(instant).seconds()))
}

/// Go's `Atoi`, with its words.
fn integer(text: &str) -> Result<i64, EvalError> {
    text.parse::<i32>().map(i64::from).map_err(|_| {
        EvalError::failed(format!(
            "strconv.Atoi: parsing {}: invalid syntax",
            crate::value::quoted(text)
        ))
    })
}
