//! JSON values for everyone else: YAML in and out, quantities, paths
