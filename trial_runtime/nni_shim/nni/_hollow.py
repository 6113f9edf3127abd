"""Names that can be imported and no more: whoever uses one is told what to do instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class _Hollow(type):
    """The kind of such a name: a class that can be neither called, nor asked, nor derived from."""

    sentence: str

    def __call__(cls, *_args: Any, **_options: Any) -> Any:
        raise RuntimeError(cls.sentence)

    def __getattr__(cls, name: str) -> Any:
        raise AttributeError(cls.sentence)


def hollow_names(module: str, sentence: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module that has any name.

    Args:
        module: its name.
        sentence: what to say of each name to who uses it.
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
