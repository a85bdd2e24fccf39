//! Revisioned key-value store with watch, in memory or on disk
