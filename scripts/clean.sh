#!/usr/bin/env bash
# Removes what make has made: environments, caches, builds. Records and configurations are never touched.
set -euo pipefail
cd -- "$(dirname -- "$0")/.."
home=/var/tmp/onrecord-$(pwd -P | tr -d '\n' | sha256sum | cut -c1-16)
if [ -d "$home" ] && [ ! -L "$home" ] && [ -O "$home" ]; then
    rm -rf -- "$home"
fi
rm -rf -- .venv .test-servers demo-tools build dist site .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
rm -rf -- benchmarks/peers/.env-* src/*.egg-info
find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf -- {} +
