#!/bin/sh
# dml-robot.sh ARGUMENTS: makes a virtual environment the first time, installs dml-robot into it, and passes every
# argument on to `python -m dml_robot`.
#
#   DML_ROBOT_VENV    where the environment is (beside this script: .venv-robot)
#   DML_ROBOT_PYTHON  the Python that makes it (python3)
#   DML_ROBOT_SOURCE  what pip installs (the checkout that this script is in, else torch-dml-robots)
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
venv=${DML_ROBOT_VENV:-$here/.venv-robot}
base=${DML_ROBOT_PYTHON:-python3}
if [ -f "$here/../pyproject.toml" ]; then source=$here/..; else source=torch-dml-robots; fi
source=${DML_ROBOT_SOURCE:-$source}
python=$venv/bin/python

if ! command -v "$base" >/dev/null 2>&1 && [ ! -x "$python" ]; then
    echo "dml-robot: no Python found as '$base'; install Python 3.10 or newer, or set DML_ROBOT_PYTHON" >&2
    exit 1
fi
# The mark comes last, so an installation that was interrupted is done again.
if [ ! -f "$venv/.dml-robot" ]; then
    echo "dml-robot: installing into $venv (the first time only)" >&2
    [ -x "$python" ] || "$base" -m venv "$venv"
    "$python" -m pip install --quiet "$source"
    : > "$venv/.dml-robot"
fi
exec "$python" -m dml_robot "$@"
