#!/usr/bin/env bash
# Runs a command on an Intel GPU that this processor plays: see --help.
set -euo pipefail

maker=intel named="an Intel GPU" example=tgl
shim=(/opt/drm-shim/libintel_noop_drm_shim.so intel)

gpus() {
    cat <<'TEXT'
skl Gen9 HD Graphics of Skylake
tgl Xe Iris Xe of Tiger Lake
dg2 Xe-HPG Arc A770
TEXT
}

# A queue of compute alone, as the driver's own copies are kernels there, and draws elsewhere.
settings() { printf '%s\n' "INTEL_STUB_GPU_PLATFORM=$1" ANV_QUEUE_OVERRIDE=gc=0,c=1; }

# shellcheck source=scripts/played-gpu.sh
source "$(dirname "${BASH_SOURCE[0]}")/played-gpu.sh"
play "$@"
