"""The page's modules as one script, since a browser loads no modules for a page that is a file.

Each module becomes a function that returns what it exports, in the order in which they need one
another. Only the forms of ``import`` and ``export`` that our modules have are understood; any other
is refused, and a test links all of them.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Final

from dispatcher.errors import InternalError

_IMPORT: Final = re.compile(r'^import\s*(?:([\w$]+)|\{([^}]*)\})\s*from\s*"([^"]+)";', re.M)
_REEXPORT: Final = re.compile(r'^export\s*\{([^}]*)\}\s*from\s*"([^"]+)";', re.M)
_DECLARED: Final = re.compile(
    r"^export (?=(?:const|let|class|function\*?|async function)\s+([\w$]+))", re.M
)
_LISTED: Final = re.compile(r"\bexport\s*\{([^}]*)\};?\s*$")
_DEFAULT: Final = re.compile(r"^export default ([\w$]+);\s*$", re.M)
_NAMELESS: Final = re.compile(r"\bexport default function\(")
_LATER: Final = re.compile(r'\bimport\("([^"]+)"\)')
_LEFT: Final = re.compile(r"^\s*(?:import\b(?!\.)|export\b)|\bimport\(|[;}]export[ {]", re.M)


class ModuleLinker:
    """Links modules of one folder.

    Args:
        folder: where they lie.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: dict[str, str] = {}  # by path below the folder
        self._parts: list[str] = []
        self._open: list[str] = []

    def link(self, entry: str) -> str:
        """Return one script that does what a module does, with all that it needs.

        Args:
            entry: its path below the folder.

        Raises:
            InternalError: a module has a form that is not understood, or modules need one another
                in a ring.
            OSError: one cannot be read.
        """
        self._module(entry)
        script = "\n".join(['"use strict";', *self._parts, ""])
        if re.search(r"</script|<!--", script, re.I):
            raise InternalError("a module of the page would end the script that it is put into")
        return script

    def _module(self, path: str) -> str:
        """Put a module in, unless it is there; return the name by which others know it."""
        if path in self._names:
            return self._names[path]
        if path in self._open:
            ring = " → ".join([*self._open[self._open.index(path) :], path])
            raise InternalError(f"modules of the page need one another: {ring}")
        self._open.append(path)
        text = (self._folder / path).read_text(encoding="utf-8")
        exports: dict[str, str] = {}  # by name outside: an expression
        text = self._imports(path, text, exports)
        text = _taken_out(text, exports)
        if _LEFT.search(_without_comments(text)):
            raise InternalError(f"{path}: a form of import or export that cannot be linked")
        self._open.pop()
        name = self._names[path] = f"$m{len(self._names)}"
        told = ", ".join(
            f"get {outside}() {{ return {inner}; }}" for outside, inner in exports.items()
        )
        self._parts.append(f"const {name} = (() => {{\n{text}\nreturn {{ {told} }};\n}})();")
        return name

    def _imports(self, path: str, text: str, exports: dict[str, str]) -> str:
        """Replace what a module takes from others."""

        def other(name: str) -> str:
            return self._module(posixpath.normpath(posixpath.join(posixpath.dirname(path), name)))

        def taken(match: re.Match[str]) -> str:
            default, names, source = match.groups()
            if default:
                return f"const {default} = {other(source)}.default;"
            pairs = ", ".join(
                inner if inner == outside else f"{inner}: {outside}"
                for inner, outside in _pairs(names)
            )
            return f"const {{ {pairs} }} = {other(source)};"

        def passed_on(match: re.Match[str]) -> str:
            source = other(match[2])
            for inner, outside in _pairs(match[1]):
                exports[outside] = f"{source}.{inner}"
            return ""

        text = _vendored(text)
        text = _REEXPORT.sub(passed_on, _IMPORT.sub(taken, text))
        return _LATER.sub(lambda match: f"Promise.resolve({other(match[1])})", text)


def _vendored(text: str) -> str:
    """Put the first ``import`` of a module that is one long line on a line of its own."""
    return re.sub(r'^(import\{[^}]*\}from"[^"]+";)', r"\1\n", text)


def _taken_out(text: str, exports: dict[str, str]) -> str:
    """Take ``export`` out of declarations, and note what is exported."""

    def declared(match: re.Match[str]) -> str:
        exports[match[1]] = match[1]
        return ""

    def listed(match: re.Match[str]) -> str:
        exports.update({outside: inner for inner, outside in _pairs(match[1])})
        return ""

    def default(match: re.Match[str]) -> str:
        exports["default"] = match[1]
        return ""

    def nameless(match: re.Match[str]) -> str:
        exports["default"] = "$default"
        return "const $default = function("

    text = _NAMELESS.sub(nameless, _DECLARED.sub(declared, text))
    return _DEFAULT.sub(default, _LISTED.sub(listed, text))


def _pairs(names: str) -> list[tuple[str, str]]:
    """Return what stands before and behind each ``as`` of a list."""
    found = []
    for each in names.split(","):
        words = each.split()
        if words:
            found.append((words[0], words[-1]))
    return found


def _without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/|^\s*//[^\n]*", "", text, flags=re.S | re.M)
