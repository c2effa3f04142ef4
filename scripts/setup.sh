#!/usr/bin/env bash
# Makes the environment that everything else runs in: .venv with onrecord and its extras, at the pinned versions.
#
# Run by `make setup`, and with --without-test-servers by targets that need no test server; a second run without
# changes does nothing. Beside it comes demo-tools, the real tool server of the demonstration. As root it also sees to
# it that other uids can run the interpreter, because demo and tests start each role under a uid of its own. The rules
# and their reasons: running.md R-03.
set -euo pipefail

cd -- "$(dirname -- "$0")/.."
checkout=$(pwd -P)
extras="fast,mcp,dev"
umask 022
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_NO_WARN_SCRIPT_LOCATION=1

say() { printf 'setup: %s\n' "$*" >&2; }
fail() {
    say "$1"
    [ -z "${2:-}" ] || printf '  next: %s\n' "$2" >&2
    exit 3
}
is_root() { [ "$(id -u)" -eq 0 ]; }

# Says whether every directory down to $1 may be passed by other users.
is_open() {
    local part=$1
    while :; do
        case $(stat -c %A -- "$part") in
            ?????????[xt]) ;;
            *) return 1 ;;
        esac
        [ "$part" != / ] || return 0
        part=$(dirname -- "$part")
    done
}

# Prints "ok" or "ok no-ensurepip" for an interpreter that can be used, else the reason why not.
judge() {
    "$1" -I "$checkout/scripts/judge_python.py" "$2" 2>/dev/null || echo "does not run"
}

candidates() {
    [ -z "${PYTHON:-}" ] || command -v -- "$PYTHON" || true
    command -v python3 || true
    local minor
    for minor in 14 13 12 11; do
        [ ! -x "/usr/bin/python3.$minor" ] || echo "/usr/bin/python3.$minor"
    done
    local other
    for other in /usr/local/bin/python3 /usr/local/bin/python3.[0-9] /usr/local/bin/python3.[0-9][0-9]; do
        [ ! -x "$other" ] || echo "$other"
    done
}

# Sets python and ensurepip to the first candidate that fits; $1 is "reachable" or "any".
python="" ensurepip="" refused=""
choose() {
    local one verdict
    refused=""
    while read -r one; do
        verdict=$(judge "$one" "$1")
        case $verdict in
            ok) python=$one ensurepip=yes && return 0 ;;
            "ok no-ensurepip") python=$one ensurepip=no && return 0 ;;
            *) refused="$refused    $one: $verdict"$'\n' ;;
        esac
    done < <(candidates | awk '!seen[$0]++')
    return 1
}

# The pip of another interpreter, for an environment without its own.
foreign_pip() {
    local one
    while read -r one; do
        if "$one" -m pip --python "$python" --version >/dev/null 2>&1; then
            echo "$one"
            return 0
        fi
    done < <(candidates | awk '!seen[$0]++')
    return 1
}

install_system_python() {
    command -v apt-get >/dev/null || return 1
    say "no interpreter that other uids can run; installing python3 and python3-venv"
    DEBIAN_FRONTEND=noninteractive apt-get -qq update >/dev/null &&
        DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends python3 python3-venv >/dev/null
}

