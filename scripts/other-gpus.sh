#!/usr/bin/env bash
set -euo pipefail

usage() {
    cat <<'TEXT'
other-gpus.sh GPU COMMAND [ARGUMENT...]: runs a command on a GPU that is not there.

Mesa's drivers compile every kernel to the machine code of that GPU, over a kernel interface that accepts everything and
computes nothing (drm-shim). Results are garbage and times mean nothing; registers, spills and errors of the compiler are real.

    scripts/other-gpus.sh --list
    scripts/other-gpus.sh bmg .venv/bin/python -m torch_dml devices
    make gpus

It runs in the Debian 13 that scripts/newer-mesa.sh makes (see its --help), in which the first call installs drm-shim; the first
one for a GPU of Intel builds that of Intel: 5 minutes more.
TEXT
}

fail() { echo "other-gpus.sh: $*" >&2; exit 1; }

# Name, driver, and what chooses the GPU.
gpus() {
    local name
    for name in polaris10 renoir navi10 navi21 navi31 navi33 phoenix strix1 gfx1201; do
        echo "$name radeon AMDGPU_GPU_ID=$name"
    done
    for name in skl icl tgl dg2 mtl lnl bmg ptl; do echo "$name intel INTEL_STUB_GPU_PLATFORM=$name"; done
    for name in 630 660 730 740 750; do echo "$name freedreno FD_GPU_ID=$name"; done
    echo "turing nouveau NOUVEAU_CHIPSET=164"
    echo "ampere nouveau NOUVEAU_CHIPSET=172"
}

[[ $# -gt 0 ]] || { usage >&2; exit 2; }
case $1 in
-h | --help) usage; exit 0 ;;
--list) gpus | cut -d ' ' -f 1; exit 0 ;;
esac
gpu=$1; shift
read -r _ driver setting < <(gpus | grep "^$gpu ") || fail "no such GPU: $gpu (--list names them)"
[[ $# -gt 0 ]] || fail "a command is missing"

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
libraries=/usr/lib/$(uname -m)-linux-gnu

case $driver in
radeon) kind=amd shim=$libraries/libamdgpu_noop_drm_shim.so ;;
freedreno) kind=amd shim=$libraries/libfreedreno_noop_drm_shim.so ;;
nouveau) kind=amd shim=$libraries/libnouveau_noop_drm_shim.so ;;
intel) kind=intel shim=/opt/drm-shim/libintel_noop_drm_shim.so ;;
esac
exec "$here/newer-mesa.sh" --with-shim "$kind" \
    env TORCH_DML_DRY_RUN=1 MESA_SHADER_CACHE_DISABLE=true NVK_I_WANT_A_BROKEN_VULKAN_DRIVER=1 \
    "VK_DRIVER_FILES=/usr/share/vulkan/icd.d/${driver}_icd.json" "$setting" "LD_PRELOAD=$shim" "$@"
