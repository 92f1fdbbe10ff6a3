#!/bin/sh
# Writes the two lock files anew from pyproject.toml and packaging/engine/tools.in: exact versions, and the hash of
# every file that may be installed, for Python 3.11 and later on Linux. Needs the network; run it by hand, look at the
# difference, and commit it. `packaging/lock/update.sh --upgrade` takes the newest versions that pyproject.toml allows;
# without it, versions stay as they are where they can.
set -eu
cd "$(dirname "$0")/../.."
UV_VERSION=0.13.9

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
"${PYTHON:-python3}" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check "uv==$UV_VERSION"

lock() { # lock OUTPUT INPUT [OPTION...]
    output=$1
    shift
    "$work/venv/bin/uv" --quiet pip compile --universal --python-version 3.11 --generate-hashes \
        --no-header --no-annotate --output-file "$output" "$@" >"$work/uv.log" 2>&1 ||
        { cat "$work/uv.log" >&2; exit 1; }
}

# The engine is not in this lock: it is built from source, see packaging/engine. What it needs at run time is.
# hatchling is here because an editable install without build isolation uses the one in the virtual environment.
printf 'hatchling==1.33.0\n' >"$work/build.in"
lock packaging/lock/requirements.txt pyproject.toml "$work/build.in" --extra dev \
    --no-emit-package llama-cpp-python "$@"
lock packaging/engine/tools.txt packaging/engine/tools.in "$@"
