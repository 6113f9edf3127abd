"""The weight store: publish training state at a path, and start other trials from it.

``save`` writes what changed since the parent into one safetensors file and a manifest
(which tensor lies where, with which digest); ``load`` maps the files and copies straight
into a model. Readers get the digest of the manifest from the dispatcher and check it, and
each tensor they take against it. Nothing here decides which trial is a parent, what may be
deleted, or which trial owns a path; nothing here deletes files that others may refer to.

Read first: ``format/manifest.py`` (what is on disk), ``saving/saving.py``, ``loading/loading.py``;
then ``format/skeleton.py`` (nested state), ``storage/paths.py`` (what may be reached),
``read/plain.py`` (weights that a trial wrote without it), ``usage.py`` (which files belong to
which weights).

Importing this imports neither torch nor numpy: names are loaded when they are used.

Trials call :func:`trial_runtime.save_weights` and ``load_weights``, which fill in the paths,
the parent and the digest. By itself the store works on any folder:

>>> import numpy as np
>>> from trial_runtime import weights
>>> parent = weights.save({"encoder": np.ones(4), "epoch": 3}, "weights/0")
>>> state = weights.load("weights/0", digest=parent.digest)
>>> state["encoder"], state["epoch"]
(array([1., 1., 1., 1.]), 3)
>>> state["head"] = np.zeros(2)
>>> child = weights.save(state, "weights/1", parent="weights/0")
>>> child.tensors_written, child.tensors_inherited
(1, 1)
>>> weights.verify("weights/1", child.digest).tensors
2
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trial_runtime.weights.loading.exporting import export
    from trial_runtime.weights.loading.loading import Verified, load, verify
    from trial_runtime.weights.loading.matching import Form, MatchReport, Reshaped
    from trial_runtime.weights.read.opening import read_manifest
    from trial_runtime.weights.read.plain import (
        FilesDigest,
        PublishedDigest,
        await_published,
        digest_tree,
        published_digest,
        verify_tree,
    )
    from trial_runtime.weights.saving.saving import Published, save
    from trial_runtime.weights.storage.roots import configure

_HOMES = {
    "export": "loading.exporting",
    "load": "loading.loading",
    "Form": "loading.matching",
    "MatchReport": "loading.matching",
    "Reshaped": "loading.matching",
    "FilesDigest": "read.plain",
    "PublishedDigest": "read.plain",
    "await_published": "read.plain",
    "digest_tree": "read.plain",
    "published_digest": "read.plain",
    "verify_tree": "read.plain",
    "read_manifest": "read.opening",
    "configure": "storage.roots",
    "Published": "saving.saving",
    "save": "saving.saving",
    "Verified": "loading.loading",
    "verify": "loading.loading",
}

__all__ = [
    "FilesDigest",
    "Form",
    "MatchReport",
    "Published",
    "PublishedDigest",
    "Reshaped",
    "Verified",
    "await_published",
    "configure",
    "digest_tree",
    "export",
    "load",
    "published_digest",
    "read_manifest",
    "save",
    "verify",
    "verify_tree",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
