# dml-robot.ps1 ARGUMENTS: makes a virtual environment the first time, installs dml-robot into it, and passes every
# argument on to `python -m dml_robot`.
#
#   DML_ROBOT_VENV    where the environment is (beside this script: .venv-robot)
#   DML_ROBOT_PYTHON  the Python that makes it (python)
#   DML_ROBOT_SOURCE  what pip installs (the checkout that this script is in, else torch-dml-robots)
$ErrorActionPreference = "Stop"
$venv = if ($env:DML_ROBOT_VENV) { $env:DML_ROBOT_VENV } else { Join-Path $PSScriptRoot ".venv-robot" }
$base = if ($env:DML_ROBOT_PYTHON) { $env:DML_ROBOT_PYTHON } else { "python" }
$checkout = Join-Path $PSScriptRoot ".."
$source = if ($env:DML_ROBOT_SOURCE) { $env:DML_ROBOT_SOURCE }
    elseif (Test-Path (Join-Path $checkout "pyproject.toml")) { $checkout }
    else { "torch-dml-robots" }
$folder = if ($env:OS -eq "Windows_NT") { "Scripts" } else { "bin" }
$python = Join-Path (Join-Path $venv $folder) "python"
$mark = Join-Path $venv ".dml-robot"

# The mark comes last, so an installation that was interrupted is done again.
if (-not (Test-Path $mark)) {
    if (-not (Get-Command $base -ErrorAction SilentlyContinue)) {
        [Console]::Error.WriteLine("dml-robot: no Python found as '$base'; install Python 3.10 or newer, or set DML_ROBOT_PYTHON")
        exit 1
    }
    [Console]::Error.WriteLine("dml-robot: installing into $venv (the first time only)")
    if (-not (Get-Command $python -ErrorAction SilentlyContinue)) {
        & $base -m venv $venv
        if ($LASTEXITCODE -ne 0) { exit $LASTEXITCODE }
    }
    & $python -m pip install --quiet $source
    if ($LASTEXITCODE -ne 0) { exit $LASTEXITCODE }
    New-Item -ItemType File -Path $mark -Force | Out-Null
}
& $python -m dml_robot @args
exit $LASTEXITCODE
