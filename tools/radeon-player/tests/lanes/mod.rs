//! Programs that load four words a lane, do something to them, and store four words, against a
//! model of a lane.

use std::sync::LazyLock;

use radeon_player::dispatch::Dispatch;
use radeon_player::execute::run_workgroup;
use radeon_player::isa::{Generation, Program};
use radeon_player::memory::Memory;
use radeon_player::report::{Counts, Options};

/// `v_and_b32 v0, 0x3ff, v0`
/// `v_lshlrev_b32 v1, 4, v0`
/// `global_load_b128 v[4:7], v1, s[0:1]`
/// `s_waitcnt vmcnt(0)`
const BEGIN_RDNA3: &[u32] = &[0x3600_00ff, 0x0000_03ff, 0x3002_0084, 0xdc5e_0000, 0x0400_0001, 0xbf89_03f7];
/// `global_store_b128 v1, v[8:11], s[2:3]`
/// `s_endpgm`
const END_RDNA3: &[u32] = &[0xdc76_0000, 0x0002_0801, 0xbfb0_0000];
/// `v_and_b32 v0, 0x3ff, v0`
/// `v_lshlrev_b32 v1, 4, v0`
/// `global_load_dwordx4 v[4:7], v1, s[0:1]`
/// `s_waitcnt vmcnt(0)`
const BEGIN_RDNA2: &[u32] = &[0x3600_00ff, 0x0000_03ff, 0x3402_0084, 0xdc38_8000, 0x0400_0001, 0xbf8c_3f70];
/// `global_store_dwordx4 v1, v[8:11], s[2:3]`
/// `s_endpgm`
const END_RDNA2: &[u32] = &[0xdc78_8000, 0x0002_0801, 0xbf81_0000];
/// `v_and_b32 v0, 0x3ff, v0`
/// `v_lshlrev_b32 v1, 4, v0`
/// `global_load_b128 v[4:7], v1, s[0:1]`
/// `s_wait_loadcnt 0x0`
const BEGIN_RDNA4: &[u32] =
    &[0x3600_00ff, 0x0000_03ff, 0x3002_0084, 0xee05_c000, 0x0000_0004, 0x0000_0001, 0xbfc0_0000];
/// `global_store_b128 v1, v[8:11], s[2:3]`
/// `s_endpgm`
const END_RDNA4: &[u32] = &[0xee07_4002, 0x0400_0000, 0x0000_0001, 0xbfb0_0000];

/// Where lanes' words are, for each test apart.
const BUFFER: u64 = 0x8000_0000_0000;
const LANES: usize = 64;

/// The next of a row of pseudo-random numbers.
fn random(state: &mut u64) -> u32 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 32) as u32
}

/// Runs code as two waves of 32, and compares what each lane stores with what a model makes of what
/// it loaded.
pub fn check(generation: Generation, code: &[u32], model: impl Fn([u32; 4], &[[u32; 4]], usize) -> [u32; 4]) {
    static MEMORY: LazyLock<Memory> = LazyLock::new(Memory::new);
    let (begin, end) = match generation {
        Generation::Rdna1 | Generation::Rdna2 => (BEGIN_RDNA2, END_RDNA2),
        Generation::Rdna3 => (BEGIN_RDNA3, END_RDNA3),
        Generation::Rdna4 => (BEGIN_RDNA4, END_RDNA4),
    };
    // Tests run at the same time: the address of the code tells them apart.
    let from = BUFFER + (code.as_ptr() as u64 & 0xff_fff0) * 0x1000;
    let to = from + 0x1000;
    MEMORY.map_anonymous(from, 0x2000);
    let mut state = 1;
    let input: Vec<[u32; 4]> = (0..LANES).map(|_| std::array::from_fn(|_| random(&mut state))).collect();
    let bytes: Vec<u8> = input.as_flattened().iter().flat_map(|word| word.to_le_bytes()).collect();
    assert!(MEMORY.write(from, &bytes));
    let program = Program::decode(generation, &[begin, code, end].concat(), 0x1000).expect("a program");
    let mut user = [0; 16];
    for (k, address) in [from, to].into_iter().enumerate() {
        (user[2 * k], user[2 * k + 1]) = (address as u32, (address >> 32) as u32);
    }
    let dispatch = Dispatch {
        generation,
        number: 1,
        code: 0x1000,
        wave: 32,
        user,
        // Subnormals are kept; 16 vector registers; four user registers; 1,024 bytes of shared
        // memory.
        rsrc1: 0xf0 << 12 | 1,
        rsrc2: 4 << 1 | 2 << 15,
        rsrc3: 0,
        threads: [LANES as u32, 1, 1],
        groups: [1; 3],
        start: [0; 3],
        last: [LANES as u32, 1, 1],
        scratch: 0,
    };
    let options = Options { threads: 1, ..Options::default() };
    run_workgroup(&program, &dispatch, [0; 3], &MEMORY, &options, &mut Counts::default()).expect("no fault");
    let mut bytes = [[0; 4]; 4 * LANES];
    assert!(MEMORY.read(to, bytes.as_flattened_mut()));
    let words = bytes.map(u32::from_le_bytes);
    for (lane, stored) in words.chunks_exact(4).enumerate() {
        assert_eq!(stored, model(input[lane], &input, lane), "lane {lane} of {:x?}", input[lane]);
    }
}
