"""Sections of NNI's for Azure Machine Learning, as jobs of our platform ``azureml``."""

from __future__ import annotations

from dispatcher.nni.files.clusters.making import IMAGE, Making, Part, exactly, loosely
from dispatcher.nni.files.clusters.tables import V1_AML, V1_AML_TRIAL, V2_AML
from dispatcher.nni.files.sections import nas_mode

PLATFORM = "azureml"


def translate_v1(making: Making, trial: Part, config: Part) -> None:
    """Translate ``trial`` and ``amlConfig``.

    Args:
        making: the section in the making.
        trial: the section of the file.
        config: the section of the file.
    """
    making.walk(config, exactly(V1_AML), {})
    making.walk(
        trial,
        exactly(V1_AML_TRIAL),
        {
            "gpunum": making.take_gpus,
            "image": lambda value, at: making.put("image", value, at),
            "nasmode": lambda value, at: nas_mode(making.draft, value, at),
        },
    )
    _finish(making)


def translate_v2(making: Making, section: Part) -> None:
    """Translate a section of ``trainingService``.

    Args:
        making: the section in the making.
        section: of the file.
    """
    making.walk(
        section,
        loosely(V2_AML),
        {
            **making.common(PLATFORM),
            "trialgpunumber": making.take_gpus,
            "dockerimage": lambda value, at: making.put("image", value, at),
        },
    )
    _finish(making)


def _finish(making: Making) -> None:
    making.add("image", IMAGE, "NNI's own image")
    making.finish_job()
