//! What a build may cost, whatever its input.

/// Directories inside directories that bases and components may refer to.
pub const MAX_DEPTH: usize = 64;

/// Directories that one build may visit. A base that is listed by many overlays counts each time, so
/// that a few files cannot multiply into billions of objects.
pub const MAX_DIRECTORIES: usize = 4_096;

/// Objects that one build may hold.
pub const MAX_RESOURCES: usize = 50_000;

/// Bytes that one file may have.
pub const MAX_FILE_BYTES: usize = 16 * 1024 * 1024;
