@echo off
rem demo.bat [WHEEL]: makes an environment with PyTorch and torch-dml, checks the device, and trains a network on it.
rem torch-dml is the wheel that is named; else that for this Python among those beside this file; else the checkout that this
rem file is in, which is built with Rust and Microsoft's C++ compiler.
setlocal
set "SOURCE="
set "VENV=%LOCALAPPDATA%\torch-dml\venv"
set "PYTHON=%VENV%\Scripts\python.exe"
call :demo %*
set "STATUS=%ERRORLEVEL%"
rem Started by a double click, the window would close with what it says.
if "%~1"=="" pause
exit /b %STATUS%

:demo
if "%~1"=="" goto find
set "SOURCE=%~f1"
if exist "%SOURCE%" goto environment
echo error: there is no "%SOURCE%"
exit /b 1

:find
if exist "%~dp0torch_dml-*.whl" goto environment
set "SOURCE=%~dp0..\.."
if exist "%SOURCE%\pyproject.toml" goto environment
echo error: there is no torch_dml-VERSION-py3-none-win_amd64.whl beside %~nx0: put it there, or name it
exit /b 2

:environment
if exist "%PYTHON%" goto install
py -3 -m venv "%VENV%"
if not exist "%PYTHON%" python -m venv "%VENV%"
if exist "%PYTHON%" goto install
echo error: there is no Python. Install 3.10 or newer from https://www.python.org
exit /b 1

:install
"%PYTHON%" -c "import sys; sys.exit(sys.version_info < (3, 10))"
if errorlevel 1 (
    echo error: the Python in "%VENV%" is older than 3.10. Install a newer one, remove that folder, and start again
    exit /b 1
)
"%PYTHON%" -m pip install "torch>=2.11,<2.16" "rich>=13" "scikit-learn>=1.3"
if errorlevel 1 exit /b 1
if defined SOURCE (
    "%PYTHON%" -m pip install --no-deps "%SOURCE%"
) else (
    "%PYTHON%" -m pip install --no-deps --upgrade --no-index --find-links "%~dp0." torch-dml
)
if errorlevel 1 exit /b 1
"%PYTHON%" -m torch_dml doctor
if errorlevel 1 exit /b 1
"%PYTHON%" -m torch_dml demo
exit /b %ERRORLEVEL%
