#!/usr/bin/env bash
set -euo pipefail

usage() {
    cat <<'TEXT'
intel.sh GPU COMMAND [ARGUMENT...]: runs a command on an Intel GPU that this processor plays.

Mesa's driver compiles every kernel to the machine code of that GPU, over a kernel interface that computes nothing (drm-shim),
and tools/intel-player, preloaded before it, executes that code. Results are those of the GPU's instructions; times mean
nothing.

    scripts/intel.sh --list
    scripts/intel.sh tgl .venv/bin/python -m torch_dml demo
    INTEL_PLAYER_TRACE=1 scripts/intel.sh tgl .venv/bin/python program.py

What the player reads from the environment is in tools/intel-player/README.md. PLAYER names another library to preload; without
it, cargo builds the player into target/intel-player.

It runs in the Debian 13 that scripts/newer-mesa.sh makes (see its --help), in which scripts/other-gpus.sh installs drm-shim.
TEXT
}

fail() { echo "intel.sh: $*" >&2; exit 1; }

# Name, generation, a GPU that has it.
gpus() {
    cat <<'TEXT'
skl Gen9 HD Graphics of Skylake
tgl Xe Iris Xe of Tiger Lake
dg2 Xe-HPG Arc A770
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
shim=/opt/drm-shim/libintel_noop_drm_shim.so

"$here/newer-mesa.sh" --with-shim intel true
mesa=$(chroot "$root" dpkg-query --show --showformat '${Version}' mesa-vulkan-drivers)
[[ $mesa == "$tested"-* ]] ||
    echo "intel.sh: Mesa $mesa here; the player was tested with $tested, which snapshot.debian.org keeps" >&2

# The player computes with the processor's own multiply-add: AVX2 and FMA, as in x86-64-v3. Its folder is in the checkout, which
# is the same inside.
if [[ ! ${PLAYER:-} ]]; then
    PLAYER=$here/../target/intel-player/release/libintel_player.so
    RUSTFLAGS="-C target-cpu=x86-64-v3" cargo build --quiet --release --package intel-player \
        --manifest-path "$here/../Cargo.toml" --target-dir "$here/../target/intel-player"
fi
cache=${TORCH_DML_CACHE_DIR:-$here/../target/intel-player/cache}
# A queue of compute alone, as the driver's own copies are kernels there, and draws elsewhere.
exec "$here/newer-mesa.sh" env MESA_SHADER_CACHE_DISABLE=true MESA_VK_IGNORE_CONFORMANCE_WARNING=true \
    ANV_QUEUE_OVERRIDE=gc=0,c=1 "INTEL_STUB_GPU_PLATFORM=$gpu" "TORCH_DML_CACHE_DIR=$cache" \
    "VK_DRIVER_FILES=/usr/share/vulkan/icd.d/intel_icd.json" "LD_PRELOAD=$(realpath "$PLAYER") $shim" "$@"
