"""Sections of NNI's for DLTS, as jobs of our platform ``dlts``; files of v1 have them."""

from __future__ import annotations

from dispatcher.nni.files.clusters.making import IMAGE, Making, Part, exactly
from dispatcher.nni.files.clusters.tables import V1_DLTS, V1_DLTS_TRIAL
from dispatcher.nni.files.sections import nas_mode

PLATFORM = "dlts"


def translate_v1(making: Making, trial: Part, config: Part) -> None:
    """Translate ``trial`` and ``dltsConfig``.

    Args:
        making: the section in the making.
        trial: the section of the file.
        config: the section of the file.
    """
    making.walk(
        config,
        exactly(V1_DLTS),
        {"password": lambda value, at: making.secret("password", value, at)},
    )
    making.walk(
        trial,
        exactly(V1_DLTS_TRIAL),
        {
            "gpunum": making.take_gpus,
            "image": lambda value, at: making.put("image", value, at),
            "nasmode": lambda value, at: nas_mode(making.draft, value, at),
        },
    )
    making.add("image", IMAGE, "NNI's own image")
    making.finish_job()
