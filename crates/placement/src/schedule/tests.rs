//! Placements over small fleets.

mod choice;
mod grouping;
mod world;
mod writing;
