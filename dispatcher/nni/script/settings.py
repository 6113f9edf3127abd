"""``nni.experiment.config``: an experiment file as objects with attributes in snake_case.

Their values are checked like a file of NNI's, with the same messages, when the experiment starts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from dispatcher.errors import UserError

#: A password is looked up in the file that has it, and here is no file.
_SECRETS = {"password", "ssh_passphrase", "passphrase"}


class NniSection:
    """Attributes that stand for keys of a section; one that was not set is None."""

    def __init__(self, **values: Any) -> None:
        for name, value in values.items():
            setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return None

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({given})"

    def mapping(self) -> dict[str, Any]:
        """Return the section under the keys of a file.

        Raises:
            UserError: it holds a password.
        """
        values: dict[str, Any] = {}
        for name, value in vars(self).items():
            if name in _SECRETS and value is not None:
                raise UserError(
                    f"a script's {name!r} would have to be kept in clear text",
                    hint="use ssh_key_file, or write the experiment as a file",
                    where=type(self).__name__,
                )
            if value is not None:
                values[_camel(name)] = _plain(value)
        return values


class AlgorithmConfig(NniSection):
    """A tuner or an assessor by name."""

    def __init__(
        self, name: str | None = None, class_args: Mapping[str, Any] | None = None, **more: Any
    ) -> None:
        super().__init__(name=name, class_args=dict(class_args or {}), **more)


class CustomAlgorithmConfig(NniSection):
    """A class of the user's own."""

    def __init__(
        self,
        class_name: str | None = None,
        code_directory: str | os.PathLike[str] = ".",
        class_args: Mapping[str, Any] | None = None,
    ) -> None:
        args = dict(class_args or {})
        super().__init__(class_name=class_name, code_directory=code_directory, class_args=args)


class LocalConfig(NniSection):
    """Trials on this machine."""

    def __init__(self, **values: Any) -> None:
        super().__init__(**{"platform": "local", **values})


class RemoteConfig(NniSection):
    """Trials on machines that are reached by SSH."""

    def __init__(self, **values: Any) -> None:
        super().__init__(**{"platform": "remote", "machine_list": [], **values})


class RemoteMachineConfig(NniSection):
    """One machine of :class:`RemoteConfig`."""


class ExperimentConfig(NniSection):
    """A whole experiment. ``training_service_platform``: ``local``, ``remote``, or several."""

    def __init__(
        self, training_service_platform: str | list[str] | None = None, **values: Any
    ) -> None:
        named = training_service_platform or "local"
        service = [_service(one) for one in named] if isinstance(named, list) else _service(named)
        begin = {name: AlgorithmConfig() for name in ("tuner", "assessor", "advisor")}
        super().__init__(**{**begin, "training_service": service, **values})

    def mapping(self) -> dict[str, Any]:
        """Return the file's keys. An algorithm without a name is left out."""
        whole = super().mapping()
        for key in ("tuner", "assessor", "advisor"):
            section = whole.get(key, {})
            if isinstance(section, dict) and not {"name", "className"} & section.keys():
                whole.pop(key, None)
        return {"experimentType": "hpo", **whole}


def _service(platform: str) -> NniSection:
    if platform == "local":
        return LocalConfig()
    return RemoteConfig() if platform == "remote" else NniSection(platform=platform)


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in others)


def _plain(value: Any) -> Any:
    if isinstance(value, NniSection):
        return value.mapping()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value
