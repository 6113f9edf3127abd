"""Experiment files written for NNI, of v1 and of v2/v3, turned into our own keys.

Pure: values in, values out, with a written decision for each key and the place in the user's
own file kept for errors. ``tables.py`` lists every key there is and what becomes of it (the docs
are made from it), ``detection.py`` finds a file's version, ``v1.py`` and ``v2.py`` translate,
``algorithms.py`` knows the built-in names, ``render.py`` writes what ``bequeath convert`` prints.
"""

from __future__ import annotations

from dispatcher.experiment.draft import Draft
from dispatcher.nni.files.detection import V1
from dispatcher.nni.files.v1 import translate_v1
from dispatcher.nni.files.v2 import translate_v2


def translate(values: dict[str, object], version: str, origin: str) -> Draft:
    """Turn the values of a file of NNI's into ours.

    Args:
        values: as read, keys as spelt.
        version: that of :func:`.detection.version_of`.
        origin: absolute path of the file, for references to secrets in it.
    """
    return (translate_v1 if version == V1 else translate_v2)(values, origin)
