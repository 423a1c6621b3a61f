//! What strict runs notice that hardware does not, each by a program that does it and one that does
//! not.

#![cfg(target_os = "linux")]

use std::sync::LazyLock;

use radeon_player::dispatch::Dispatch;
use radeon_player::execute::run_workgroup;
use radeon_player::fault::{Fault, FaultKind};
use radeon_player::isa::{Generation, Program};
use radeon_player::memory::Memory;
use radeon_player::report::{Counts, Options};

const BUFFER: u64 = 0x8000_0000_0000;

// RDNA3, as LLVM assembles it.
const END: &[u32] = &[0xbfb0_0000];
const BARRIER: &[u32] = &[0xbfbd_0000];
/// `v_add_f32 v2, v0, v1`
const ADD_V0_V1: &[u32] = &[0x0604_0300];
/// `v_add_nc_u32 v2, v1, v1`
const ADD_V1_V1: &[u32] = &[0x4a04_0301];
/// `v_mov_b32 v1, 0`
const ZERO_V1: &[u32] = &[0x7e02_0280];
/// `v_lshlrev_b32 v0, 2, v0`
const TIMES_4_V0: &[u32] = &[0x3000_0082];
/// `global_load_b32 v1, v0, s[0:1]`
const LOAD_V1: &[u32] = &[0xdc52_0000, 0x0100_0000];
/// `global_store_b32 v0, v1, s[0:1]`
const STORE_V1: &[u32] = &[0xdc6a_0000, 0x0000_0100];
/// `s_waitcnt vmcnt(0)`
const WAIT_MEMORY: &[u32] = &[0xbf89_03f7];
/// `s_load_b32 s4, s[0:1], 0x0`
const LOAD_S4: &[u32] = &[0xf400_0100, 0xf800_0000];
/// `s_add_u32 s5, s4, s4`
const ADD_S4: &[u32] = &[0x8005_0404];
/// `s_waitcnt lgkmcnt(0)`
const WAIT_SHARED: &[u32] = &[0xbf89_fc07];
/// `ds_load_b32 v2, v1`
const LOAD_SHARED: &[u32] = &[0xd8d8_0000, 0x0200_0001];
/// `ds_store_b32 v1, v0`
const STORE_SHARED: &[u32] = &[0xd834_0000, 0x0000_0001];
/// `ds_add_u32 v1, v0`
const ADD_SHARED: &[u32] = &[0xd800_0000, 0x0000_0001];

/// Runs instructions as a workgroup of two waves, or of one lane.
fn run(parts: &[&[u32]], threads: u32, strict: bool) -> Result<(), Fault> {
    let code = [parts.concat(), END.to_vec()].concat();
    let program = Program::decode(Generation::Rdna3, &code, 0x1000)?;
    // One for all tests: each takes much of the address space.
    static MEMORY: LazyLock<Memory> = LazyLock::new(|| {
        let memory = Memory::new();
        memory.map_anonymous(BUFFER, 4096);
        memory
    });
    let mut user = [0; 16];
    (user[0], user[1]) = (BUFFER as u32, (BUFFER >> 32) as u32);
    let dispatch = Dispatch {
        generation: Generation::Rdna3,
        number: 1,
        code: 0x1000,
        wave: 32,
        user,
        // Subnormals are kept; eight vector registers; two user registers; 512 bytes of shared
        // memory.
        rsrc1: 0xf0 << 12,
        rsrc2: 2 << 1 | 1 << 15,
        rsrc3: 0,
        threads: [threads, 1, 1],
        groups: [1; 3],
        start: [0; 3],
        last: [threads, 1, 1],
        scratch: 0,
    };
    let options = Options { strict, threads: 1, ..Options::default() };
    run_workgroup(&program, &dispatch, [0; 3], &MEMORY, &options, &mut Counts::default())
}

/// What a strict run stops at, which one that is not strict does not see.
fn strictly(parts: &[&[u32]], threads: u32) -> Option<Fault> {
    assert_eq!(run(parts, threads, false), Ok(()));
    run(parts, threads, true).err()
}

fn kind(fault: Option<Fault>) -> Option<FaultKind> {
    fault.map(|fault| fault.kind)
}

