#!/usr/bin/env bash
set -euo pipefail

usage() {
    cat <<'TEXT'
radeon.sh GPU COMMAND [ARGUMENT...]: runs a command on a Radeon that this processor plays.

Mesa's driver compiles every kernel to the machine code of that GPU, over a kernel interface that computes nothing (drm-shim),
and tools/radeon-player, preloaded before it, executes that code. Results are those of the GPU's instructions; times mean
nothing.

    scripts/radeon.sh --list
    scripts/radeon.sh navi31 .venv/bin/python -m torch_dml demo
    RADEON_PLAYER_STRICT=1 scripts/radeon.sh navi31 .venv/bin/python program.py
    make smoke-radeon

What the player reads from the environment is in tools/radeon-player/README.md; RADV_PERFTEST=cswave32 has the driver compile
for waves of 32. PLAYER names another library to preload; without it, cargo builds the player into target/radeon-player.

It runs in the Debian 13 that scripts/newer-mesa.sh makes (see its --help), in which the first call installs drm-shim.
TEXT
}

fail() { echo "radeon.sh: $*" >&2; exit 1; }

# Name, generation of the instruction set, a card that has it.
gpus() {
    cat <<'TEXT'
navi31 RDNA3 RX 7900 XTX
navi33 RDNA3 RX 7600
phoenix RDNA3 Radeon 780M
strix1 RDNA3.5 Radeon 890M
navi21 RDNA2 RX 6800
navi10 RDNA1 RX 5700 XT
gfx1201 RDNA4 RX 9070 XT
TEXT
}
# The version of Mesa that the player was tested with: another driver may use what the player lacks.
tested=26.1.6

[[ $# -gt 0 ]] || { usage >&2; exit 2; }
case $1 in
-h | --help) usage; exit 0 ;;
--list) gpus | cut -d ' ' -f 1; exit 0 ;;
esac
gpu=$1; shift
gpus | grep -q "^$gpu " || fail "no such GPU: $gpu (--list names them)"
[[ $# -gt 0 ]] || fail "a command is missing"

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=${NEWER_MESA_ROOT:-/var/tmp/torch-dml-newer-mesa}
shim=/usr/lib/$(uname -m)-linux-gnu/libamdgpu_noop_drm_shim.so

"$here/newer-mesa.sh" --with-shim amd true
mesa=$(chroot "$root" dpkg-query --show --showformat '${Version}' mesa-vulkan-drivers)
[[ $mesa == "$tested"-* ]] ||
    echo "radeon.sh: Mesa $mesa here; the player was tested with $tested, which snapshot.debian.org keeps" >&2

# The player executes vector instructions by the processor's own: AVX2 and FMA, as in x86-64-v3. Its folder is
# in the checkout, which is the same inside.
if [[ ! ${PLAYER:-} ]]; then
    PLAYER=$here/../target/radeon-player/release/libradeon_player.so
    RUSTFLAGS="-C target-cpu=x86-64-v3" cargo build --quiet --release --package radeon-player \
        --manifest-path "$here/../Cargo.toml" --target-dir "$here/../target/radeon-player"
fi
cache=${TORCH_DML_CACHE_DIR:-$here/../target/radeon-player/cache}
exec "$here/newer-mesa.sh" env MESA_SHADER_CACHE_DISABLE=true MESA_VK_IGNORE_CONFORMANCE_WARNING=true \
    "AMDGPU_GPU_ID=$gpu" "TORCH_DML_CACHE_DIR=$cache" "VK_DRIVER_FILES=/usr/share/vulkan/icd.d/radeon_icd.json" \
    "LD_PRELOAD=$(realpath "$PLAYER") $shim" "$@"
