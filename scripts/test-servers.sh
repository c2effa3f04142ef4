#!/usr/bin/env bash
# Installs the real tool servers that tests/live puts behind the guard, into .test-servers (never into .venv).
#
# Called by setup.sh with the directory that other uids can reach and the interpreter. What cannot be had is said and
# skipped: the tests that need it then skip too.
set -uo pipefail

cd -- "$(dirname -- "$0")/.."
home=${1:-$(pwd -P)} python=${2:-python3}
place=$home/.test-servers
umask 022
export PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf 'test servers: %s\n' "$*" >&2; }

mkdir -p -- "$place"
[ "$home" = "$(pwd -P)" ] || ln -sfn -- "$place" .test-servers

# environment NAME FILE: a virtual environment $place/NAME with the requirements of FILE.
environment() {
    local where=$place/$1 mark pip
    mark=$(sha256sum <"$2" | cut -c1-16)
    [ "$(cat "$where/onrecord-servers" 2>/dev/null)" != "$mark" ] || return 0
    rm -rf -- "$where"
    if "$python" -I -c 'import ensurepip' 2>/dev/null; then
        "$python" -I -m venv "$where" && pip=("$where/bin/python" -m pip)
    else
        "$python" -I -m venv --without-pip "$where" && pip=(python3 -m pip --python "$where/bin/python")
    fi
    if "${pip[@]}" install -qq --requirement "$2"; then
        echo "$mark" >"$where/onrecord-servers"
    else
        say "what $2 asks for could not be installed; its tests will be skipped"
    fi
}

environment venv tests/live/servers.txt
environment fastmcp tests/live/fastmcp.txt

mapfile -t packages <tests/live/servers-node.txt
mark=$(sha256sum <tests/live/servers-node.txt | cut -c1-16)
if [ "$(cat "$place/node/onrecord-servers" 2>/dev/null)" != "$mark" ]; then
    if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
        say "npm or node is missing; the tests with servers from npm will be skipped"
    elif rm -rf -- "$place/node" && mkdir -p -- "$place/node" && npm install --silent --no-save --no-package-lock \
        --no-audit --no-fund --prefix "$place/node" "${packages[@]}" >/dev/null; then
        echo "$mark" >"$place/node/onrecord-servers"
    else
        say "what tests/live/servers-node.txt asks for could not be installed; its tests will be skipped"
    fi
fi
