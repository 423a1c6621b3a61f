#!/usr/bin/env bash
# Runs a command on a Radeon that this processor plays: see --help.
set -euo pipefail

maker=radeon named="a Radeon" example=navi31
shim=("/usr/lib/$(uname -m)-linux-gnu/libamdgpu_noop_drm_shim.so" amd)
note="RADV_PERFTEST=cswave32 has the driver compile for waves of 32."

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

settings() { echo "AMDGPU_GPU_ID=$1"; }

# shellcheck source=scripts/played-gpu.sh
source "$(dirname "${BASH_SOURCE[0]}")/played-gpu.sh"
play "$@"
