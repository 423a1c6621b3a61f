@echo off
rem demo.bat WHEEL: makes an environment with PyTorch and torch-dml, checks the device, and trains a network on it.
setlocal
if "%~1"=="" (
    echo usage: %~nx0 torch_dml-VERSION-py3-none-win_amd64.whl
    exit /b 2
)
set "WHEEL=%~f1"
set "VENV=%LOCALAPPDATA%\torch-dml\venv"
if not exist "%WHEEL%" (
    echo error: there is no %WHEEL%
    exit /b 1
)
if not exist "%VENV%\Scripts\python.exe" (
    py -3 -m venv "%VENV%" || (
        echo error: there is no Python. Install 3.10 or newer from https://www.python.org
        exit /b 1
    )
)
"%VENV%\Scripts\python.exe" -m pip install --upgrade "%WHEEL%" "scikit-learn>=1.3" || exit /b 1
"%VENV%\Scripts\python.exe" -m torch_dml doctor || exit /b 1
"%VENV%\Scripts\python.exe" -m torch_dml demo
