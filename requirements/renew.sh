#!/usr/bin/env bash
# Renew the locks (`make lock`): one for all Pythons and systems, with the hash of each file.
# Asks the package index that uv is set up with (UV_DEFAULT_INDEX) and writes its name nowhere.
# Argument: uv.
set -euo pipefail
uv=$(realpath -s "$1")
cd "$(dirname "$0")/.."
# A mirror may have a certificate of its own, of which pip knows already.
[ -z "${PIP_CERT:-}" ] || export SSL_CERT_FILE=${SSL_CERT_FILE:-$PIP_CERT}
compile() {
  local lock=requirements/$1.lock
  shift
  "$uv" pip compile -q --no-config --universal --python-version 3.11 --generate-hashes --upgrade \
    --no-emit-index-url --custom-compile-command "make lock" -o "$lock" "$@"
  if grep -n '://' "$lock"; then
    echo "$lock names a host" >&2
    exit 1
  fi
}
# All but torch: see base.in.
compile dev pyproject.toml requirements/base.in --extra ssh --extra s3 --extra gpu --extra kubernetes \
  --extra http --extra google --extra optuna --extra plot --extra nni --extra examples --extra dev
compile demo pyproject.toml requirements/base.in --extra plot --extra examples \
  -c requirements/dev.lock
compile tools requirements/tools.in
compile docs requirements/docs.in
