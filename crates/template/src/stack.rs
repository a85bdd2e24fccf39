//! Room for recursion: depth is bounded by our limits, not by the stack of the thread.

/// Below this much stack, more is taken from the heap.
const RED_ZONE: usize = 128 * 1024;

/// How much is taken at a time.
const SEGMENT: usize = 1024 * 1024;

/// Calls a function that recurses.
pub(crate) fn deeper<T>(function: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(RED_ZONE, SEGMENT, function)
}
