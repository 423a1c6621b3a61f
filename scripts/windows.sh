#!/usr/bin/env bash
set -euo pipefail

usage() {
    cat <<'TEXT'
windows.sh test [OPTION...] [-- ARGUMENT...]   builds the crates' tests for Windows (x86_64-pc-windows-gnu) and runs them
                                             under Wine, several programs side by side. Options are those of cargo test,
                                             arguments those of the programs, a part of a test's name to begin with.
windows.sh run PROGRAM [ARGUMENT...]         runs a program for Windows under Wine
windows.sh setup                             installs what both need, and does nothing else

Programs find the Vulkan drivers of this system: Mesa's software adapter, where there is no GPU. They see Windows 10. Tests
in the crates' documentation are left to cargo test on the system itself.

    make test-windows
    scripts/windows.sh test --package dml-vulkan -- cache
    scripts/newer-mesa.sh scripts/windows.sh test --package dml-d3d12    # on Debian 13's Wine, which runs Direct3D's kernels

    JOBS=2       how many programs run at a time (as many as there are processors)
    LIMIT_S=600  seconds after which one that has not ended has failed

What each printed is in target/x86_64-pc-windows-gnu/logs. It needs Rust by rustup, Python, and apt as root (or a sudo that asks
for no password) for wine64, xvfb, spirv-tools, MinGW's gcc and Mesa's drivers, about 1.2 GB. Windows' drive is target/wine-VERSION; Vulkan under Wine
needs an X server, which is one without a screen.
TEXT
}

fail() { echo "windows.sh: $*" >&2; exit 1; }

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=x86_64-pc-windows-gnu
export WINEARCH=win64 WINEDEBUG=${WINEDEBUG:--all}
# Neither a browser's engine nor .NET, which a new drive would ask for; no entries in the menus of a desktop
# here; no debugger, which would keep a program that has crashed from ending.
export WINEDLLOVERRIDES="mscoree,mshtml,winemenubuilder.exe,winedbg.exe="

find_wine() { command -v wine64 || command -v wine || ls /usr/lib/wine/wine64 2>/dev/null; }

install_packages() {
    local packages=()
    find_wine >/dev/null || packages+=(wine64)
    command -v Xvfb >/dev/null || packages+=(xvfb)
    command -v spirv-val >/dev/null || packages+=(spirv-tools)
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

# Windows' drive, the one library that an old Wine lacks, and the one program that tests start.
make_drive() {
    local system=$WINEPREFIX/drive_c/windows/system32
    [[ -e $WINEPREFIX/.ready ]] || "$wine" wineboot --init
    if [[ ! -e $system/bcryptprimitives.dll ]]; then
        x86_64-w64-mingw32-gcc -shared -O2 -s -o "$system/bcryptprimitives.dll" \
            "$checkout/scripts/windows/bcryptprimitives.c" -ladvapi32
    fi
    if [[ $checkout/scripts/windows/spirv-val.c -nt $system/spirv-val.exe ]]; then
        x86_64-w64-mingw32-gcc -O2 -s -Wall -Werror -o "$system/spirv-val.exe" "$checkout/scripts/windows/spirv-val.c"
    fi
    touch "$WINEPREFIX/.ready"
}

# The folder of the package and the program of every test that cargo has built, from what it says.
programs='
import json, sys
for line in sys.stdin:
    said = json.loads(line)
    if said.get("executable") and said["profile"]["test"]:
        print(said["manifest_path"].rpartition("/")[0], said["executable"], sep="\t")
'

# Runs one of them, as cargo would, with the arguments in front of it; prints a line, or all that it printed if it failed.
run_program() {
    local entry=${!#} status=0
    local program=${entry#*$'\t'}
    local name=${program##*/}
    name=${name%.exe}
    cd "${entry%%$'\t'*}"
    timeout "$limit" "$wine" "$program" "${@:1:$#-1}" >"$logs/$name.log" 2>&1 </dev/null || status=$?
    if [[ $status = 0 ]] && grep -q "^test result: ok" "$logs/$name.log"; then
        echo "$name: $(grep "^test result" "$logs/$name.log"), ${SECONDS} s"
    else
        printf '%s: FAILED with status %s after %s s\n%s\n' "$name" "$status" "$SECONDS" "$(cat "$logs/$name.log")"
        return 1
    fi
}

build_and_run() {
    local for_cargo=()
    while [[ $# -gt 0 && $1 != -- ]]; do
        for_cargo+=("$1")
        shift
    done
    [[ $# -eq 0 ]] || shift
    export wine logs=${CARGO_TARGET_DIR:-$checkout/target}/$target/logs limit=${LIMIT_S:-600}
    export -f run_program
    rm -rf "$logs"
    mkdir -p "$logs"
    cargo test --no-run --target $target --message-format=json-render-diagnostics "${for_cargo[@]}" |
        python3 -c "$programs" >"$logs/programs.txt"
    local built=$SECONDS failed=0
    # The server would end with the first program that leaves none behind it, and start again with the next.
    # One that has just made the drive may still be there, for seconds.
    timeout 30 "$wineserver" -w || "$wineserver" -k || true
    "$wineserver" -p
    xargs -d '\n' -P "${JOBS:-$(nproc)}" -I{} bash -c 'run_program "$@"' _ "$@" {} <"$logs/programs.txt" || failed=1
    awk -v built=$built -v ran=$((SECONDS - built)) '
        FILENAME ~ /programs.txt$/ { programs++; next }
        # The last of a program is its own; those before it are of tests that started it again.
        FNR == 1 { add() }
        /^test result/ { line = $0 }
        function add(  part) {
            if (split(line, part, " ") < 8) return
            ended++; passed += part[4]; failed += part[6]; ignored += part[8]; line = ""
        }
        END { add(); printf "%d of %d programs ended: %d tests passed, %d failed, %d ignored; built in %d s, run in %d s\n",
                     ended, programs, passed, failed, ignored, built, ran }' "$logs/programs.txt" "$logs"/*.log
    return $failed
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
# A drive of one version is none for another.
version=$("$wine" --version)
export WINEPREFIX=${WINEPREFIX:-${CARGO_TARGET_DIR:-$checkout/target}/${version%% *}}
wineserver=$(dirname "$(readlink -f "$wine")")/wineserver
install_target
trap stop EXIT
start_display
make_drive
case $task in
run) "$wine" "$@" ;;
test)
    build_and_run "$@"
    # The engine asks for nothing but what crates/gpu has.
    [[ $# -gt 0 ]] || cargo check --quiet --target $target --package dml-engine --features direct3d12
    # What the test of the C interface leaves to a compiler that Wine does not have.
    program=${CARGO_TARGET_DIR:-$checkout/target}/$target/tmp/abi.c
    [[ ! -e $program ]] || x86_64-w64-mingw32-gcc -std=c11 -fsyntax-only -Werror -I "$checkout/plugin" "$program"
    ;;
esac
