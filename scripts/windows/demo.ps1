# demo.ps1 [WHEEL]: makes an environment with PyTorch and torch-dml, checks the device, and trains a network on it.
# torch-dml is the wheel that is named; else that for this Python among those beside this file; else the checkout that this
# file is in, which is built with Rust and Microsoft's C++ compiler.
param([string]$Wheel)
$ErrorActionPreference = "Stop"

function Invoke-Checked([scriptblock]$Command) {
    & $Command
    if ($LASTEXITCODE -ne 0) { exit $LASTEXITCODE }
}

$checkout = Join-Path $PSScriptRoot "..\.."
if ($Wheel) {
    $package = @((Resolve-Path -LiteralPath $Wheel).ProviderPath)
} elseif (Get-ChildItem -LiteralPath $PSScriptRoot -Filter "torch_dml-*.whl") {
    $package = @("--upgrade", "--no-index", "--find-links", $PSScriptRoot, "torch-dml")
} elseif (Test-Path -LiteralPath (Join-Path $checkout "pyproject.toml")) {
    $package = @($checkout)
} else {
    throw "There is no torch_dml-VERSION-py3-none-win_amd64.whl beside demo.ps1: put it there, or name it"
}

$venv = Join-Path $env:LOCALAPPDATA "torch-dml\venv"
$python = Join-Path $venv "Scripts\python.exe"
if (-not (Test-Path -LiteralPath $python)) {
    if (Get-Command py -ErrorAction SilentlyContinue) {
        Invoke-Checked { py -3 -m venv $venv }
    } elseif (Get-Command python -ErrorAction SilentlyContinue) {
        Invoke-Checked { python -m venv $venv }
    } else {
        throw "There is no Python. Install 3.10 or newer from https://www.python.org"
    }
}
& $python -c "import sys; sys.exit(sys.version_info < (3, 10))"
if ($LASTEXITCODE -ne 0) {
    throw "The Python in $venv is older than 3.10. Install a newer one, remove that folder, and start again"
}
Invoke-Checked { & $python -m pip install "torch>=2.11,<2.16" "rich>=13" "scikit-learn>=1.3" }
Invoke-Checked { & $python -m pip install --no-deps @package }
Invoke-Checked { & $python -m torch_dml doctor }
Invoke-Checked { & $python -m torch_dml demo }
