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

It runs in the Debian 13 that scripts/newer-mesa.sh makes (see its --help), in which the first call installs drm-shim, and builds
Intel's part of it, which Debian does not package, from Debian's source package of Mesa: 5 minutes more.
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
root=${NEWER_MESA_ROOT:-/var/tmp/torch-dml-newer-mesa}
libraries=/usr/lib/$(uname -m)-linux-gnu
intel=/opt/drm-shim/libintel_noop_drm_shim.so

inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"; }

build_intel_shim() {
    sed -n 's/^deb \(.*\) trixie\(-backports\)\? main.*$/deb-src \1 trixie\2 main/p' "$root/etc/apt/sources.list" \
        >"$root/etc/apt/sources.list.d/source.list"
    inside bash -euc '
        apt-get update -qq
        apt-get install -y -qq --no-install-recommends dpkg-dev gcc g++ meson ninja-build pkg-config python3-mako python3-yaml \
            python3-packaging flex bison libdrm-dev libexpat1-dev zlib1g-dev
        cd /var/tmp && rm -rf mesa-*/ shim-build && apt-get source -qq mesa/trixie && cd mesa-*/
        meson setup /var/tmp/shim-build -Dbuildtype=release -Dtools=drm-shim,intel -Dgallium-drivers= -Dvulkan-drivers= \
            -Dplatforms= -Dglx=disabled -Degl=disabled -Dgbm=disabled -Dgles1=disabled -Dgles2=disabled -Dllvm=disabled \
            -Dvalgrind=disabled -Dlibunwind=disabled -Dzstd=disabled
        ninja -C /var/tmp/shim-build src/intel/tools/libintel_noop_drm_shim.so
        install -D /var/tmp/shim-build/src/intel/tools/libintel_noop_drm_shim.so '"$intel"'
        rm -rf /var/tmp/mesa* /var/tmp/shim-build'
}

make_shims() {
    inside apt-get install -y -qq --no-install-recommends -t trixie-backports mesa-drm-shim
    build_intel_shim
}

"$here/newer-mesa.sh" true
# One call makes them; others that come at the same time wait for it.
exec 9>"$root.lock"
flock 9
if [[ ! -e $root$intel ]]; then
    echo "other-gpus.sh: installing drm-shim in $root, which takes minutes" >&2
    make_shims >"$root.shim.log" 2>&1 || { tail -n 20 "$root.shim.log" >&2; fail "that failed; see $root.shim.log"; }
fi
exec 9>&-

case $driver in
radeon) shim=$libraries/libamdgpu_noop_drm_shim.so ;;
freedreno) shim=$libraries/libfreedreno_noop_drm_shim.so ;;
nouveau) shim=$libraries/libnouveau_noop_drm_shim.so ;;
intel) shim=$intel ;;
esac
exec "$here/newer-mesa.sh" env TORCH_DML_DRY_RUN=1 MESA_SHADER_CACHE_DISABLE=true NVK_I_WANT_A_BROKEN_VULKAN_DRIVER=1 \
    "VK_DRIVER_FILES=/usr/share/vulkan/icd.d/${driver}_icd.json" "$setting" "LD_PRELOAD=$shim" "$@"
