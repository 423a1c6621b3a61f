//! Which instructions of the tables nothing carries out.

use super::handler;
use crate::isa::{Generation, tables};

#[test]
fn every_instruction_has_a_handler() {
    let mut missing = std::collections::BTreeSet::new();
    for generation in [Generation::Rdna1, Generation::Rdna2, Generation::Rdna3, Generation::Rdna4] {
        for row in tables::of(generation).values() {
            if handler::<32>(row.name).is_none() {
                missing.insert((row.name, generation));
            }
        }
    }
    for (name, generation) in missing {
        println!("{name} {generation:?}");
    }
}
