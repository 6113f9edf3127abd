"""Names that can be imported and no more: using one raises an error with what to do instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class _Hollow(type):
    """The metaclass of such a name: it cannot be called or derived from, and has no attributes."""

    sentence: str

    def __call__(cls, *_args: Any, **_options: Any) -> Any:
        raise RuntimeError(cls.sentence)

    def __getattr__(cls, name: str) -> Any:
        raise AttributeError(cls.sentence)


def hollow_names(module: str, sentence: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module that has any name.

    Args:
        module: its name.
        sentence: follows the name in the text of the error.
    """

    def get(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        whole = f"{module}.{name} {sentence}"

        def refuse(*_args: Any, **_options: Any) -> None:
            raise RuntimeError(whole)

        names = {"sentence": whole, "__module__": module, "__init_subclass__": refuse}
        return _Hollow(name, (), names)

    return get
