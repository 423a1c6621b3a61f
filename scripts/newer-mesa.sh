#!/usr/bin/env bash
set -euo pipefail

usage() {
    cat <<'TEXT'
newer-mesa.sh [--with-shim amd|intel] COMMAND [ARGUMENT...]: runs a command under Debian 13 with Mesa from its backports
(26.1 or newer).

A second software adapter beside the system's: Vulkan 1.4, another LLVM, float32 subnormals flushed, cooperative matrices;
a newer validation layer; and from Debian's next release a spirv-val that knows matrices of bfloat16. What was built here
runs there, since its C library is newer than Debian 12's.

    scripts/newer-mesa.sh .venv/bin/python -m torch_dml devices
    make test-newer-mesa

It needs root, and may not run where a container forbids mounting. The first call makes a Debian 13 in
NEWER_MESA_ROOT (/var/tmp/torch-dml-newer-mesa when unset): about 1 GB and 3 minutes, with debootstrap, which it installs
through apt, from the mirror that apt uses, else from deb.debian.org. To undo it, remove the folder.

--with-shim has it install drm-shim first, if it is missing: kernel interfaces that accept everything and compute nothing, for
scripts/radeon.sh and scripts/other-gpus.sh. "amd" is Debian's package, with the shims of AMD, Qualcomm and Nvidia; "intel" is
built from Debian's source package of Mesa, since Debian does not package it: 5 minutes more.

Inside, the checkout, the home and Python are those of this system, in a mount namespace of the command alone;
everything else, /tmp too, is that of Debian 13.
TEXT
}

fail() { echo "newer-mesa.sh: $*" >&2; exit 1; }

[[ $# -gt 0 ]] || { usage >&2; exit 2; }
case $1 in -h | --help) usage; exit 0 ;; esac
shim=
if [[ $1 = --with-shim ]]; then
    shim=${2:-}
    [[ $shim = amd || $shim = intel ]] || fail "--with-shim takes amd or intel"
    shift 2
    [[ $# -gt 0 ]] || fail "a command is missing"
fi
[[ $(id -u) = 0 ]] || fail "needs root, to change the root folder"

root=${NEWER_MESA_ROOT:-/var/tmp/torch-dml-newer-mesa}
# Another name than that of the roots that older versions of this script made: those are made anew.
ready=.ready-2
checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# The mirror of Debian that apt uses: none on Ubuntu.
mirror() {
    local found
    found=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
        grep -oE '^(URIs: *|deb +(\[[^]]*\] +)?)https?://\S+' | grep -oE 'https?://\S+/debian/?$' || true)
    found=${found%%$'\n'*}
    echo "${found:-https://deb.debian.org/debian}"
}

install() { chroot "$root" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"; }

make_root() {
    local from
    from=$(mirror)
    if ! command -v debootstrap >/dev/null; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap
    fi
    rm -rf --one-file-system "$root"
    debootstrap --variant=minbase trixie "$root" "$from"
    printf 'deb %s %s main\n' "$from" trixie-backports "$from" forky >>"$root/etc/apt/sources.list"
    # From the next release only what is asked for by its name.
    printf 'Package: *\nPin: release n=forky\nPin-Priority: -1\n' >"$root/etc/apt/preferences.d/forky"
    cp -r /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
    cp /etc/resolv.conf "$root/etc/"
    chroot "$root" apt-get update -qq
    # What Python and its wheels link with, and what tests call.
    install libstdc++6 libgomp1 libexpat1 libffi8 libssl3t64 libsqlite3-0 liblzma5 libbz2-1.0 libreadline8t64 \
        vulkan-validationlayers
    install -t trixie-backports mesa-vulkan-drivers libvulkan1
    install spirv-tools/forky
    touch "$root/$ready"
}

inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"; }

intel_shim=/opt/drm-shim/libintel_noop_drm_shim.so

# The file that a shim is there by.
shim_file() {
    case $1 in
    amd) echo "$root/usr/lib/$(uname -m)-linux-gnu/libamdgpu_noop_drm_shim.so" ;;
    intel) echo "$root$intel_shim" ;;
    esac
}

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
        install -D /var/tmp/shim-build/src/intel/tools/libintel_noop_drm_shim.so '"$intel_shim"'
        rm -rf /var/tmp/mesa* /var/tmp/shim-build'
}

make_shim() {
    case $1 in
    amd) inside apt-get install -y -qq --no-install-recommends -t trixie-backports mesa-drm-shim ;;
    intel) build_intel_shim ;;
    esac
}

# One call makes it; others that come at the same time wait for it.
exec 9>"$root.lock"
flock 9
if [[ ! -e $root/$ready ]]; then
    echo "newer-mesa.sh: making a Debian 13 in $root, which takes minutes" >&2
    trap 'tail -n 20 "$root.log" >&2; echo "newer-mesa.sh: that failed; see $root.log" >&2' EXIT
    make_root >"$root.log" 2>&1
    trap - EXIT
fi
if [[ $shim && ! -e $(shim_file "$shim") ]]; then
    echo "newer-mesa.sh: installing drm-shim ($shim) in $root, which may take minutes" >&2
    make_shim "$shim" >"$root.shim.log" 2>&1 ||
        { tail -n 20 "$root.shim.log" >&2; fail "that failed; see $root.shim.log"; }
fi
exec 9>&-

# Where Python is: a folder of its own, or, of the system's, the interpreter and its library.
mapfile -t shared < <(python3 - <<'TEXT'
import os, sys, sysconfig
alone = sys.base_prefix != "/usr"
print("\n".join([sys.base_prefix] if alone else [os.path.realpath(sys.executable), sysconfig.get_path("stdlib")]))
TEXT
)
shared+=("$checkout" "$HOME" /proc /dev)

export NEWER_MESA_HERE=$PWD
# shellcheck disable=SC2016 # Expanded by the inner shell.
exec unshare --mount --propagation private bash -euo pipefail -c '
    root=$1 count=$2; shift 2
    for path in "${@:1:count}"; do
        if [[ -d $path ]]; then mkdir -p "$root$path"; else mkdir -p "$root${path%/*}"; touch "$root$path"; fi
        mount --rbind "$path" "$root$path"
    done
    shift "$count"
    exec chroot "$root" bash -c "cd \"\$NEWER_MESA_HERE\"; unset NEWER_MESA_HERE; exec \"\$@\"" bash "$@"
' bash "$root" "${#shared[@]}" "${shared[@]}" "$@"
