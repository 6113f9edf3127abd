"""Katib, as experiment files ask about it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dispatcher.experiment.dialects import Dialect, FileDialect

if TYPE_CHECKING:
    from dispatcher.experiment.draft import Draft


class _Katib(FileDialect):
    """Every experiment file is asked about; what only files of Katib's need is imported late."""

    name = "katib"
    title = "Katib"

    def version_of(self, values: Mapping[str, Any], folder: Path | None) -> str:
        version = values.get("apiVersion")
        theirs = isinstance(version, str) and version.startswith("kubeflow.org/")
        return str(version) if theirs and values.get("kind") == "Experiment" else ""

    def translate(self, values: dict[str, Any], version: str, origin: str) -> Draft:
        from dispatcher.foreign_files.katib.translation import translate_katib

        return translate_katib(values)


KATIB: Dialect = _Katib()
