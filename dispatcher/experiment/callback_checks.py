"""Checks of ``callbacks``: that functions and programs are there. Nothing is run or imported."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from dispatcher.experiment.algorithm_checks import check_folder, check_name
from dispatcher.experiment.callbacks import CALLBACKS, CallbacksConfig, path_with
from dispatcher.experiment.platform_base import KeyProblem
from tuners.plain_json import JsonPath


def check_callbacks(section: CallbacksConfig, folder: Path) -> Iterator[KeyProblem]:
    """Yield functions and programs that are not there. Nothing is run or imported.

    Args:
        section: as the file has it.
        folder: that of the code.
    """
    problem = None if section.code_directory is None else check_folder(section.code_directory)
    if problem is not None:
        yield KeyProblem((CALLBACKS, "codeDirectory"), *problem)
        return
    for key, one in section.given.items():
        at: JsonPath = (CALLBACKS, key)
        if one.function is not None:
            module, _, name = one.function.partition(":")
            yield from check_name((*at, "function"), module, name.partition(".")[0], folder)
        elif not _is_there(one.argv[0], folder):
            text = f"names a program that is neither in {folder} nor installed: {one.argv[0]!r}"
            yield KeyProblem((*at, "command"), text, "it must be executable")


def _is_there(program: str, folder: Path) -> bool:
    if os.path.dirname(program):
        return os.access(folder / program, os.X_OK)
    return shutil.which(program, path=path_with(folder)) is not None
