#!/bin/sh
# Sets up this checkout (see bootstrap.py beside this file), with $PYTHON or the newest Python that it knows.
set -eu
unset PYTHONPATH PYTHONHOME PYTHONSAFEPATH
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)

fits() {
    command -v "$1" >/dev/null 2>&1 && "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

if [ -n "${PYTHON:-}" ]; then
    fits "$PYTHON" && exec "$PYTHON" "$here/bootstrap.py" "$@"
    echo "set-up: PYTHON is $PYTHON, which is not a Python 3.11 or later." >&2
    exit 1
fi
for python in python3.13 python3.12 python3.11 python3; do
    fits "$python" && exec "$python" "$here/bootstrap.py" "$@"
done
echo "set-up: Tandem needs Python 3.11 or later. Please run this first: sudo apt-get install python3 python3-venv" >&2
exit 1
