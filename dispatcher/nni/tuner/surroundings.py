"""The surroundings of a tuner written for NNI: its modules, and NNI's variables."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from dispatcher.tuner_host.config import TunerHostConfig
from trial_runtime import nni_shim

#: What an installation of NNI brought along, and its tuners and advisors import.
_COMPANIONS = frozenset({"schema", "json_tricks"})


class _MissingCompanions(MetaPathFinder):
    """Asked last: says of what NNI brought along, and nobody has installed, where it is now.

    Tuners import it at the top, in a method, or by a base class of NNI's (``ClassArgsValidator``).
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in _COMPANIONS:
            return None
        raise ModuleNotFoundError(
            f"No module named {fullname!r}: NNI brought it along, "
            "and pip install 'bequeath[nni]' brings it",
            name=fullname,
        )


_FINDER = _MissingCompanions()


def make_importable() -> None:
    """Put ``nni`` on the module path; last, so that a real one wins."""
    if nni_shim.folder() not in sys.path:
        sys.path.append(nni_shim.folder())
    if _FINDER not in sys.meta_path:
        sys.meta_path.append(_FINDER)


def furnish(config: TunerHostConfig) -> None:
    """Make ``nni`` importable, and set the variables and logging that NNI sets."""
    make_importable()
    home = Path(config.failure_file).parent if config.failure_file else Path.cwd()
    checkpoints = home / "checkpoint"
    checkpoints.mkdir(exist_ok=True)
    os.environ.update(
        SDK_PROCESS="dispatcher",
        NNI_MODE="resume" if config.restore and Path(config.restore).exists() else "start",
        NNI_CHECKPOINT_DIRECTORY=str(checkpoints),
        NNI_LOG_DIRECTORY=str(home / "logs"),
        NNI_LOG_LEVEL=config.log_level,
        NNI_INCLUDE_INTERMEDIATE_RESULTS="false",
        MULTI_THREAD="true" if config.multi_thread else "false",
    )
    logging.basicConfig(
        level=config.log_level.upper(),
        format="[%(asctime)s] %(levelname)s (%(name)s/%(threadName)s) %(message)s",
    )
