#!/usr/bin/env bash
set -euo pipefail

usage() {
    cat <<'TEXT'
swiftshader.sh COMMAND [ARGUMENT...]: runs a command on SwiftShader, Google's Vulkan on the processor.

Another software adapter beside Mesa's: another compiler, no float64, no 16-bit types, subgroups of 4.

    scripts/swiftshader.sh .venv/bin/python -m torch_dml devices
    make smoke-swiftshader

The driver is that of Debian's package chromium-common, of which the first call takes that one file, without installing it: into
SWIFTSHADER (target/swiftshader when unset).
TEXT
}

[[ $# -gt 0 ]] || { usage >&2; exit 2; }
case $1 in -h | --help) usage; exit 0 ;; esac
folder=${SWIFTSHADER:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/target/swiftshader}
if [[ ! -e $folder/vk_swiftshader_icd.json ]]; then
    echo "swiftshader.sh: downloading Debian's chromium-common into $folder" >&2
    rm -rf "$folder.new"
    mkdir -p "$folder.new"
    (cd "$folder.new" && apt-get download chromium-common >/dev/null 2>&1) || {
        echo "swiftshader.sh: apt-get download chromium-common failed; is this a Debian, and its list of packages new?" >&2
        exit 1
    }
    dpkg-deb --fsys-tarfile "$folder.new"/*.deb | tar -x -C "$folder.new" --strip-components=4 --wildcards '*vk_swiftshader*'
    rm "$folder.new"/*.deb
    rm -rf "$folder"
    mv "$folder.new" "$folder"
fi
exec env "VK_DRIVER_FILES=$folder/vk_swiftshader_icd.json" "VK_ICD_FILENAMES=$folder/vk_swiftshader_icd.json" "$@"
