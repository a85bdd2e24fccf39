//! Whether a lease may be taken: a pure decision over what was seen of it.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use tokio::time::Instant;

/// What a candidate has seen of a lease.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sighting {
    version: String,
    holder: String,
    duration: Duration,
    /// When this version was seen first.
    since: Instant,
}

/// What a candidate does next.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Try to take the lease.
    Take,
    /// Wait for a change, but no longer than until then.
    WaitUntil(Instant),
}

impl Sighting {
    /// Takes note of the lease as it is now.
    pub(super) fn update(seen: &mut Option<Self>, lease: Option<&Lease>, now: Instant) {
        let Some(lease) = lease else {
            *seen = None;
            return;
        };
        let version = lease.metadata.resource_version.clone().unwrap_or_default();
        if seen.as_ref().is_some_and(|seen| seen.version == version) {
            return;
        }
        let spec = lease.spec.clone().unwrap_or_default();
        let seconds = spec.lease_duration_seconds.unwrap_or(0);
        *seen = Some(Self {
            version,
            holder: spec.holder_identity.unwrap_or_default(),
            duration: Duration::from_secs(u64::try_from(seconds).unwrap_or(0)),
            since: now,
        });
    }
}

/// Decides what a candidate of that identity does.
pub(super) fn next_step(seen: Option<&Sighting>, identity: &str, now: Instant) -> Step {
    let Some(seen) = seen else {
        return Step::Take;
    };
    if seen.holder.is_empty() || seen.holder == identity {
        return Step::Take;
    }
    let until = seen.since + seen.duration;
    if now < until {
        Step::WaitUntil(until)
    } else {
        Step::Take
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::coordination::v1::LeaseSpec;
    use kube::api::ObjectMeta;

    use super::*;

    fn lease(version: &str, holder: Option<&str>) -> Lease {
        Lease {
            metadata: ObjectMeta {
                resource_version: Some(version.to_owned()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: holder.map(str::to_owned),
                lease_duration_seconds: Some(8),
                ..LeaseSpec::default()
            }),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_taken_when_nobody_holds_it_or_its_holder_is_silent() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut seen = None;
        let mut check = |seconds, lease: Option<Lease>, expected: Step| {
            Sighting::update(&mut seen, lease.as_ref(), at(seconds));
            let step = next_step(seen.as_ref(), "us", at(seconds));
            assert_eq!(step, expected, "after {seconds} s: {lease:?}");
        };
        check(0, None, Step::Take);
        check(0, Some(lease("1", None)), Step::Take);
        check(0, Some(lease("1", Some("us"))), Step::Take);
        check(1, Some(lease("2", Some("them"))), Step::WaitUntil(at(9)));
        check(5, Some(lease("2", Some("them"))), Step::WaitUntil(at(9)));
        check(8, Some(lease("3", Some("them"))), Step::WaitUntil(at(16)));
        check(16, Some(lease("3", Some("them"))), Step::Take);
        check(17, Some(lease("4", Some("us"))), Step::Take);
    }
}
