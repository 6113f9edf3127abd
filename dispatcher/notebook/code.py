"""Trial and tuner of a notebook: settings, and files that another process can have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dispatcher.experiment import ExperimentConfig
from dispatcher.experiments.handle import ExperimentHandle
from dispatcher.folders.experiment_folder import new_id
from dispatcher.notebook.arguments import mapping
from dispatcher.notebook.function_source import (
    WrittenModule,
    check_stands_alone,
    folder_beside,
    import_folder,
    is_importable,
    module_source,
)
from dispatcher.notebook.sources import Definition
from trial_runtime.cells import DATA
from trial_runtime.namesakes import in_folder

#: Where the files lie in the experiment's folder.
_FOLDER = "notebook"

_TRIAL_MODULE = "bequeath_trial"
_TUNER_FILE = "bequeath_tuner.py"

#: Where a trial finds modules beside the notebook: before installed ones of their names, as there,
#: and behind those of Python, most of which a notebook has loaded before.
_BEFORE_PACKAGES = """sys.path.insert(
    next((n for n, each in enumerate(sys.path) if each.endswith("-packages")), len(sys.path)),
    {!r},
)
"""


class NotebookCode:
    """Functions and classes of one experiment; those of no module are written out as source.

    Settings are made, and checked, with such files in a temporary folder; :meth:`create` gives
    them a place in the experiment's own.
    """

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}  # by file name
        self._data: dict[str, bytes] = {}  # by digest

    def trial_settings(
        self, trial: Callable[..., Any] | str, stage: Path, values: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the keys of an experiment file that lead a trial to its function.

        Args:
            trial: a function, or ``module:function``.
            stage: the folder that :meth:`write_into` is going to fill.
            values: all settings given.

        Raises:
            UserError: a function that another process cannot have.
        """
        if isinstance(trial, str):
            return {"trial_function": trial}
        function = check_stands_alone(trial, "trial")
        if is_importable(function):
            name = f"{function.__module__}:{function.__qualname__}"
            if "trial_code_directory" in values or "trialCodeDirectory" in values:
                return {"trial_function": name}
            return {
                "trial_function": name,
                "trial_code_directory": str(import_folder(function.__module__)),
            }
        given = values.get("trial_code_directory")
        here = str(Path(str(given or ".")).absolute())
        beside = here if given else str(folder_beside(function))
        # Relative paths and neighbours mean in the trial what they mean in the notebook.
        neighbours = _path_with(beside, here, add=_BEFORE_PACKAGES)
        preamble = f"import os\n{neighbours}if os.path.isdir({here!r}):\n    os.chdir({here!r})\n"
        self._write(f"{_TRIAL_MODULE}.py", module_source(function, preamble))
        return {
            "trial_function": f"{_TRIAL_MODULE}:{function.__name__}",
            "trial_code_directory": str(stage),
            **_callbacks_in(beside, values.get("callbacks")),
        }

    def tuner_settings(
        self, tuner: type | str, args: Mapping[str, Any], stage: Path
    ) -> dict[str, Any]:
        """Return the value of the key ``tuner``. Raises as :meth:`trial_settings` does.

        Args:
            tuner: a class, or the name of a built-in tuner.
            args: the class's arguments.
            stage: the folder that :meth:`write_into` is going to fill.
        """
        arguments = mapping("tuner_args", args)
        if isinstance(tuner, str):
            return {"name": tuner, "class_args": arguments}
        owner = check_stands_alone(tuner, "tuner")
        name = _builtin_name(owner)
        if name is not None:
            return {"name": name, "class_args": arguments}
        if is_importable(owner):
            return {
                "class_name": f"{owner.__module__}:{owner.__qualname__}",
                "code_directory": str(import_folder(owner.__module__)),
                "class_args": arguments,
            }
        neighbours = _path_with(str(folder_beside(owner)), str(Path.cwd()))
        self._write(_TUNER_FILE, module_source(owner, neighbours))
        file = str(stage / _TUNER_FILE)
        return {"class_name": owner.__name__, "file": file, "class_args": arguments}

    def _write(self, name: str, written: WrittenModule) -> None:
        self._texts[name] = written.text
        self._data.update(written.data)

    def write_into(self, stage: Path) -> None:
        """Write the code that was made into a folder, so that it can be checked."""
        for name, text in self._texts.items():
            (stage / name).write_text(text, encoding="utf-8")

    def create(self, config: ExperimentConfig) -> ExperimentHandle:
        """Create the experiment with these files in it.

        Raises:
            DispatcherError: as of :func:`dispatcher.experiments.creating.create`.
        """
        ident = new_id(config.experiment_name)
        code = config.experiment_working_directory / ident / _FOLDER
        files: dict[str, str | bytes] = {
            **{f"{_FOLDER}/{name}": text for name, text in self._texts.items()},
            **{f"{_FOLDER}/{DATA}/{name}": content for name, content in self._data.items()},
        }
        made = ExperimentHandle.create(self._moved(config, code), ident, files)
        self._data.clear()  # it is on disk
        return made

    def _moved(self, config: ExperimentConfig, code: Path) -> ExperimentConfig:
        """Return the configuration with the files in another folder."""
        update: dict[str, Any] = {}
        if f"{_TRIAL_MODULE}.py" in self._texts:
            update["trial_code_directory"] = code
        if _TUNER_FILE in self._texts:
            update["tuner"] = config.tuner.model_copy(update={"file": code / _TUNER_FILE})
        return config.model_copy(update=update)


def _callbacks_in(beside: str, section: Any) -> dict[str, Any]:
    """Return the section ``callbacks``, if there is one, with the folder of the program."""
    if not isinstance(section, Mapping):
        return {}
    folder = {} if "codeDirectory" in section else {"code_directory": beside}
    return {"callbacks": {**folder, **section}}


def _path_with(*folders: str, add: str = "sys.path.append({!r})\n") -> str:
    """Return lines by which modules of folders can be imported, those called like ours too."""
    return "".join(_path_with_one(each, add) for each in dict.fromkeys(folders))


def _path_with_one(folder: str, add: str) -> str:
    add = add.format(folder)
    if not in_folder(folder):
        return f"import sys\n\n{add}"
    admitted = f"from trial_runtime.namesakes import admit\n\nadmit({folder!r}, last=True)\n"
    return f"import sys\n{admitted}{add}"


def _builtin_name(owner: Definition) -> str | None:
    if not owner.__module__.startswith("tuners."):
        return None
    from tuners.builtin import BUILTIN_NAMES, builtin_tuner

    return next((name for name in BUILTIN_NAMES if builtin_tuner(name) is owner), None)
