//! Submissions: packets, launches over threads, barriers between them, and what goes wrong in them.

#![cfg(target_os = "linux")]

use std::sync::{Arc, Mutex};

use radeon_player::fault::{Fault, FaultKind};
use radeon_player::isa::Generation;
use radeon_player::memory::Memory;
use radeon_player::queue::{Problem, Queue};
use radeon_player::report::{Options, Record};

/// Adds 1 to each word at `s[0:1]` and stores it at `s[2:3]`; a workgroup of 64 is `s4`. RDNA3, as
/// LLVM assembles it.
const ADD_ONE: [u32; 10] = [
    0xd646_0000, // v_lshl_add_u32 v0, s4, 6, v0
    0x0401_0c04,
    0x3002_0082, // v_lshlrev_b32 v1, 2, v0
    0xdc52_0000, // global_load_b32 v2, v1, s[0:1]
    0x0200_0001,
    0xbf89_03f7, // s_waitcnt vmcnt(0)
    0x4a04_0481, // v_add_nc_u32 v2, 1, v2
    0xdc6a_0000, // global_store_b32 v1, v2, s[2:3]
    0x0002_0201,
    0xbfb0_0000, // s_endpgm
];

const CODE: u64 = 0x8000_0000_0000;
const COMMANDS: u64 = 0xffff_8001_0000_0000;
/// Three buffers of so many bytes, with nothing between them.
const BUFFERS: [u64; 3] = [0xffff_8001_1000_0000, 0xffff_8001_2000_0000, 0xffff_8001_3000_0000];
const BYTES: u64 = 1 << 20;
const GROUPS: u32 = (BYTES / 256) as u32;

fn packet(operation: u32, body: &[u32]) -> Vec<u32> {
    let header = 3 << 30 | (body.len() as u32 - 1) << 16 | operation << 8;
    [&[header], body].concat()
}

/// A launch of `groups` workgroups from one buffer to another.
fn launch(from: u64, to: u64, groups: u32) -> Vec<u32> {
    let half = |value: u64| [value as u32, (value >> 32) as u32];
    let registers = |first: u32, values: &[u32]| packet(0x76, &[&[first], values].concat());
    [
        registers(0x20c, &half(CODE >> 8)),
        registers(0x207, &[64, 1, 1]),
        // Denormals are kept; four user registers, and the workgroup's number after them.
        registers(0x212, &[0xf << 16, 4 << 1 | 1 << 7]),
        registers(0x240, &[half(from), half(to)].concat()),
        packet(0x15, &[groups, 1, 1, 0x8005]),
    ]
    .concat()
}

/// A wait for the shaders before.
fn barrier() -> Vec<u32> {
    packet(0x46, &[0x407])
}

/// A copy of bytes by the command processor.
fn copy(from: u64, to: u64, bytes: u32) -> Vec<u32> {
    packet(0x50, &[0, from as u32, (from >> 32) as u32, to as u32, (to >> 32) as u32, bytes])
}

struct Player {
    memory: Arc<Memory>,
    queue: Queue,
}

impl Player {
    fn new(options: Options) -> Self {
        Self::with(&ADD_ONE, options)
    }

    fn with(code: &[u32], options: Options) -> Self {
        let memory = Arc::new(Memory::new());
        for address in BUFFERS {
            memory.map_anonymous(address, BYTES);
        }
        memory.map_anonymous(CODE, 4096);
        memory.map_anonymous(COMMANDS, 4096);
        let words: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert!(memory.write(CODE, &words));
        let record = Arc::new(Mutex::new(Record::default()));
        let queue = Queue::new(memory.clone(), Arc::new(options), Generation::Rdna3, record);
        Self { memory, queue }
    }

    fn submit(&mut self, parts: &[Vec<u32>]) -> Result<(), Problem> {
        let words = parts.concat();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert!(self.memory.write(COMMANDS, &bytes));
        self.queue.submit(COMMANDS, words.len() as u32)
    }

    fn word(&self, buffer: usize, index: u64) -> u32 {
        let mut bytes = [0; 4];
        assert!(self.memory.read(BUFFERS[buffer] + 4 * index, &mut bytes));
        u32::from_le_bytes(bytes)
    }
}

fn options(threads: usize, strict: bool) -> Options {
    Options { threads, strict, ..Options::default() }
}

fn fault(outcome: Result<(), Problem>) -> (u32, Fault) {
    match outcome {
        Err(Problem::Launch { number, fault, .. }) => (number, fault),
        other => panic!("{other:?}"),
    }
}

#[test]
fn launches_follow_one_another() {
    let [a, b, c] = BUFFERS;
    for (threads, strict) in [(1, false), (4, false), (4, true)] {
        let mut player = Player::new(options(threads, strict));
        for round in 1..4 {
            player
                .submit(&[launch(a, b, GROUPS), barrier(), launch(b, c, GROUPS), barrier(), copy(c, a, BYTES as u32)])
                .expect("no fault");
            for index in [0, 63, 64, BYTES / 8, BYTES / 4 - 1] {
                assert_eq!(
                    (player.word(1, index), player.word(0, index)),
                    (2 * round - 1, 2 * round),
                    "{threads} threads"
                );
            }
        }
    }
}

