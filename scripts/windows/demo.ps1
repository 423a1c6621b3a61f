# demo.ps1 WHEEL: makes an environment with PyTorch and torch-dml, checks the device, and trains a network on it.
param([Parameter(Mandatory = $true)][string]$Wheel)
$ErrorActionPreference = "Stop"

function Invoke-Checked {
    & $args[0] $args[1..($args.Count - 1)]
    if ($LASTEXITCODE -ne 0) { exit $LASTEXITCODE }
}

$Wheel = (Resolve-Path -LiteralPath $Wheel).Path
$venv = Join-Path $env:LOCALAPPDATA "torch-dml\venv"
$python = Join-Path $venv "Scripts\python.exe"
if (-not (Test-Path -LiteralPath $python)) {
    if (-not (Get-Command py -ErrorAction SilentlyContinue)) {
        throw "There is no Python. Install 3.10 or newer from https://www.python.org"
    }
    Invoke-Checked py -3 -m venv $venv
}
Invoke-Checked $python -m pip install --upgrade $Wheel "scikit-learn>=1.3"
Invoke-Checked $python -m torch_dml doctor
Invoke-Checked $python -m torch_dml demo
