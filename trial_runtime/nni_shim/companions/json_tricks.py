"""The part of ``json_tricks``, a dependency of NNI, that its tuners and advisors use.

Only tuner hosts look in this folder, last of all, so that an installed one wins. Plain JSON:
values that the real one encodes with names of classes are refused here, and nothing is rebuilt
from such names.
"""

from __future__ import annotations

import importlib
from typing import Any

#: Ours: with a real NNI there would be a real ``json_tricks``.
_nni = importlib.import_module("nni")


def dumps(obj: Any, *_encoders: Any, **options: Any) -> str:
    """JSON text; numpy's numbers and arrays become plain ones."""
    return str(_nni.dump(obj, **options))


def loads(string: Any, **_options: Any) -> Any:
    """The value of a JSON text."""
    return _nni.load(string)


def dump(obj: Any, fp: Any, **options: Any) -> None:
    """Write JSON text into an open file, or one that is named."""
    text = dumps(obj, **options)
    if hasattr(fp, "write"):
        fp.write(text)
    else:
        with open(fp, "w", encoding="utf-8") as file:
            file.write(text)


def load(fp: Any, **_options: Any) -> Any:
    """The value of the JSON text in an open file, or one that is named."""
    if hasattr(fp, "read"):
        return loads(fp.read())
    with open(fp, encoding="utf-8") as file:
        return loads(file.read())
