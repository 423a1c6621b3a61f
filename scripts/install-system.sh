#!/usr/bin/env bash
# install-system.sh build|test|validate|release: installs the system packages that building needs, or testing too, or
# looking on with Vulkan's validation layer too, or building the wheels of every architecture, through apt, where it may: as root or with a sudo that asks for no password.
# Otherwise it prints the command. It does nothing where nothing is missing.
set -euo pipefail
cd "$(dirname "$0")"

purpose=${1:-build}
python=${PYTHON:-python3}
packages=()

have() { command -v "$1" >/dev/null 2>&1; }

if ! have cargo; then
    echo "error: cargo is missing: install Rust from https://rustup.rs" >&2
    exit 1
fi
if ! have "$python"; then
    packages+=(python3 python3-venv)
elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
    echo "error: $python is $("$python" --version): torch-dml needs Python 3.10 or newer; set PYTHON" >&2
    exit 1
elif ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    packages+=(python3-venv)
fi
# Rust links with cc, which comes with g++.
if [ -z "${CXX:-}" ] && ! { have cc && { have g++ || have c++ || have clang++; }; }; then
    packages+=(g++)
fi
has_vulkan() { "$python" vulkan_devices.py >/dev/null 2>&1; }
if ! have "$python" || ! has_vulkan; then
    packages+=(libvulkan1 mesa-vulkan-drivers)
fi
if [[ $purpose = test || $purpose = validate ]] && ! have spirv-val; then
    packages+=(spirv-tools)
fi
has_layer() {
    local folder
    for folder in /etc /usr/share /usr/local/share; do
        [ -e $folder/vulkan/explicit_layer.d/VkLayer_khronos_validation.json ] && return 0
    done
    return 1
}
if [ "$purpose" = validate ] && [ -z "${VK_LAYER_PATH:-}" ] && ! has_layer; then
    packages+=(vulkan-validationlayers)
fi
if [ "$purpose" = release ]; then
    for arch in x86-64 aarch64; do
        have "${arch/-/_}-linux-gnu-g++" || packages+=("g++-$arch-linux-gnu")
    done
    have git || packages+=(git)
    # Rust's standard library of the architecture that this machine does not have.
    rustup --quiet target add x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu
fi
[ ${#packages[@]} -eq 0 ] && exit 0

if ! have apt-get; then
    cat >&2 <<TEXT
error: these are missing, under the names that Debian gives them: ${packages[*]}
  Fedora: sudo dnf install gcc-c++ vulkan-loader mesa-vulkan-drivers spirv-tools vulkan-validation-layers
  Arch:   sudo pacman -S gcc vulkan-icd-loader vulkan-swrast spirv-tools vulkan-validation-layers
A GPU needs its own Vulkan driver: see docs/guide/install-linux.md.
TEXT
    exit 1
fi
if [ "$(id -u)" = 0 ]; then
    root=()
elif have sudo && sudo -n true 2>/dev/null; then
    root=(sudo -n)
else
    echo "error: system packages are missing. Install them and start again:" >&2
    echo "  sudo apt-get install -y ${packages[*]}" >&2
    exit 1
fi
echo "Installing ${packages[*]}"
"${root[@]}" apt-get update -qq
"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
if ! has_vulkan; then
    echo "warning: there is still no Vulkan device; \`python -m torch_dml doctor\` tells why" >&2
fi
