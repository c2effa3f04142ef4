#!/usr/bin/env bash
# Runs the tests; the arguments are pytest's.
#
# Started as root, many tests run parts of themselves under other uids, which must be able to read the test tree. In a
# checkout that is closed to them, an open copy beside the environment is tested instead (running.md R-03).
set -euo pipefail

cd -- "$(dirname -- "$0")/.."
checkout=$(pwd -P)
home=$(dirname -- "$(realpath .venv)")
python=$home/venv/bin/python
[ "$home" != "$checkout" ] || python=$checkout/.venv/bin/python

if [ "$home" != "$checkout" ]; then
    copy=$home/checkout
    printf 'tests: the checkout is closed to other uids; testing its copy %s\n' "$copy" >&2
    rm -rf -- "$copy"
    mkdir -p -- "$copy"
    tar --exclude=./.git --exclude=./.venv --exclude=./.test-servers --exclude='*.egg-info' --exclude=__pycache__ \
        --exclude='./benchmarks/peers/.env-*' -cf - . | tar -C "$copy" --no-same-owner -xf -
    chmod -R go=rX -- "$copy"
    export ONRECORD_TEST_SERVERS=${ONRECORD_TEST_SERVERS:-$home/.test-servers}
    for data in "$checkout/shared/data" "$checkout/../shared/data"; do
        [ -n "${ONRECORD_SHARED_DATA:-}" ] || [ ! -d "$data" ] || export ONRECORD_SHARED_DATA=$data
    done
    cd -- "$copy"
fi
# Tests of one demonstration stay on one worker (--dist loadgroup); ONRECORD_TEST_WORKERS=0 runs all in one process.
exec "$python" -m pytest -n "${ONRECORD_TEST_WORKERS:-auto}" --dist loadgroup "$@"
