"""Main loops in the machine code that drivers show: excerpts of Mesa 26.1's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gpus import main_loops
from tests.gpus.loops import Kind, Loop, main_loop

RDNA3 = """program compute, subgroups of 32
BB0:
	s_mov_b32 s0, s3                                            ; be800003
BB4:
	s_add_u32 s9, s1, 1                                         ; 80098101
	s_delay_alu instid0(SALU_CYCLE_1) | instskip(NEXT)          ; bf870499
	global_load_b128 v[108:111], v[4:5], off                    ; dc5e0000 6c7c0004
	ds_load_b64 v[4:5], v1                                      ; d9d80000 04000001
	s_waitcnt lgkmcnt(3)                                        ; bf89fc37
	v_fmac_f32_e32 v44, v4, v120                                ; 5658f104
	v_dual_fmac_f32 v45, v4, v121 :: v_dual_fmac_f32 v52, v5, v120 ; c8000000
	v_dual_mov_b32 v1, v2 :: v_dual_fmac_f32 v53, v5, v121      ; c8000000
	v_pk_fma_f16 v9, v5, v6, v9                                 ; cc0e4009
	v_cvt_f16_f32_e32 v1, v2                                    ; 7e021502
	ds_store_b128 v1, v[108:111]                                ; db7c0000
	s_barrier                                                   ; bfbd0000
	s_cbranch_scc0 BB4                                          ; bfa1f502
BB5:
	v_fmac_f32_e32 v44, v4, v120                                ; 5658f104
"""

RDNA3_MATRIX = """program compute, subgroups of 64
BB2:
	ds_load_b128 v[96:99], v1                                   ; db7c0000
	v_wmma_f32_16x16x16_f16 v[32:35], v[96:103], v[136:143], v[32:35] ; cc404020 1c831160
	s_cbranch_scc1 BB2                                          ; bfa1f502
"""

GEN9 = """program compute, subgroups of 8
mov(8)          g86<1>UD        g0.1<0,1,0>UD                   { align1 WE_all 1Q compacted };

LABEL8:
cmp.ge.f0.0(8)  null<1>UD       g67<8,8,1>UD    g65<0,1,0>UD    { align1 1Q };
(+f0.0) break(8) JIP:  LABEL6         UIP:  LABEL6              { align1 1Q };
sends(8)        g43UD           g6UD            nullUD          0x024060fe                0x00000000
                hdc1 MsgDesc: (untyped surface read, Surface = 254, SIMD8, Mask = 0x0)  mlen 1 { align1 1Q };
mad(8)          g102<1>F        g123<4,4,1>F    g32<4,4,1>F     g100<4,4,1>F { align16 1Q compacted };
mad(16)         g66<1>F         g22<4,4,1>F     g33<4,4,1>F     g98<4,4,1>F { align16 1H compacted };
mad(16)         g66<1>HF        g22<4,4,1>HF    g33<4,4,1>HF    g98<4,4,1>HF { align16 1H compacted };
mov(8)          g2<1>F          g3<8,8,1>HF                     { align1 1Q };
shl(8)          g85<1>D         g80<8,8,1>D     0x00000010UD    { align1 1Q };
sends(8)        g80UD           g0UD            nullUD          0x0219e000                0x00000000
                hdc0 MsgDesc: (DC mfence, bti 0, 32)  mlen 1 ex_mlen 0 rlen 1 { align1 WE_all 1N };
wait(1)         n0<1>UD                                         { align1 WE_all 1N };

LABEL6:
while(8)        JIP:  LABEL8                                    { align1 1Q };
mad(8)          g102<1>F        g123<4,4,1>F    g32<4,4,1>F     g100<4,4,1>F { align16 1Q compacted };
"""

XE2 = """program compute, subgroups of 16
LABEL7:
sync nop(1)                     null<0,1,0>UB                   { align1 WE_all 1N $13.src };
send(16)        g43UD           g68UD           nullUD          0x02403500                0x00000000
                slm MsgDesc: ( load, a32, d32, V4, L1STATE_L3MOCS dst_len = 4 flat )  base_offset 0  { align1 1H };
mad(16)         g88<1>F         g109<8,8,1>F    g54<8,8,1>F     g43<1,1,1>F { align1 1H $7.dst };
dpas.8x8(16)    g49<1>F         g41<1,1,0>F     g9<1,1,0>HF     g21<1,1,0>HF { align1 WE_all 1H $11 };
send(16)        nullUD          g82UD           g47UD           0x02000504                0x02000040
                slm MsgDesc: ( store, a32, d32, V1, L1STATE_L3MOCS dst_len = 0 flat )  base_offset 2048 { align1 1H };