#[test]
fn registers_are_written_before_they_are_read() {
    let fault = strictly(&[TIMES_4_V0, ADD_V0_V1], 64).expect("a fault");
    assert_eq!(fault.kind, FaultKind::UnwrittenRegister("v1".into()));
    assert_eq!((fault.lane, fault.code, fault.wave), (Some(0), 0x1004, 0));
    assert!(fault.instruction.starts_with("v_add_f32 v2, v0, v1"), "{fault}");
    assert_eq!(strictly(&[ZERO_V1, ADD_V0_V1], 64), None);
}

#[test]
fn what_nobody_wrote_may_be_moved_and_not_used() {
    // v_mov_b32 v2, v1; v_mov_b32 v3, v2; v_add_nc_u32 v2, v2, v2
    let (moves, add) = ([0x7e04_0301, 0x7e06_0302], [0x4a04_0502]);
    assert_eq!(strictly(&[&moves], 64), None);
    assert_eq!(kind(strictly(&[&moves, &add], 64)), Some(FaultKind::UnwrittenRegister("v2".into())));
    // What is written to it after that is known again.
    let zero_v2 = [0x7e04_0280];
    assert_eq!(strictly(&[&moves, &zero_v2, &add], 64), None);
    // v_cndmask_b32 v2, v0, v1, vcc_lo, which takes v0 where vcc (s_mov_b32 vcc_lo, 0 or -1) is
    // zero
    let (choose, mask) = ([0x0204_0300], [0xbeea_0080]);
    assert_eq!(strictly(&[&mask, &choose, &add], 32), None);
    let all = [0xbeea_00c1];
    assert_eq!(kind(strictly(&[&all, &choose, &add], 32)), Some(FaultKind::UnwrittenRegister("v2".into())));
}

#[test]
fn loads_are_waited_for() {
    let missing = |register: &str| Some(FaultKind::MissingWait(register.into()));
    assert_eq!(kind(strictly(&[TIMES_4_V0, LOAD_V1, ADD_V1_V1], 64)), missing("v1"));
    assert_eq!(strictly(&[TIMES_4_V0, LOAD_V1, WAIT_MEMORY, ADD_V1_V1], 64), None);
    assert_eq!(kind(strictly(&[TIMES_4_V0, LOAD_V1, WAIT_SHARED, ADD_V1_V1], 64)), missing("v1"));
    // Nor may anything be written that a load still fills.
    assert_eq!(kind(strictly(&[TIMES_4_V0, LOAD_V1, ZERO_V1], 64)), missing("v1"));
    assert_eq!(kind(strictly(&[LOAD_S4, ADD_S4], 1)), missing("s4"));
    assert_eq!(strictly(&[LOAD_S4, WAIT_SHARED, ADD_S4], 1), None);
}

#[test]
fn shared_memory_is_written_before_it_is_read() {
    assert_eq!(kind(strictly(&[ZERO_V1, LOAD_SHARED], 1)), Some(FaultKind::UnwrittenShared(0)));
    assert_eq!(strictly(&[ZERO_V1, STORE_SHARED, LOAD_SHARED], 1), None);
}

#[test]
fn waves_meet_at_a_barrier_between_accesses_of_a_word() {
    let race = Some(FaultKind::SharedRace { offset: 0, waves: [0, 1] });
    assert_eq!(kind(strictly(&[ZERO_V1, STORE_SHARED], 64)), race);
    assert_eq!(strictly(&[ZERO_V1, STORE_SHARED], 32), None);
    // Atomics of several waves do not race, and a barrier ends what was before it.
    let atomics = [ZERO_V1, ADD_SHARED, BARRIER, LOAD_SHARED];
    let first = kind(strictly(&atomics, 64));
    assert_eq!(first, Some(FaultKind::UnwrittenShared(0)));
}

#[test]
fn accesses_outside_all_buffers_are_faults_of_every_run() {
    // Lane 1 of the second wave is the first beyond the page: 33 * 128 bytes.
    let far = [TIMES_4_V0, TIMES_4_V0, TIMES_4_V0, TIMES_4_V0, ZERO_V1];
    for strict in [false, true] {
        let fault = run(&[&far[..], &[STORE_V1]].concat(), 64, strict).expect_err("a fault");
        assert_eq!(fault.kind, FaultKind::OutOfBounds { bytes: 4, write: true });
        assert_eq!((fault.wave, fault.lane, fault.address), (0, Some(16), Some(BUFFER + 4096)));
    }
    assert_eq!(run(&[TIMES_4_V0, ZERO_V1, STORE_V1], 64, true), Ok(()));
}
