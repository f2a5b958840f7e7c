#!/usr/bin/env bash
# Pin every package with its hashes, naming no registry.
set -euo pipefail
cd "$(dirname "$0")/.."
uv=$(scripts/uv.sh)
"$uv" pip compile pyproject.toml --all-extras --group dev --python-version 3.11 \
  --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate \
  --quiet -o requirements.lock "$@"
"$uv" pip compile --group amqp10 --constraint requirements.lock --python-version 3.11 \
  --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate \
  --quiet -o requirements-amqp10.lock "$@"
