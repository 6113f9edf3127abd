"""NNI's words for training services of clusters, what translates each, and what is gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dispatcher.experiment.draft import Draft
from dispatcher.experiment.fields import fold_word
from dispatcher.experiment.plugged import Unusable, platform_named
from dispatcher.experiment.translated_keys import given
from dispatcher.nni.files.clusters import (
    adaptdl,
    azureml,
    dlc,
    dlts,
    frameworkcontroller,
    kubeflow,
    openpai,
)
from dispatcher.nni.files.clusters.making import Making, Part
from dispatcher.nni.files.detection import SERVICE_MARKS
from tuners.plain_json import JsonPath

V1 = Callable[[Making, Part, Part], None]
"""Translates ``trial`` and the platform's own section of v1."""

V2 = Callable[[Making, Part], None]
"""Translates a section of ``trainingService``."""


class Cluster(NamedTuple):
    """A training service of NNI's that is one of our platforms.

    Attributes:
        ours: our platform.
        names: NNI's for it.
        config: its own section of v1; empty: it has none.
        v1: translates files of v1; None: NNI had it in later files alone.
        v2: translates files of v2 and v3; None: NNI had it in files of v1 alone.
    """

    ours: str
    names: tuple[str, ...]
    config: str
    v1: V1 | None
    v2: V2 | None


CLUSTERS = (
    Cluster(
        openpai.PLATFORM,
        ("openpai", "pai"),
        "paiConfig",
        openpai.translate_v1,
        openpai.translate_v2,
    ),
    Cluster(
        kubeflow.PLATFORM,
        ("kubeflow",),
        "kubeflowConfig",
        kubeflow.translate_v1,
        kubeflow.translate_v2,
    ),
    Cluster(
        frameworkcontroller.PLATFORM,
        ("frameworkcontroller",),
        "frameworkcontrollerConfig",
        frameworkcontroller.translate_v1,
        frameworkcontroller.translate_v2,
    ),
    Cluster(adaptdl.PLATFORM, ("adl",), "", adaptdl.translate_v1, None),
    Cluster(
        azureml.PLATFORM,
        ("aml",),
        "amlConfig",
        azureml.translate_v1,
        azureml.translate_v2,
    ),
    Cluster(dlc.PLATFORM, ("dlc",), "", None, dlc.translate_v2),
    Cluster(dlts.PLATFORM, ("dlts",), "dltsConfig", dlts.translate_v1, None),
)
"""All of them."""

GONE: Mapping[str, tuple[str, str]] = {
    "paiYarn": (
        "which is OpenPAI on Hadoop's YARN: OpenPAI gave that up with its release 1.0, and NNI "
        "with v2.1",
        "for an OpenPAI of today write 'pai', a 'paiConfig' with 'host', 'userName' and 'token', "
        "and 'paiStorageConfigName' below 'trial'",
    ),
}
"""NNI's words for what is no more: what became of it, and what to write."""

CONFIGS = {each.config: each.names[-1] for each in CLUSTERS if each.config} | {
    "paiYarnConfig": "paiYarn",
    "hybridConfig": "hybrid",
}
"""Sections of v1, and the platform that each belongs to."""

_BY_WORD = {fold_word(word): each for each in CLUSTERS for word in each.names}
_GONE = {fold_word(word): (word, *answer) for word, answer in GONE.items()}


def cluster_named(word: str) -> Cluster | None:
    """Return the training service of that name; None if NNI has none, or it is no cluster."""
    return _BY_WORD.get(fold_word(word))


def refused(draft: Draft, word: str, at: JsonPath, *, v1: bool) -> bool:
    """Refuse a training service that cannot be had; whether it was refused.

    Args:
        draft: takes the translation.
        word: NNI's for it.
        at: path of the word in the file.
        v1: whether the file is of v1.
    """
    gone, cluster = _GONE.get(fold_word(word)), cluster_named(word)
    if gone is not None:
        draft.refuse(at, f"names {word!r}, {gone[1]}", gone[2], is_key=False)
        return True
    if fold_word(word) == "hybrid":  # as a section of v2
        hint = "write 'trainingService' as a list of them"
        draft.refuse(at, "is several services in one", hint, is_key=False)
        return True
    if cluster is None:
        return False
    there = platform_named(cluster.ours)
    if isinstance(there, Unusable):
        text = f"names {word!r}, which is '{cluster.ours}' here: {there.text}"
        draft.refuse(at, text, there.hint, is_key=False)
        return True
    if (cluster.v1 if v1 else cluster.v2) is None:
        had = "v2 and v3" if v1 else "v1"
        text = f"names {word!r}, which NNI had in files of {had} alone"
        own = f"'trainingService: {{platform: {cluster.ours}, …}}'"
        hint = f"{own} has it under bequeath's own keys"
        draft.refuse(at, text, hint, is_key=False)
        return True
    return False


def is_theirs(word: str, section: Mapping[str, Any]) -> bool:
    """Whether a section of v2 has NNI's keys, and not ours, of a platform that both call the same.

    Args:
        word: the platform.
        section: of the file.
    """
    cluster = cluster_named(word)
    if cluster is None or fold_word(cluster.ours) != fold_word(word):
        return True
    marks = SERVICE_MARKS.get(fold_word(word), frozenset())
    return bool(marks & {fold_word(key) for key, _ in given(section)})