# The last resort: a copy of an interpreter where other uids reach it. The copy of a shared build still names the old
# place of its libpython, so every process needs LD_LIBRARY_PATH then; make takes it from .venv/onrecord.mk.
library_path=""
copy_python() {
    local prefix version copy verdict
    prefix=$("$python" -I -c 'import sys; print(sys.base_prefix)') || return 1
    version=$("$python" -I -c 'import sys; print("python%d.%d" % sys.version_info[:2])') || return 1
    make_outside || return 1
    copy=$outside/python
    if [ ! -x "$copy/bin/$version" ]; then
        say "copying $prefix to $copy"
        rm -rf -- "$copy"
        mkdir -- "$copy"
        (cd -- "$prefix" && tar -cf - --exclude=site-packages --exclude=test --exclude=__pycache__ \
            bin lib $([ ! -d include ] || echo include)) | tar -xf - --no-same-owner -C "$copy" || return 1
        chmod -R go=rX -- "$copy"
        mkdir -p -- "$copy/lib/$version/site-packages"
    fi
    verdict=$(judge "$copy/bin/$version" reachable)
    if [ "${verdict%% *}" != ok ]; then
        library_path=$copy/lib
        export LD_LIBRARY_PATH=$library_path
        verdict=$(judge "$copy/bin/$version" reachable)
    fi
    case $verdict in
        ok) python=$copy/bin/$version ensurepip=yes ;;
        "ok no-ensurepip") python=$copy/bin/$version ensurepip=no ;;
        *)
            unset LD_LIBRARY_PATH
            library_path=""
            say "the copy cannot be used: $verdict"
            return 1
            ;;
    esac
}

# Sets outside to the directory of this checkout that other uids reach, and makes it, exclusively.
outside=""
make_outside() {
    outside=/var/tmp/onrecord-$(printf %s "$checkout" | sha256sum | cut -c1-16)
    if ! mkdir -m 755 -- "$outside" 2>/dev/null; then
        # It was made by an earlier run, or by somebody who waits for us.
        [ "$(stat -c '%F %u %a' -- "$outside")" = "directory $(id -u) 755" ] ||
            fail "$outside is not a directory of ours with mode 0755" "look at it, remove it, and run make setup again"
    fi
}

choose_python() {
    if ! is_root; then
        choose any || fail "no Python 3.11 or later with venv, ssl and sqlite3 was found:"$'\n'"$refused" \
            "install one, or name it: make setup PYTHON=/path/to/python3"
        return 0
    fi
    choose reachable && return 0
    if install_system_python && choose reachable; then
        return 0
    fi
    say "no interpreter can be run by other uids:"$'\n'"${refused%$'\n'}"
    if choose any && copy_python; then
        return 0
    fi
    choose any || fail "no Python 3.11 or later with venv was found" "install python3 and python3-venv"
    say "going on with $python: tests with several uids will be skipped, and the demo must run as an ordinary user"
}

# Where the environment lies: in the checkout, or where other uids reach it.
home="" editable="" why_there=""
choose_place() {
    local closed=""
    if is_root; then
        if ! is_open "$checkout"; then
            closed="the checkout is closed to other uids"
        elif [ -n "$(find src \( -type d ! -perm -o=rx -o -type f ! -perm -o=r \) -not -path '*/__pycache__*' -print -quit)" ]; then
            closed="files of the checkout are closed to other uids"
        fi
    fi
    if [ -z "$closed" ]; then
        home=$checkout editable=yes
        return 0
    fi
    editable=no
    make_outside
    home=$outside
    why_there=$closed
}

# Everything that an unchanged environment depends on.
fingerprint() {
    {
        echo "$python" "$checkout" "$editable" "$extras"
        cat pyproject.toml constraints.txt scripts/setup.sh
        if [ "$editable" = no ]; then
            find src -type f -not -path '*/__pycache__*' -not -path '*.egg-info/*' -print0 | sort -z | xargs -0 sha256sum
        fi
    } | sha256sum | cut -d' ' -f1
}

