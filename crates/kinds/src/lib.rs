//! The kinds that every cluster knows: schemas, defaults, validation, columns
