#!/usr/bin/env bash
# Print the path of a uv that runs, installing one into .tools/ where there is none.
set -euo pipefail
cd "$(dirname "$0")/.."
if command -v uv >/dev/null 2>&1; then command -v uv; exit 0; fi
if [ ! -x .tools/bin/uv ]; then
  echo "setup: installing uv into .tools/" >&2
  python3 -m venv .tools >&2
  .tools/bin/pip install --quiet --disable-pip-version-check 'uv>=0.9,<1' >&2
fi
echo "$PWD/.tools/bin/uv"
