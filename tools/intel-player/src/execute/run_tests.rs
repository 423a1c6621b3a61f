//! Workgroups, of programs by hand.

use super::message_tests::dispatch;
use super::run_workgroup;
use crate::fault::FaultKind;
use crate::isa::{Generation, Program};
use crate::memory::Memory;
use crate::report::{Counts, Options};

/// A message that ends the thread.
const END: [u32; 4] = [0x0003_0031, 4, 0, 0];

#[test]
fn a_thread_without_end_is_a_fault() {
    // `while` back to itself.
    let code = [[0x0003_0027, 0, 0, 0], END].concat();
    let program = Program::decode(Generation::Xe, &code, 0).expect("a program");
    let options = Options { most: Some(1000), ..Options::default() };
    let mut counts = Counts::default();
    let fault =
        run_workgroup(&program, &dispatch(), [0; 3], &Memory::new(), &options, &mut counts).expect_err("no end");
    assert_eq!(fault.kind, FaultKind::Endless(1000));
    let text = fault.to_string();
    assert!(text.contains("while(8)") && text.contains("INTEL_PLAYER_INSTRUCTIONS"), "{text}");
}