#[test]
fn a_missing_barrier_is_found_in_strict_runs() {
    let [a, b, c] = BUFFERS;
    let race = |player: &mut Player, parts: &[Vec<u32>]| fault(player.submit(parts));
    for threads in [1, 4] {
        let mut player = Player::new(options(threads, true));
        // Reads what was written.
        let (number, found) = race(&mut player, &[launch(a, b, GROUPS), launch(b, c, GROUPS)]);
        assert_eq!((number, found.workgroup, found.address), (2, [0; 3], Some(b)));
        assert_eq!(found.kind, FaultKind::LaunchRace { earlier: 1, wrote: true, write: false });
        assert!(found.to_string().contains("global_load_b32"), "{found}");
        // Writes what was read, and what was written.
        let (number, found) = race(&mut player, &[launch(a, b, GROUPS), launch(c, a, GROUPS)]);
        assert_eq!(number, 4);
        assert_eq!(found.kind, FaultKind::LaunchRace { earlier: 3, wrote: false, write: true });
        let (_, found) = race(&mut player, &[launch(a, b, GROUPS), launch(c, b, GROUPS)]);
        assert_eq!(found.kind, FaultKind::LaunchRace { earlier: 5, wrote: true, write: true });
        // A submission is a barrier, and so is a packet; two launches may read the same.
        player.submit(&[launch(a, b, GROUPS)]).expect("no fault");
        player.submit(&[launch(b, c, GROUPS), launch(b, a, GROUPS)]).expect("no fault");
        // The command processor does not wait for shaders by itself.
        let copied = player.submit(&[launch(a, b, GROUPS), copy(b, c, 4096)]);
        assert!(matches!(copied, Err(Problem::Race { .. })), "{copied:?}");
    }
    Player::new(options(1, false)).submit(&[launch(a, b, GROUPS), launch(b, c, GROUPS)]).expect("not looked for");
}

#[test]
fn a_fault_is_that_of_the_first_workgroup_that_has_one() {
    let [a, b, _] = BUFFERS;
    for threads in [1, 3, 8] {
        for _ in 0..5 {
            let mut player = Player::new(options(threads, false));
            // Workgroup 1000 is the first to read behind the end.
            let (_, found) = fault(player.submit(&[launch(a + BYTES - 256_000, b, GROUPS)]));
            assert_eq!((found.workgroup, found.address), ([1000, 0, 0], Some(a + BYTES)), "{threads} threads");
            assert!(matches!(found.kind, FaultKind::OutOfBounds { write: false, .. }), "{found}");
        }
    }
}

#[test]
fn a_fault_ends_the_submission_unless_it_shall_go_on() {
    let [a, b, c] = BUFFERS;
    let parts = [launch(0x1000, b, 1), barrier(), launch(a, c, 1)];
    let mut player = Player::new(options(1, false));
    player.submit(&parts).expect_err("outside all buffers");
    assert_eq!(player.word(2, 0), 0);
    let mut player = Player::new(Options { go_on: true, ..options(1, false) });
    player.submit(&parts).expect("said, and gone on");
    assert_eq!(player.word(2, 0), 1);
}

#[test]
fn a_kernel_without_end_is_said() {
    let [a, b, _] = BUFFERS;
    // s_branch to itself; s_nop, s_barrier and a branch to the first; s_endpgm behind either.
    for code in [&[0xbfa0_ffff, 0xbfb0_0000][..], &[0xbf80_0000, 0xbfbd_0000, 0xbfa0_fffd, 0xbfb0_0000]] {
        let mut player = Player::with(code, Options { most: Some(1000), ..options(2, false) });
        let problem = player.submit(&[launch(a, b, GROUPS)]).expect_err("no end");
        let text = problem.to_string();
        assert!(text.starts_with("launch 1 of kernel "), "{text}");
        assert!(text.contains("does not end: more than 1000 instructions (RADEON_PLAYER_INSTRUCTIONS)"), "{text}");
        let (_, found) = fault(Err(problem));
        assert_eq!((found.kind, found.workgroup), (FaultKind::Endless(1000), [0; 3]));
    }
    // One that ends at the last instruction that it may have.
    let most = |count| Options { most: Some(count), ..options(1, false) };
    Player::new(most(7)).submit(&[launch(a, b, 1)]).expect("seven instructions");
    fault(Player::new(most(6)).submit(&[launch(a, b, 1)]));
}

#[test]
fn what_cannot_be_carried_out_is_said() {
    let mut player = Player::new(options(1, false));
    let unknown = player.submit(&[packet(0x77, &[0])]).expect_err("no such packet");
    assert_eq!(unknown.to_string(), "the player lacks packet 0x77");
    let outside = player.submit(&[copy(0x1000, BUFFERS[0], 64)]).expect_err("no such buffer");
    assert_eq!(outside.to_string(), "copy from at 0x1000, outside all buffers");
    let large = player.submit(&[packet(0x76, &[0x207, 4096, 4096, 4096]), packet(0x15, &[1, 1, 1, 0x8005])]);
    let (number, found) = fault(large);
    assert!(number == 1 && found.to_string().contains("a workgroup of 4294967295 threads"), "{found}");
    let code = packet(0x76, &[0x20c, 0, 0]);
    let launch = [launch(BUFFERS[0], BUFFERS[1], 1)[..].to_vec(), code, packet(0x15, &[1, 1, 1, 0x8005])];
    let (number, found) = fault(player.submit(&launch));
    assert_eq!(number, 3);
    assert!(found.to_string().contains("code outside all buffers"), "{found}");
}
