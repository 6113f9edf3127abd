#!/bin/sh
# Makes the environment with Ray that tests of its platform use: one virtual environment in a
# cache, of packages with fixed versions, which nothing else imports. Run as root.
#   sudo tests/system/enable_ray.sh
set -eu

version=2.60.0
folder=/var/cache/bequeath-tests/ray-$version

if [ "$(id -u)" != 0 ]; then
  echo "enable_ray.sh: run it as root: sudo $0" >&2
  exit 1
fi
if "$folder/bin/python" -c 'import ray, grpc' 2>/dev/null; then
  echo "enable_ray.sh: $folder is there"
  exit 0
fi
python=""
for name in python3.11 python3.12 python3.13 python3; do
  if "$name" -c 'import sys, venv; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' \
    2>/dev/null; then
    python=$name
    break
  fi
done
if [ -z "$python" ]; then
  echo "enable_ray.sh: Ray $version needs a Python from 3.10 to 3.13; its tests are left out" >&2
  exit 0
fi
# In its place at once, since its programs name their Python by its path; a half of one is no Ray
# that can be imported, and is made again.
rm -rf "$folder"
mkdir -p "${folder%/*}"
"$python" -m venv "$folder"
# Of "client": what reaches a cluster from outside. No dashboard, and no Tune.
if ! "$folder/bin/python" -m pip --disable-pip-version-check -q install "ray[client]==$version"; then
  rm -rf "$folder"
  echo "enable_ray.sh: pip could not install Ray $version; its tests are left out" >&2
  exit 0
fi
echo "enable_ray.sh: $folder is made; no service was started"
