//! Schedules of CronJobs: what is wrong with them, in the words of the parser that Kubernetes uses.

use bellwether_go::cron::Schedule;

/// Why a text is not a schedule.
pub(super) fn check(schedule: &str) -> Result<(), String> {
    Schedule::parse(schedule, |zone| zone_problem(zone).is_none()).map(drop)
}

/// Why a text cannot be the name of a time zone; whether there is such a zone only a database knows,
/// and reading one is not for this crate.
pub(super) fn zone_problem(zone: &str) -> Option<String> {
    if zone.is_empty() {
        return Some("timeZone must be nil or non-empty string".to_owned());
    }
    let valid =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'+');
    let strange = zone.split('/').any(|part| {
        matches!(part, "" | "." | "..") || part.starts_with('-') || !part.bytes().all(valid)
    });
    if strange {
        return Some(format!("unknown time zone {zone}"));
    }
    if zone.eq_ignore_ascii_case("local") {
        return Some(
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
                .to_owned(),
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_in_a_schedule_has_to_look_like_one() {
        assert_eq!(check("TZ=Europe/Berlin 0 5 * * *"), Ok(()));
        assert_eq!(
            check("TZ=a//b 0 5 * * *"),
            Err("provided bad location a//b: unknown time zone a//b".to_owned())
        );
        assert_eq!(
            check("60 * * * *"),
            Err("end of range (60) above maximum (59): 60".to_owned())
        );
    }
}
