"""A whole folder of annotated code: the search space of all its modules, and its rewriting."""

from __future__ import annotations

import io
import itertools
import os
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dispatcher.errors import ExperimentFileError
from dispatcher.experiment.code_folder import walk_code
from dispatcher.nni.annotated.annotations import expanded
from dispatcher.nni.annotated.edits import Unreadable
from dispatcher.nni.annotated.smart_parameters import keyed

MOST_BYTES = 4 << 20
"""Larger files are data, whatever they are called."""

MOST_COMBINATIONS = 1000
"""Sets of inputs of one layer, for tuners that choose among them as they stand."""

BadAnnotation = ExperimentFileError
"""Raised for an annotation, with the file and its line."""


def annotated_space(
    folder: Path, excluded: tuple[Path, ...] = (), *, flat: bool = False
) -> dict[str, Any]:
    """Return the search space in a folder's annotations; empty if there are none.

    Args:
        folder: the code directory.
        excluded: folders below it that are no code.
        flat: with plain choices in place of mutable layers, which only tuners of NNI know.

    Raises:
        ExperimentFileError: an annotation cannot be honoured.
        OSError: the folder cannot be read.
        UserError: a file of rules cannot be read.
    """
    spaces: dict[str, Any] = {}
    for file, module in _modules(folder, excluded):
        space, _, _ = _read(file, module)
        spaces |= space
    return _flattened(spaces, folder) if flat else spaces


def rewrite_annotated(folder: Path) -> None:
    """Turn the annotations of a copy of the code into code, in place.

    Raises:
        ExperimentFileError: an annotation cannot be honoured.
        OSError: a file cannot be read or written.
    """
    for file, module in list(_modules(folder, ())):
        _, code, encoding = _read(file, module)
        if code is not None and not file.is_symlink():
            file.write_bytes(code.encode(encoding))


def _modules(folder: Path, excluded: tuple[Path, ...]) -> Iterator[tuple[Path, str]]:
    """Yield Python files and NNI's names for their modules, in a fixed order."""
    files = [
        Path(entry.path)
        for entry in walk_code(folder, excluded)
        if entry.name.endswith(".py") and entry.is_file()
    ]
    for file in sorted(files):
        yield file, ".".join(file.relative_to(folder).with_suffix("").parts)


def _read(file: Path, module: str) -> tuple[dict[str, Any], str | None, str]:
    """Return space, code and encoding of a file; no code if nothing in it is NNI's."""
    if os.path.getsize(file) > MOST_BYTES:
        return {}, None, ""
    data = file.read_bytes()
    if b"nni." not in data:
        return {}, None, ""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        source = data.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
        space, code = keyed(module, expanded(source))
    except (SyntaxError, UnicodeDecodeError) as error:
        raise BadAnnotation(f"cannot be read: {error}", where=str(file)) from error
    except Unreadable as error:
        raise BadAnnotation(
            error.text, hint="see 'from-nni' on annotations", where=f"{file}:{error.line}"
        ) from error
    return space, code if code != source else None, encoding.replace("utf-8-sig", "utf-8")


def _flattened(space: dict[str, Any], folder: Path) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, entry in space.items():
        if entry["_type"] != "mutable_layer":
            flat[key] = entry
            continue
        for layer, settings in entry["_value"].items():
            choice = {"_type": "choice", "_value": settings["layer_choice"]}
            flat[f"{key}/{layer}/layer_choice"] = choice
            inputs, size = settings["optional_inputs"], settings["optional_input_size"]
            if inputs:
                least, most = size if isinstance(size, list) else (size, size)
                ways = itertools.chain.from_iterable(
                    itertools.combinations(inputs, many) for many in range(least, most + 1)
                )
                some = [list(way) for way in itertools.islice(ways, MOST_COMBINATIONS + 1)]
                if len(some) > MOST_COMBINATIONS:
                    text = (
                        f"layer {layer} of {key} has more than {MOST_COMBINATIONS} sets of inputs"
                    )
                    raise BadAnnotation(text, hint="use a tuner of NNI's", where=str(folder))
                flat[f"{key}/{layer}/optional_inputs"] = {"_type": "choice", "_value": some}
    return flat
