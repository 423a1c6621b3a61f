#!/usr/bin/env bash
set -euo pipefail

usage() {
    cat <<'TEXT'
windows.sh test [ARGUMENT...]    cargo test --workspace for Windows (x86_64-pc-windows-gnu), run under Wine
windows.sh run PROGRAM [ARGUMENT...]   runs a program for Windows under Wine
windows.sh setup                 installs what both need, and does nothing else

Programs find the Vulkan drivers of this system: Mesa's software adapter, where there is no GPU. They see Windows 10.

    scripts/windows.sh test --package dml-vulkan
    make test-windows

It needs Rust by rustup, and apt as root (or a sudo that asks for no password) for wine64, xvfb, MinGW's gcc and Mesa's
drivers, about 1.2 GB. Windows' drive is target/wine; Vulkan under Wine needs an X server, which is one without a screen.
TEXT
}

fail() { echo "windows.sh: $*" >&2; exit 1; }

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=x86_64-pc-windows-gnu
export WINEPREFIX=${WINEPREFIX:-${CARGO_TARGET_DIR:-$checkout/target}/wine}
export WINEARCH=win64 WINEDEBUG=${WINEDEBUG:--all}
# Neither a browser's engine nor .NET, which a new drive would ask for; no entries in the menus of a desktop
# here; no debugger, which would keep a program that has crashed from ending.
export WINEDLLOVERRIDES="mscoree,mshtml,winemenubuilder.exe,winedbg.exe="

find_wine() { command -v wine64 || command -v wine || ls /usr/lib/wine/wine64 2>/dev/null; }

install_packages() {
    local packages=()
    find_wine >/dev/null || packages+=(wine64)
    command -v Xvfb >/dev/null || packages+=(xvfb)
    command -v x86_64-w64-mingw32-gcc >/dev/null || packages+=(gcc-mingw-w64-x86-64-win32)
    ls /usr/share/vulkan/icd.d/lvp_icd.* >/dev/null 2>&1 || packages+=(libvulkan1 mesa-vulkan-drivers)
    [[ ${#packages[@]} -eq 0 ]] && return
    local root=()
    if [[ $(id -u) != 0 ]]; then
        sudo -n true 2>/dev/null || fail "these packages are missing: ${packages[*]}"
        root=(sudo -n)
    fi
    echo "Installing ${packages[*]}" >&2
    "${root[@]}" apt-get update -qq
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
}

install_target() {
    [[ -d $(rustc --print sysroot)/lib/rustlib/$target ]] && return
    command -v rustup >/dev/null || fail "rustc has no $target, and there is no rustup to get it"
    timeout 300 rustup target add $target || fail "rustup could not get $target"
}

# An X server on a display that is free, until this script ends.
start_display() {
    local number=$WINEPREFIX/display
    mkdir -p "$WINEPREFIX"
    mkfifo "$number.$$"
    Xvfb -displayfd 3 -screen 0 640x480x24 -nolisten tcp 3>"$number.$$" >/dev/null 2>&1 &
    display=$!
    read -r DISPLAY <"$number.$$"
    rm "$number.$$"
    export DISPLAY=:$DISPLAY
}

stop() {
    "$wineserver" -k 2>/dev/null || true
    [[ -z ${display:-} ]] || kill "$display" 2>/dev/null || true
}

# Windows' drive, and the one library that an old Wine lacks.
make_drive() {
    local system=$WINEPREFIX/drive_c/windows/system32
    [[ -e $WINEPREFIX/.ready ]] || "$wine" wineboot --init
    if [[ ! -e $system/bcryptprimitives.dll ]]; then
        x86_64-w64-mingw32-gcc -shared -O2 -s -o "$system/bcryptprimitives.dll" \
            "$checkout/scripts/windows/bcryptprimitives.c" -ladvapi32
    fi
    touch "$WINEPREFIX/.ready"
}

[[ $# -gt 0 ]] || { usage >&2; exit 2; }
task=$1
shift
case $task in
-h | --help) usage; exit 0 ;;
test | run | setup) ;;
*) usage >&2; exit 2 ;;
esac

install_packages
wine=$(find_wine)
wineserver=$(dirname "$(readlink -f "$wine")")/wineserver
install_target
trap stop EXIT
start_display
make_drive
case $task in
run) "$wine" "$@" ;;
test)
    export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=$wine
    cargo test --workspace --target $target "$@"
    # What the test of the C interface leaves to a compiler that Wine does not have.
    program=${CARGO_TARGET_DIR:-$checkout/target}/$target/tmp/abi.c
    [[ ! -e $program ]] || x86_64-w64-mingw32-gcc -std=c11 -fsyntax-only -Werror -I "$checkout/plugin" "$program"
    ;;
esac
