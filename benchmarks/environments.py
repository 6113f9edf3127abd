"""A virtual environment for each peer, below ``benchmarks/envs``, made when it is missing.

Peers and bequeath want different versions of the same packages, so none is installed beside
the other. Every environment is the work of one ``pip install`` with all its pins, as a pin
that was honoured first would be overruled by the next command's wishes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ENVIRONMENTS = Path(os.environ.get("BEQUEATH_BENCH_ENVS", Path(__file__).parent / "envs"))
# The same torch as in constraints.txt: newer ones bring gigabytes of CUDA packages.
REQUIREMENTS = {
    "optuna": ("optuna==5.0.0", "cmaes==0.13.1", "scipy==1.17.1"),
    "optuna_dashboard": ("optuna==5.0.0", "optuna-dashboard==0.21.0"),
    "ray": ("ray[tune]==2.60.0",),
    "synetune": ("syne-tune==0.16.0",),
    "neps": ("torch==2.13.0", "neural-pipeline-search==0.17.0"),
}
INSTALL_LIMIT_S = 900.0

#: Not a peer's: the environment that this runs in, which has Optuna, and torch for its Gaussian
#: processes, in the versions of ``constraints.txt``.
OWN = "own"


class EnvironmentFailed(Exception):
    """Raised when an environment could not be made; says why in one line."""


def python_of(name: str) -> Path:
    """The interpreter of a peer's environment; makes the environment first where there is none.

    Blocks for minutes when it has to install.

    Raises:
        EnvironmentFailed: pip or venv failed; what was half made is gone again.
    """
    if name == OWN:
        return Path(sys.executable)
    folder = ENVIRONMENTS / name
    python = folder / "bin" / "python"
    made_of = folder / "requirements.txt"
    wanted = "".join(f"{one}\n" for one in REQUIREMENTS[name])
    if not python.exists():
        print(f"making {folder} with {', '.join(REQUIREMENTS[name])}", file=sys.stderr)
        try:
            venv.create(folder, with_pip=True, clear=True)
            _install(python, REQUIREMENTS[name])
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        made_of.write_text(wanted)
    elif not made_of.exists() or made_of.read_text() != wanted:
        _install(python, REQUIREMENTS[name])  # made when other pins were wanted
        made_of.write_text(wanted)
    return python


def _install(python: Path, requirements: tuple[str, ...]) -> None:
    command = [str(python), "-m", "pip", "--disable-pip-version-check", "-q", "install"]
    command += os.environ.get("BEQUEATH_BENCH_PIP_ARGS", "").split()
    try:
        done = subprocess.run(
            [*command, *requirements],
            capture_output=True,
            text=True,
            timeout=INSTALL_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise EnvironmentFailed(f"pip took more than {INSTALL_LIMIT_S:.0f} s") from None
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no word"]
        raise EnvironmentFailed(f"pip install {' '.join(requirements)}: {said[-1]}")
