"""``PYTHONPATH=$(python -m trial_runtime.nni_shim) python trial.py``: a trial of NNI's by hand."""

from __future__ import annotations

import sys

from trial_runtime.nni_shim import folder

if __name__ == "__main__":
    sys.stdout.write(f"{folder()}\n")
