//! Kernels for tests, as Direct3D's older bytecode (DXBC, shader model 5.1), which every driver
//! takes, also where there is no compiler for DXIL. The format is described in Microsoft's header
//! `d3d11TokenizedProgramFormat.hpp`.

/// Adds words: `out[i] = a[i] + b[i] + groups`, for `i` below `n`. Its parameters are the addresses
/// of `a`, `b` and `out`, and `n`, 28 bytes; they are followed by the number of workgroups, of 64
/// invocations each.
pub fn add() -> Vec<u8> {
    let [r0, r1] = [0, 1];
    let [x, y, z, w] = [0, 1, 2, 3];
    let mut code: Vec<u32> = [
        [0x0100_086a].as_slice(),                       // dcl_globalFlags refactoringAllowed
        &[0x0700_0059, 0x0030_8e46, 0, 0, 0, 3, 0],     // dcl_constantbuffer CB0[0:0][3], space 0
        &[0x0600_009d, 0x0031_ee46, 0, 0, u32::MAX, 1], // dcl_uav_raw U0[0:*], space 1
        &[0x0200_005f, 0x0002_0012],                    // dcl_input vThreadID.x
        &[0x0200_0068, 2],                              // dcl_temps 2
        &[0x0400_009b, 64, 1, 1],                       // dcl_thread_group 64, 1, 1
    ]
    .concat();
    let mut emit = |opcode: u32, operands: &[&[u32]]| {
        let length = 1 + operands.iter().map(|operand| operand.len() as u32).sum::<u32>();
        code.push(opcode | length << 24);
        operands.iter().for_each(|operand| code.extend_from_slice(operand));
    };
    // ult r0.x, vThreadID.x, n; if_nz r0.x; ishl r0.x, vThreadID.x, 2
    emit(79, &[&to(r0, x), THREAD, &constant(6)]);
    emit(31 | 1 << 18, &[&from(r0, x)]);
    emit(41, &[&to(r0, x), THREAD, &[0x0000_4001, 2]]);
    for (word, into) in [(0, x), (2, y)] {
        // iadd r0.y, r0.x, low; mov r0.z, high; ld_raw r1.?, r0.y, U0[r0.z]
        emit(30, &[&to(r0, y), &from(r0, x), &constant(word)]);
        emit(54, &[&to(r0, z), &constant(word + 1)]);
        emit(165, &[&to(r1, into), &from(r0, y), &memory(0x6, z)]);
    }
    emit(30, &[&to(r1, x), &from(r1, x), &from(r1, y)]);
    emit(54, &[&to(r0, w), &constant(7)]);
    emit(30, &[&to(r1, x), &from(r1, x), &from(r0, w)]);
    emit(30, &[&to(r0, y), &from(r0, x), &constant(4)]);
    emit(54, &[&to(r0, z), &constant(5)]);
    // store_raw U0[r0.z].x, r0.y, r1.x; endif; ret
    emit(166, &[&memory(0x12, z), &from(r0, y), &from(r1, x)]);
    emit(21, &[]);
    emit(62, &[]);
    container(&code)
}

/// vThreadID.x
const THREAD: &[u32] = &[0x0002_000a];

/// A component of a temporary register that is written.
fn to(register: u32, component: u32) -> [u32; 2] {
    [0x0010_0002 | 0x10 << component, register]
}

/// A component of a temporary register that is read.
fn from(register: u32, component: u32) -> [u32; 2] {
    [0x0010_000a | component << 4, register]
}

/// A word of the constants.
fn constant(word: u32) -> [u32; 4] {
    [0x0030_800a | (word % 4) << 4, 0, 0, word / 4]
}

/// The buffer whose index is in a component of r0. `components` selects the components of the
/// access.
fn memory(components: u32, component: u32) -> [u32; 4] {
    let [register, index] = from(0, component);
    [0x0421_e000 | components, 0, register, index]
}

