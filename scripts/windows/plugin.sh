#!/usr/bin/env bash
set -euo pipefail

usage() {
    cat <<'TEXT'
plugin.sh [TORCH]: builds the plugin for Windows' C++ ABI without Microsoft's compiler, and runs it under Wine.

The plugin is compiled by clang 19 against PyTorch's wheel for Windows (2.11.0 unless named), linked with its import
libraries and the engine's DLL, and loaded by a program that trains the network of the demo on the device and on the CPU
(scripts/windows/smoke.cpp). In place of Microsoft's SDK stand Microsoft's own open C++ library (its sources, in STL or
cloned from github.com/microsoft/STL), Wine's headers and DLLs, and for what is left scripts/windows/msvc. What comes
out is for this test, not for users: their plugin is built by Microsoft's compiler.

It needs apt, as windows.sh does, for clang-19, lld-19 and libwine-dev, and pip. All is written to target/windows-plugin.
TEXT
}

fail() { echo "plugin.sh: $*" >&2; exit 1; }

case ${1:-} in -h | --help) usage; exit 0 ;; esac
torch=${1:-2.11.0}
tag=${torch%.*}
tag=${tag/./_}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
checkout=$(cd "$here/../.." && pwd)
out=${CARGO_TARGET_DIR:-$checkout/target}/windows-plugin
profile=${PROFILE:-dev}
# Those of one torch are none for another.
objects=$out/objects-$torch
run=$out/run-$torch
mkdir -p "$objects/runtime" "$run"

packages=()
command -v clang-19 >/dev/null || packages+=(clang-19)
command -v lld-link-19 >/dev/null || packages+=(lld-19)
[[ -d /usr/include/wine/wine/msvcrt ]] || packages+=(libwine-dev)
if [[ ${#packages[@]} -gt 0 ]]; then
    [[ $(id -u) = 0 ]] || fail "these packages are missing: ${packages[*]}"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
fi
"$here/../windows.sh" setup

stl=${STL:-$out/STL}
[[ -d $stl/stl/inc ]] || git clone --quiet --depth 1 --branch vs-2022-17.8 https://github.com/microsoft/STL "$stl"
wheel=$out/torch-$torch
if [[ ! -e $wheel/torch/version.py ]]; then
    python3 -m pip download --quiet --platform win_amd64 --python-version 3.12 --only-binary=:all: --no-deps \
        --dest "$out" "torch==$torch"
    python3 -c 'import sys, zipfile; z = zipfile.ZipFile(sys.argv[1]); z.extractall(sys.argv[2], [name for name in
        z.namelist() if name.startswith(("torch/include/", "torch/lib/", "torch/version.py"))])' \
        "$out/torch-$torch"-*.whl "$wheel"
    rm "$out/torch-$torch"-*.whl
fi

# As clang-cl, with nothing of Microsoft's found by itself; /GS- for want of the runtime's checks.
flags=(--driver-mode=cl --target=x86_64-pc-windows-msvc -fms-compatibility-version=19.38 /X /nologo /std:c++20 /O1 /MD
    /EHsc /GS- /bigobj /permissive- /Zc:__cplusplus /DNOMINMAX -D_CRT_SECURE_NO_WARNINGS -D_USE_STD_VECTOR_ALGORITHMS=0
    -Wno-everything /I "$checkout/plugin")
for folder in "$here/msvc/include" "$stl/stl/inc" /usr/lib/llvm-19/lib/clang/19/include \
    /usr/include/wine/wine/msvcrt /usr/include/wine/wine/windows \
    "$wheel/torch/include" "$wheel/torch/include/torch/csrc/api/include"; do
    flags+=(-imsvc "$folder")
done

# PyTorch's headers take longer than all that includes them.
header=$here/msvc/precompiled.h
if [[ ! -e $objects/precompiled.pch || $header -nt $objects/precompiled.pch ]]; then
    echo "Precompiling PyTorch's headers"
    echo >"$objects/precompiled.cpp"
    clang-19 "${flags[@]}" "/FI$header" "/Yc$header" "/Fp$objects/precompiled.pch" \
        "/Fo$objects/precompiled.obj" /c -- "$objects/precompiled.cpp"
fi
newest_header=$(ls -t "$checkout"/plugin/*.h "$checkout"/plugin/*/*.h | head -1)
compile() { # FILE OBJECT
    [[ $2 -nt $1 && $2 -nt $newest_header && $2 -nt $objects/precompiled.pch ]] && return
    echo "Compiling ${1##*/}"
    clang-19 "${flags[@]}" "/FI$header" "/Yu$header" "/Fp$objects/precompiled.pch" "/Fo$2" /c -- "$1"
}
for file in "$checkout"/plugin/*.cpp "$checkout"/plugin/*/*.cpp; do
    name=${file#"$checkout"/plugin/}
    name=${name//\//_}
    compile "$file" "$objects/${name%.cpp}.obj"
done
compile "$here/smoke.cpp" "$run/smoke.obj"
clang-19 "${flags[@]}" "/Fo$objects/runtime/library.obj" /c -- "$here/msvc/runtime.cpp"
clang-19 "${flags[@]}" -DPROGRAM "/Fo$objects/runtime/program.obj" /c -- "$here/msvc/runtime.cpp"

cargo build --package dml-torch --lib --target x86_64-pc-windows-gnu --profile "$profile"
folder=$profile
[[ $profile = dev ]] && folder=debug
cp "$(dirname "$out")/x86_64-pc-windows-gnu/$folder/dml_torch.dll" "$run/"
libraries=()
for name in msvcp140 vcruntime140 vcruntime140_1 msvcp140_atomic_wait ucrtbase kernel32; do
    python3 "$here/msvc/import_library.py" "/usr/lib/x86_64-linux-gnu/wine/x86_64-windows/$name.dll" "$out/$name.lib"
    libraries+=("$out/$name.lib")
done
python3 "$here/msvc/import_library.py" "$run/dml_torch.dll" "$out/dml_torch.lib"
libraries+=("$wheel/torch/lib/c10.lib" "$wheel/torch/lib/torch_cpu.lib")
link() { lld-link-19 /nologo /machine:x64 /nodefaultlib "$@" "${libraries[@]}"; }
link /dll "/out:$run/torch_dml_$tag.dll" "$objects"/*.obj "$objects/runtime/library.obj" "$out/dml_torch.lib"
link /subsystem:console /entry:mainCRTStartup "/out:$run/smoke.exe" "$run/smoke.obj" \
    "$objects/precompiled.obj" "$objects/runtime/program.obj"
x86_64-w64-mingw32-gcc -shared -O2 -s -Wall -Wextra -Werror -o "$run/vcruntime140_threads.dll" "$here/msvc/threads.c"
ln -sf "$wheel"/torch/lib/{c10,torch_cpu,libiomp5md,libiompstubs5md,uv}.dll "$run/"
cd "$run"
# OpenMP asks for what Wine does not know of processors, and ends the program.
export KMP_AFFINITY=disabled OMP_NUM_THREADS=1
"$here/../windows.sh" run smoke.exe
