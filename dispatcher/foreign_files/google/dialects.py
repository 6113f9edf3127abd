"""Google's tuning jobs, as experiment files ask about them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dispatcher.experiment.dialects import Dialect, FileDialect
from dispatcher.experiment.fields import fold_word

if TYPE_CHECKING:
    from dispatcher.experiment.draft import Draft

#: Fields of a HyperparameterSpec, of which a TrainingInput by itself has at least one.
_OF_A_SEARCH = {"goal", "params", "maxtrials", "maxparalleltrials", "hyperparametermetrictag"}

_JOB, _ALONE, _TUNING_JOB = "ml.v1 job", "ml.v1 TrainingInput", "aiplatform.v1 tuning job"


def _folded(values: Any) -> dict[str, Any]:
    """Keys in whatever spelling: files for REST have camelCase, those of Python snake_case."""
    section = values if isinstance(values, Mapping) else {}
    return {fold_word(key): value for key, value in section.items() if isinstance(key, str)}


class _AiPlatform(FileDialect):
    """Every experiment file is asked about; what only these need is imported late."""

    name = "ai-platform"
    title = "AI Platform Training"

    def version_of(self, values: Mapping[str, Any], folder: Path | None) -> str:
        keys = _folded(values)
        if isinstance(keys.get("traininginput"), Mapping):
            return _JOB
        return _ALONE if _OF_A_SEARCH & _folded(keys.get("hyperparameters")).keys() else ""

    def translate(self, values: dict[str, Any], version: str, origin: str) -> Draft:
        from dispatcher.foreign_files.google.ai_platform import translate_training

        return translate_training(values, alone=version == _ALONE)


class _VertexAi(FileDialect):
    """Every experiment file is asked about; what only these need is imported late."""

    name = "vertex-ai"
    title = "Vertex AI"

    def version_of(self, values: Mapping[str, Any], folder: Path | None) -> str:
        study = isinstance(_folded(values).get("studyspec"), Mapping)
        return _TUNING_JOB if study else ""

    def translate(self, values: dict[str, Any], version: str, origin: str) -> Draft:
        from dispatcher.foreign_files.google.vertex_ai import translate_vertex

        return translate_vertex(values)


AI_PLATFORM: Dialect = _AiPlatform()
VERTEX_AI: Dialect = _VertexAi()
