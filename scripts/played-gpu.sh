# What scripts/radeon.sh and scripts/intel.sh share: a command on a GPU that this processor plays. Each sources it, sets
#
#   maker    radeon or intel: the names of the script, of the player and of the driver's file
#   named    how a sentence names such a GPU
#   shim     its kernel interface (drm-shim) in Debian 13, and which of newer-mesa.sh's that is: amd or intel
#   example  a GPU of the list
#   note     what its help says besides
#
# and the functions gpus (a line for each: name, generation of the instruction set, a card that has it) and settings (the
# variables by which drm-shim is that GPU, a line each), and calls play "$@".

# The version of Mesa that the players were tested with: another driver may use what they lack.
tested=26.1.6

usage() {
    cat <<TEXT
$maker.sh GPU COMMAND [ARGUMENT...]: runs a command on $named that this processor plays.

Mesa's driver compiles every kernel to the machine code of that GPU, over a kernel interface that computes nothing (drm-shim),
and tools/$maker-player, preloaded before it, executes that code. Results are those of the GPU's instructions; times mean
nothing.

    scripts/$maker.sh --list
    scripts/$maker.sh $example .venv/bin/python -m torch_dml demo
    ${maker^^}_PLAYER_TRACE=1 scripts/$maker.sh $example .venv/bin/python program.py
    make smoke-$maker

What the player reads from the environment is in tools/$maker-player/README.md.${note:+
$note}
PLAYER names another library to preload, below the checkout; without it, cargo builds the player into target/$maker-player.

It runs in the Debian 13 that scripts/newer-mesa.sh makes (see its --help), in which the first call installs drm-shim.
TEXT
}

fail() { echo "$maker.sh: $*" >&2; exit 1; }

play() {
    [[ $# -gt 0 ]] || { usage >&2; exit 2; }
    case $1 in
    -h | --help) usage; exit 0 ;;
    --list) gpus | cut -d ' ' -f 1; exit 0 ;;
    esac
    local gpu=$1; shift
    gpus | grep -q "^$gpu " || fail "no such GPU: $gpu (--list names them)"
    [[ $# -gt 0 ]] || fail "a command is missing"

    local here target root mesa variables
    here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
    target=$here/../target/$maker-player
    root=${NEWER_MESA_ROOT:-/var/tmp/torch-dml-newer-mesa}
    "$here/newer-mesa.sh" --with-shim "${shim[1]}" true
    mesa=$(chroot "$root" dpkg-query --show --showformat '${Version}' mesa-vulkan-drivers)
    [[ $mesa == "$tested"-* ]] ||
        echo "$maker.sh: Mesa $mesa here; the player was tested with $tested, which snapshot.debian.org keeps" >&2

    # The players compute with the processor's own vectors and multiply-add: AVX2 and FMA, as in x86-64-v3. Their folder is
    # in the checkout, which is the same inside.
    if [[ ! ${PLAYER:-} ]]; then
        PLAYER=$target/release/lib${maker}_player.so
        RUSTFLAGS="-C target-cpu=x86-64-v3" cargo build --quiet --release --package "$maker-player" \
            --manifest-path "$here/../Cargo.toml" --target-dir "$target"
    fi
    mapfile -t variables < <(settings "$gpu")
    exec "$here/newer-mesa.sh" env MESA_SHADER_CACHE_DISABLE=true MESA_VK_IGNORE_CONFORMANCE_WARNING=true "${variables[@]}" \
        "TORCH_DML_CACHE_DIR=${TORCH_DML_CACHE_DIR:-$target/cache}" \
        "VK_DRIVER_FILES=/usr/share/vulkan/icd.d/${maker}_icd.json" "LD_PRELOAD=$(realpath "$PLAYER") ${shim[0]}" "$@"
}
