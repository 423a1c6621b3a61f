@echo off
rem dml-robot.bat ARGUMENTS: makes a virtual environment the first time, installs dml-robot into it, and passes every
rem argument on to `python -m dml_robot`.
rem
rem   DML_ROBOT_VENV    where the environment is (beside this script: .venv-robot)
rem   DML_ROBOT_PYTHON  the Python that makes it (py -3, else python)
rem   DML_ROBOT_SOURCE  what pip installs (the checkout that this script is in, else torch-dml-robots)
setlocal
if not defined DML_ROBOT_VENV set "DML_ROBOT_VENV=%~dp0.venv-robot"
if not defined DML_ROBOT_SOURCE if exist "%~dp0..\pyproject.toml" (set "DML_ROBOT_SOURCE=%~dp0..") else (set "DML_ROBOT_SOURCE=torch-dml-robots")
set "python=%DML_ROBOT_VENV%\Scripts\python.exe"

rem The mark comes last, so an installation that was interrupted is done again.
if exist "%DML_ROBOT_VENV%\.dml-robot" goto run
if not defined DML_ROBOT_PYTHON (
    where py >nul 2>nul && (set "DML_ROBOT_PYTHON=py -3") || (set "DML_ROBOT_PYTHON=python")
)
%DML_ROBOT_PYTHON% --version >nul 2>nul
if errorlevel 1 (
    echo dml-robot: no Python found as '%DML_ROBOT_PYTHON%'; install Python 3.10 or newer, or set DML_ROBOT_PYTHON>&2
    exit /b 1
)
echo dml-robot: installing into %DML_ROBOT_VENV% (the first time only)>&2
if not exist "%python%" %DML_ROBOT_PYTHON% -m venv "%DML_ROBOT_VENV%" || exit /b 1
"%python%" -m pip install --quiet "%DML_ROBOT_SOURCE%" || exit /b 1
type nul > "%DML_ROBOT_VENV%\.dml-robot"

:run
"%python%" -m dml_robot %*
exit /b %errorlevel%
