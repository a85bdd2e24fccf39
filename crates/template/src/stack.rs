//! Room for recursion: depth is bounded by our limits, not by the stack of the thread.

/// Below this much stack, more is taken from the heap. Functions recurse as deeply as values may be nested, a
/// thousand levels, before they ask for more.
const RED_ZONE: usize = 2 * 1024 * 1024;

/// How much is taken at a time. Memory that is not used is not there.
const SEGMENT: usize = 16 * 1024 * 1024;

/// Calls a function that recurses.
///
/// Parsing and rendering call it around everything else: threads of a server have less than it takes, and a
/// segment for each call would cost more than the call.
pub(crate) fn deeper<T>(function: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(RED_ZONE, SEGMENT, function)
}
