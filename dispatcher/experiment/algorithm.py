"""The tuner and the assessor that an experiment uses, and how their classes are found."""

from __future__ import annotations

import re
from typing import Annotated, Any, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from dispatcher.experiment.builtin_names import canonical_builtin
from dispatcher.experiment.fields import ResolvedPath, Section, Switch, Text, resolve_path
from dispatcher.experiment.needs import Indices
from dispatcher.experiment.problems import Misfit
from tuners.plain_json import plain, unjson, written_path

_IDENTIFIERS = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


class AlgorithmConfig(Section):
    """A class by name: built in, in an importable module, or in a file of its own."""

    name: Annotated[
        Text | None,
        Field(description="Name of a built-in one; case does not matter. Excludes `className`."),
    ] = None
    class_name: Annotated[
        Text | None,
        Field(
            description="The class, as `module:Class` or, as NNI writes it, `module.Class`; "
            "with `file` the bare class name."
        ),
    ] = None
    file: Annotated[
        ResolvedPath | None,
        Field(description="Python file that holds the class. Excludes `codeDirectory`."),
    ] = None
    code_directory: Annotated[
        ResolvedPath | None,
        Field(
            description="Folder in which the module is looked for and from which it may import "
            "its neighbours; the experiment file's folder if not given."
        ),
    ] = None
    class_args: Annotated[
        dict[str, Any],
        Field(description="Keyword arguments of the constructor, any JSON values."),
    ] = Field(default_factory=dict)

    @field_validator("class_args")
    @classmethod
    def _args_are_json(cls, value: dict[str, Any]) -> dict[str, Any]:
        for path, text in unjson(value, ()):
            raise ValueError(f"holds {written_path(path) or 'a value'}, which {text}")
        return plain(value)  # type: ignore[no-any-return]

    @model_validator(mode="after")
    def _names_one_class(self, info: ValidationInfo) -> Self:
        if self.name is not None and self.class_name is not None:
            raise Misfit(
                "has both 'name' (built in) and 'className' (your own)",
                at=("className",),
                hint="keep one of the two",
            )
        if self.name is None and self.class_name is None:
            raise Misfit(
                "needs 'name' (a built-in one) or 'className' (your own)",
                hint="write e.g. 'name: Random' or 'className: my_module:MyClass'",
            )
        if self.name is not None and (self.file or self.code_directory):
            raise Misfit(
                "names a built-in one, so 'file' and 'codeDirectory' say nothing",
                at=("file" if self.file else "codeDirectory",),
                hint="remove them, or write 'className' instead of 'name'",
            )
        if self.file and self.code_directory:
            raise Misfit(
                "has both 'file' and 'codeDirectory'",
                at=("codeDirectory",),
                hint="keep one: the folder of 'file' is searched anyway",
            )
        if self.class_name is not None:
            split_class_name(self.class_name, alone=self.file is not None)
            if self.file is None and self.code_directory is None:
                # Frozen for everybody else; here the value is still being made.
                object.__setattr__(self, "code_directory", resolve_path(".", info))
        return self

    @property
    def builtin(self) -> bool:
        """Whether the class is one that ships with bequeath or with a plug-in."""
        return self.name is not None

    @property
    def module(self) -> str | None:
        """Dotted name of the module that holds the class; None if built in or in a file."""
        if self.class_name is None or self.file is not None:
            return None
        return split_class_name(self.class_name, alone=False)[0]

    @property
    def bare_class_name(self) -> str | None:
        """The class's name within its module or file; None if built in."""
        if self.class_name is None:
            return None
        return split_class_name(self.class_name, alone=self.file is not None)[1]


class TunerConfig(AlgorithmConfig):
    """The tuner: proposes parameters, the place of weights, and the parent of each trial."""

    gpu_indices: Annotated[
        Indices | None,
        Field(
            description="GPUs of this machine that the tuner sees, as `nvidia-smi` counts them. If "
            "not given it sees all; with `compatibility: nni` none, as in NNI."
        ),
    ] = None

    @field_validator("name")
    @classmethod
    def _as_registered(cls, value: str | None) -> str | None:
        """Take ``grid_search`` for ``GridSearch``; names of plug-ins stay as they are."""
        return (canonical_builtin(value) or value) if value is not None else None


class AssessorConfig(AlgorithmConfig):
    """The assessor: looks at intermediate results and may stop a trial early."""

    @field_validator("name")
    @classmethod
    def _as_registered(cls, value: str | None) -> str | None:
        """Take another spelling for the registered name, as for tuners."""
        return (canonical_builtin(value, key="assessor") or value) if value is not None else None

    keep_result: Annotated[
        Switch,
        Field(
            description="Whether the last intermediate result of a trial that it stopped counts "
            "as the trial's result."
        ),
    ] = False


def split_class_name(text: str, *, alone: bool) -> tuple[str | None, str]:
    """Split ``module:Class`` or ``module.Class``; with ``alone`` a bare class name will do.

    Raises:
        Misfit: not a class name of either form.
    """
    module, colon, name = text.rpartition(":")
    if not colon:
        module, _, name = text.rpartition(".")
    fits = _IDENTIFIERS.fullmatch(name) and (not module or _IDENTIFIERS.fullmatch(module))
    if not fits or (colon and not module):
        raise Misfit(
            f"has the className {text!r}, which names no class",
            at=("className",),
            hint="write it as 'module:Class'",
        )
    if not module and not alone:
        raise Misfit(
            f"has the className {text!r} without a module",
            at=("className",),
            hint=f"write 'module:{name}', or add 'file' with the path of the Python file",
        )
    return module or None, name