changed=""
make_environment() {
    local venv=$home/venv
    [ "$editable" = no ] || venv=$checkout/.venv
    if [ "$venv" != "$checkout/.venv" ]; then
        [ -L .venv ] || rm -rf -- .venv
        ln -sfn -- "$venv" .venv
    elif [ -L .venv ]; then
        rm -- .venv
    fi
    local stamp=$venv/onrecord-setup mark
    mark=$(fingerprint)
    if [ -x "$venv/bin/onrecord" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$mark" ]; then
        return 0
    fi
    changed=yes
    [ -z "$why_there" ] || say "$why_there; the environment is in $home"
    rm -f -- "$stamp"
    if [ -e "$venv" ] && [ "$(readlink -f -- "$venv/bin/python")" != "$(readlink -f -- "$(real_python)")" ]; then
        rm -rf -- "$venv"
    fi
    local -a pip
    if [ "$ensurepip" = yes ]; then
        [ -x "$venv/bin/pip" ] || "$python" -I -m venv --clear "$venv"
        pip=("$venv/bin/python" -m pip)
    else
        local other
        [ -x "$venv/bin/python" ] || "$python" -I -m venv --clear --without-pip "$venv"
        other=$(foreign_pip) || fail "neither ensurepip nor the pip of another interpreter is there" \
            "install python3-venv or python3-pip"
        pip=("$other" -m pip --python "$venv/bin/python")
    fi
    say "installing into $venv with $("$venv/bin/python" -V)"
    install_package "${pip[@]}" || fail "the packages could not be installed" "see the lines above; is the package index reachable?"
    rm -f -- "$venv/onrecord.mk"
    [ -z "$library_path" ] || echo "export LD_LIBRARY_PATH := $library_path" >"$venv/onrecord.mk"
    prove "$venv/bin/python"
    echo "$mark" >"$stamp"
}

# The real tool server of the demonstration, in an environment of its own because it brings an SDK of its own. Without
# it the demonstration says that it leaves one step out.
make_demo_tools() {
    local tools=$home/demo-tools wanted=$checkout/src/onrecord/examples/demo/tools.txt mark
    local -a venv=("$python" -I -m venv) pip=("$tools/bin/python" -m pip)
    mark=$({ echo "$python" && cat -- "$wanted"; } | sha256sum | cut -d' ' -f1)
    [ "$(cat "$tools/onrecord-setup" 2>/dev/null)" != "$mark" ] || return 0
    rm -rf -- "$tools"
    if [ "$ensurepip" = no ]; then
        venv+=(--without-pip)
        pip=("$(foreign_pip || echo "$python")" -m pip --python "$tools/bin/python")
    fi
    if "${venv[@]}" "$tools" && "${pip[@]}" install -qq --requirement "$wanted"; then
        echo "$mark" >"$tools/onrecord-setup"
    else
        say "the tool server of the demonstration could not be installed; \`make demo\` will leave that step out"
    fi
}

real_python() { "$python" -I -c 'import sys; print(getattr(sys, "_base_executable", sys.executable))'; }

install_package() {
    "$@" install -qq --constraint constraints.txt setuptools || return 1
    if [ "$editable" = yes ]; then
        "$@" install -qq --no-build-isolation --constraint constraints.txt --editable ".[$extras]"
        return
    fi
    # Built from a copy, so that a closed checkout gets no build directory and an old one plays no part.
    local copy status=0
    copy=$(mktemp -d)
    cp -R -- pyproject.toml README.md LICENSE src "$copy"
    find "$copy" -name '*.egg-info' -prune -exec rm -rf -- {} +
    chmod -R go=rX -- "$copy"
    "$@" install -qq --no-build-isolation --constraint constraints.txt "$copy[$extras]" &&
        "$@" install -qq --no-build-isolation --no-deps --force-reinstall "$copy" || status=1
    rm -rf -- "$copy"
    return "$status"
}

prove() {
    "$1" -I -c 'import ssl, sqlite3, onrecord' || fail "the new environment cannot import ssl, sqlite3 and onrecord"
    if is_root; then
        (cd / && "$1" -I -m onrecord.base.uid_blocks) ||
            say "tests with several uids will be skipped, and the demo must run as an ordinary user (user mode)"
    fi
}

choose_python
choose_place
make_environment
make_demo_tools
[ -z "$changed" ] || say "ready: .venv/bin/onrecord"
[ "${1:-}" = --without-test-servers ] || scripts/test-servers.sh "$home" "$python" || true
