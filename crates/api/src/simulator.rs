//! How simulated workloads are steered: annotations on a workload or on its pod template.
//!
//! What the pod says counts before what its owner says, and that before what the owner's owner says.

/// Time from the start of a container until it is ready, as a Go duration.
pub const READY_AFTER: &str = "simulator.bellwether.dev/ready-after";
/// Time from the start of a container until it ends, as a Go duration.
pub const RUN_FOR: &str = "simulator.bellwether.dev/run-for";
/// Simulated failure: [`FAIL_IMAGE`], [`FAIL_CRASH`] or [`FAIL_JOB`].
pub const FAIL: &str = "simulator.bellwether.dev/fail";

/// The exit code of containers that end with an error; 1 if nobody says.
pub const EXIT_CODE: &str = "simulator.bellwether.dev/exit-code";
/// The completion indexes of an indexed job that [`FAIL`] is about, as `0,3-5`; all if nobody says.
pub const FAIL_INDEXES: &str = "simulator.bellwether.dev/fail-indexes";

/// Images cannot be pulled.
pub const FAIL_IMAGE: &str = "image";
/// Containers end with an error as soon as they have started.
pub const FAIL_CRASH: &str = "crash";
/// Containers that are meant to end do so with an error.
pub const FAIL_JOB: &str = "job";

/// The provisioner of the storage class that simulated clusters have.
pub const PROVISIONER: &str = "simulator.bellwether.dev/volumes";
/// The reason of the event that tells about an annotation that cannot be understood.
pub const INVALID_ANNOTATION: &str = "InvalidSimulatorAnnotation";