while(16)       JIP:  LABEL7                                    { align1 1H };
"""

ADRENO = """program CS, subgroups of 64
Native code for unnamed CL shader (null) with blake3 8aff:
; num_ubos:           0
@const(c16.x)	0x0000ffff, 0x4f7ffffe, 0x00004000, 0x00000000
shps #l51
l686:
(sy)mad.f32 r23.w, r1.y, r2.z, (last)r23.w
(rpt1)mad.f32 r2.y, r2.x, (r)r2.y, (r)(last)r44.w
ldl.u32 r44.w, l[r8.z], 4
(nop3) add.u r48.w, c0.x, 16
mov.u32u32 r1.x, r2.x
br p0.x, #l1948
(ss)jump #l686
l1948:
end
"""

NVK = """program compute, subgroups of 32
block.u 0 L2 [] -> {
      ur0       = s2r sr[0x25]                                    // delay=1 wr:0
block.u 3 L5 [2, 6] -> {
      r97       = ffma r165 r175 r97                              // delay=1
      r160..164 = ld.shared.strong.cta.b128 [r157.x16+0xa00], pT  // delay=1 wr:0
      r140      = ffma r160 r172 r140                             // delay=1 wt=010001
      r2        = hfma2 r160 r172 r140                            // delay=1
      ur0       = iadd3 ur0 ur3 rZ                                // delay=3
@!p0              bra pT L11                                      // delay=1
                  bra pT L5                                       // delay=1 wt=000001
block.u 4 L11 [3] -> {
"""


def loop_of(text: str, lanes: int = 8) -> Loop:
    found = main_loop(text, lanes=lanes)
    assert found is not None
    return found


def test_rdna3() -> None:
    loop = loop_of(RDNA3)
    assert (loop.multiply_adds, loop.dual, loop.waits) == (6, 2, 1)
    assert loop.slots[Kind.MULTIPLY_ADD] == 4 and loop.slots.total() == 13
    assert loop.share == 4 / 13 and loop.loads == 1 / 6
    kinds = (Kind.WAIT, Kind.GLOBAL, Kind.SHARED_STORE, Kind.CONVERSION, Kind.ADDRESS, Kind.BRANCH)
    assert [loop.counts[kind] for kind in kinds] == [3, 1, 1, 1, 1, 1]


def test_a_loop_with_matrix_instructions() -> None:
    loop = loop_of(RDNA3_MATRIX)
    assert loop.uses_matrix_units and loop.share == 1 / 3 and loop.loads == 1


def test_intel_before_xe2() -> None:
    loop = loop_of(GEN9)
    # Of floats, 16 lanes take two passes of 8; halves take one.
    assert loop.multiply_adds == 3 and loop.slots[Kind.MULTIPLY_ADD] == 4
    kinds = (Kind.SHARED_LOAD, Kind.WAIT, Kind.CONVERSION, Kind.ADDRESS, Kind.BRANCH)
    assert [loop.slots[kind] for kind in kinds] == [1, 2, 1, 2, 2]
    assert loop.slots.total() == 12


def test_xe2() -> None:
    loop = loop_of(XE2, lanes=16)
    assert loop.uses_matrix_units and loop.slots.total() == 6 and loop.waits == 2
    assert (loop.slots[Kind.MULTIPLY_ADD], loop.counts[Kind.SHARED_LOAD], loop.counts[Kind.SHARED_STORE]) == (1, 1, 1)


def test_adreno_repeats_and_idles() -> None:
    loop = loop_of(ADRENO)
    assert loop.multiply_adds == 3 and loop.slots[Kind.MULTIPLY_ADD] == 3
    assert (loop.slots[Kind.WAIT], loop.slots[Kind.SHARED_LOAD], loop.slots[Kind.MOVE], loop.waits) == (3, 1, 1, 2)
    assert loop.slots.total() == 11


def test_nvk() -> None:
    loop = loop_of(NVK)
    assert loop.multiply_adds == 4 and loop.slots.total() == 7
    assert (loop.counts[Kind.SHARED_LOAD], loop.counts[Kind.ADDRESS], loop.waits) == (1, 1, 2)


def test_the_loop_with_the_most_multiply_adds_of_its_own() -> None:
    inner = "BB2:\n\tv_fmac_f32_e32 v1, v2, v3 ; 0\n\ts_cbranch_scc0 BB2 ; 0\n"
    outer = "\tv_fmac_f32_e32 v1, v2, v3 ; 0\n" * 3
    loop = loop_of(f"program compute, subgroups of 64\nBB1:\n{outer}{inner}\ts_cbranch_scc0 BB1 ; 0\n")
    assert loop.multiply_adds == 3 and loop.slots.total() == 4, "the inner loop is not counted"


@pytest.mark.parametrize("text", ["", "program compute, subgroups of 64\nBB0:\n\ts_endpgm ; bfb00000\n", "nonsense (("])
def test_code_without_such_a_loop(text: str) -> None:
    assert main_loop(text) is None


def test_reasons_are_read(tmp_path: Path) -> None:
    assert main_loops.reasons()
    file = tmp_path / "loops.toml"
    file.write_text('[[reason]]\ngpus = "skl|bmg"\nsubjects = "product .*"\ntext = "why"\n')
    (reason,) = known = main_loops.reasons(file)
    assert main_loops.reasons_for("bmg", "product f32", known) == [reason]
    assert not main_loops.reasons_for("bmg", "attention f16", known) and not main_loops.reasons_for(
        "tgl", "product f32", known
    )