/// The container of a kernel with these tokens: without inputs and outputs.
fn container(code: &[u32]) -> Vec<u8> {
    const COMPUTE_5_1: u32 = 5 << 16 | 0x51;
    let program: Vec<u32> = [COMPUTE_5_1, code.len() as u32 + 2].into_iter().chain(code.iter().copied()).collect();
    let parts: [(&[u8; 4], &[u32]); 3] = [(b"ISGN", &[0, 8]), (b"OSGN", &[0, 8]), (b"SHEX", &program)];
    const HEAD: usize = 4 + 16 + 4 + 4 + 4;
    let mut at = HEAD + 4 * parts.len();
    let (mut offsets, mut body) = (Vec::new(), Vec::new());
    for (name, words) in parts {
        offsets.extend_from_slice(&(at as u32).to_le_bytes());
        body.extend_from_slice(name);
        body.extend_from_slice(&(4 * words.len() as u32).to_le_bytes());
        words.iter().for_each(|word| body.extend_from_slice(&word.to_le_bytes()));
        at += 8 + 4 * words.len();
    }
    let mut summed = Vec::new();
    for word in [1, at as u32, parts.len() as u32] {
        summed.extend_from_slice(&u32::to_le_bytes(word));
    }
    summed.extend(offsets);
    summed.extend(body);
    let sum = checksum(&summed).map(u32::to_le_bytes).concat();
    [b"DXBC".as_slice(), &sum, &summed].concat()
}

/// The container's checksum: MD5 with another padding. The last block begins with the length and
/// ends with a second form of the length.
fn checksum(bytes: &[u8]) -> [u32; 4] {
    let mut state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let (blocks, rest) = bytes.as_chunks::<64>();
    blocks.iter().for_each(|block| mix(&mut state, block));
    let bits = bytes.len() as u32 * 8;
    let mut last = [0; 64];
    if rest.len() >= 56 {
        last[..rest.len()].copy_from_slice(rest);
        last[rest.len()] = 0x80;
        mix(&mut state, &last);
        last = [0; 64];
    } else {
        last[4..4 + rest.len()].copy_from_slice(rest);
        last[4 + rest.len()] = 0x80;
    }
    last[..4].copy_from_slice(&bits.to_le_bytes());
    last[60..].copy_from_slice(&(bits >> 2 | 1).to_le_bytes());
    mix(&mut state, &last);
    state
}

/// A step of MD5 (RFC 1321).
fn mix(state: &mut [u32; 4], block: &[u8; 64]) {
    const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
    let words: [u32; 16] = std::array::from_fn(|i| {
        u32::from_le_bytes([block[4 * i], block[4 * i + 1], block[4 * i + 2], block[4 * i + 3]])
    });
    let [mut a, mut b, mut c, mut d] = *state;
    for i in 0..64 {
        let (f, word) = match i / 16 {
            0 => (b & c | !b & d, i),
            1 => (d & b | !d & c, (5 * i + 1) % 16),
            2 => (b ^ c ^ d, (3 * i + 5) % 16),
            _ => (c ^ (b | !d), 7 * i % 16),
        };
        let sine = (((i + 1) as f64).sin().abs() * 4_294_967_296.0) as u32;
        let sum = a.wrapping_add(f).wrapping_add(sine).wrapping_add(words[word]);
        (a, d, c, b) = (d, c, b, b.wrapping_add(sum.rotate_left(SHIFTS[i / 16][i % 4])));
    }
    for (old, new) in state.iter_mut().zip([a, b, c, d]) {
        *old = old.wrapping_add(new);
    }
}

#[test]
fn md5_is_md5() {
    // The hash of an empty message (RFC 1321), whose single block is written by hand.
    let mut state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let mut block = [0; 64];
    block[0] = 0x80;
    mix(&mut state, &block);
    assert_eq!(state.map(u32::swap_bytes), [0xd41d_8cd9, 0x8f00_b204, 0xe980_0998, 0xecf8_427e]);
}
