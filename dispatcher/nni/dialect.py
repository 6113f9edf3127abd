"""NNI, as experiment files, scripts and copies of code ask about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dispatcher.experiment.dialects import Dialect
from dispatcher.nni.files.detection import V1, imports_nni, version_of
from dispatcher.nni.files.key_hints import nni_hint
from dispatcher.nni.files.spaces import as_now

if TYPE_CHECKING:
    from dispatcher.experiment.draft import Draft


class _Nni:
    """Every experiment file is asked about; what only files of NNI's need is imported late."""

    name = "nni"
    title = "NNI"
    annotation_hint = "write '@nni.variable(…)' into the code"
    tuner_adapter = "dispatcher.nni.tuner.adapter:ADAPTER"

    def version_of(self, values: Mapping[str, Any], folder: Path | None) -> str:
        return version_of(values, folder)

    def translate(self, values: dict[str, Any], version: str, origin: str) -> Draft:
        from dispatcher.nni.files.v1 import translate_v1
        from dispatcher.nni.files.v2 import translate_v2

        return (translate_v1 if version == V1 else translate_v2)(values, origin)

    def native_text(self, draft: Draft, file: str, changed: Mapping[str, Any]) -> str:
        from dispatcher.experiment.draft_text import native_text

        return native_text(draft, file, changed, self.title)

    def hint(self, section: str, key: str) -> str:
        return nni_hint(section, key)

    def current_space(self, space: dict[str, Any]) -> dict[str, Any]:
        return as_now(space)

    def annotated_space(
        self, folder: Path, excluded: tuple[Path, ...], *, flat: bool
    ) -> dict[str, Any]:
        from dispatcher.nni.annotated import annotated_space

        return annotated_space(folder, excluded, flat=flat)

    def rewrite_annotated(self, folder: Path) -> None:
        from dispatcher.nni.annotated import rewrite_annotated

        rewrite_annotated(folder)

    def is_imported_by(self, file: Path) -> bool:
        return imports_nni(file)

    def run_script(self, file: Path, arguments: Sequence[str]) -> None:
        from dispatcher.nni.script.script import run_script

        run_script(file, arguments)


NNI: Dialect = _Nni()
