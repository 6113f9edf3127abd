#!/bin/sh
# Makes the environments with real trackers that judge the sinks, with NNI, whose client and page
# judge its REST, with the Jupyter that stands before the page and runs notebooks, with pandas and
# pyarrow, and with Ray Tune and Syne Tune, whose programs stand beside ours: one virtual environment
# each in a cache, of packages with fixed versions.
# Run as root, on demand: MLflow alone takes minutes and most of a gigabyte, and so do the last two.
#   sudo tests/system/enable_trackers.sh               all of them
#   sudo tests/system/enable_trackers.sh tensorboard   one of tensorboard, wandb, mlflow, nni, jupyter,
#                                                      frames, raytune, synetune
set -eu

cache=/var/cache/bequeath-tests

if [ "$(id -u)" != 0 ]; then
  echo "enable_trackers.sh: run it as root: sudo $0" >&2
  exit 1
fi
python=""
for name in python3.11 python3.12 python3.13 python3; do
  if "$name" -c 'import sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
    2>/dev/null; then
    python=$name
    break
  fi
done
if [ -z "$python" ]; then
  echo "enable_trackers.sh: trackers need a Python from 3.11 to 3.13; their tests are left out" >&2
  exit 0
fi

# In its place at once, since its programs name their Python by its path; a half of one cannot be
# imported, and is made again.
make_one() {
  folder=$cache/$1-$2
  if "$folder/bin/python" -c "import $3" 2>/dev/null; then
    echo "enable_trackers.sh: $folder is there"
    return
  fi
  rm -rf "$folder"
  mkdir -p "$cache"
  "$python" -m venv "$folder"
  shift 3
  if ! "$folder/bin/python" -m pip --disable-pip-version-check -q install "$@"; then
    rm -rf "$folder"
    echo "enable_trackers.sh: pip could not install $1; its tests are left out" >&2
    return
  fi
  echo "enable_trackers.sh: $folder is made; no service was started"
}

for tracker in ${*:-tensorboard wandb mlflow nni jupyter frames raytune synetune}; do
  case $tracker in
    # Its loader wants pkg_resources, which newer setuptools lack.
    tensorboard) make_one tensorboard 2.21.0 tensorboard "tensorboard==2.21.0" "setuptools<81" ;;
    wandb) make_one wandb 0.31.0 wandb "wandb==0.31.0" ;;
    mlflow) make_one mlflow 3.17.2 mlflow "mlflow==3.17.2" ;;
    # Its page and its client judge the port of its REST; it, too, wants pkg_resources.
    nni) make_one nni 3.0 nni "nni==3.0" "setuptools<81" ;;
    # Stands before the page with its proxy, and runs notebooks in its kernels: their version.
    jupyter)
      make_one jupyter 7.4.0 "ipykernel, jupyter_server_proxy, nbclient" "ipykernel==7.4.0" \
        "jupyter-server-proxy==4.6.0" "jupyter_server==2.21.1" "nbclient==0.11.0"
      ;;
    # Tests borrow them. Not among our own packages, since scikit-learn imports pandas when it is
    # there: half a second and tens of megabytes for each of a thousand trials.
    frames) make_one frames 3.1.1 "pandas, pyarrow" "pandas==3.1.1" "pyarrow==26.0.1" ;;
    # Of examples/coming_from/theirs: Ray Tune with the sampler that its program takes, and Syne Tune
    # with what its trials import.
    raytune) make_one raytune 2.60.0 "ray.tune, optuna" "ray[tune]==2.60.0" "optuna==5.0.0" ;;
    synetune)
      make_one synetune 0.16.0 "syne_tune, sklearn, torch" "syne-tune==0.16.0" "scikit-learn==1.9.1" \
        "torch==2.13.0"
      ;;
    *) echo "enable_trackers.sh: there is no tracker '$tracker'" >&2; exit 1 ;;
  esac
done
