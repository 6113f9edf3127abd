"""What a trial pays for: importing the weight store loads none of the heavy libraries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_SCRIPT = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(f"trial_runtime.weights.{name}")
heavy = {"numpy", "torch", "safetensors", "blake3"} & set(sys.modules)
sys.exit(", ".join(sorted(heavy)) or 0)
"""


def test_no_module_loads_a_heavy_library_at_import() -> None:
    root = Path("trial_runtime/weights")
    files = [path.relative_to(root) for path in root.rglob("*.py")]
    modules = sorted(".".join(path.with_suffix("").parts) for path in files if path.stem[0] != "_")
    assert "saving.saving" in modules
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, *modules], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_public_name_is_there() -> None:
    import trial_runtime.weights as weights

    for name in weights.__all__:
        assert getattr(weights, name) is not None
    assert set(weights.__all__) <= set(dir(weights))
