"""Patterns of gitignore(5), as expressions for the paths that they fit.

Libraries translate patterns so that they fit all below a folder as well. A walk that goes down
folder by folder, as git does, needs to know whether a pattern fits this very path: after
``a/`` and ``!/a`` the folder ``a`` is taken back in, and ``a/a`` is not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r"\s",
    "blank": r" \t",
    "xdigit": "0-9a-fA-F",
    "punct": re.escape("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
}


@dataclass(frozen=True)
class Pattern:
    """A pattern. ``takes_back``: what fits it belongs to the code after all (``!``)."""

    takes_back: bool
    folders_only: bool
    expression: re.Pattern[str]

    def fits(self, path: str, *, is_folder: bool) -> bool:
        """Whether it fits ``path``, which is below the folder of its file."""
        if self.folders_only and not is_folder:
            return False
        return self.expression.fullmatch(path) is not None


def parse(line: str) -> Pattern | None:
    """The pattern of a line; None for an empty one, a comment, and one that can fit nothing."""
    line = _without_blanks(line.rstrip("\r\n"))
    if not line or line.startswith("#"):
        return None
    takes_back = line.startswith("!")
    text = line[1:] if takes_back else line
    folders_only = text.endswith("/")
    text = text[:-1] if folders_only else text
    if not text or text.endswith("/"):
        return None
    anywhere = "/" not in text
    expression = _translated(text.removeprefix("/"))
    if expression is None:
        return None
    if anywhere:
        expression = f"(?:.*/)?{expression}"
    return Pattern(takes_back, folders_only, re.compile(expression, re.DOTALL))


def _without_blanks(line: str) -> str:
    """The line without blanks at its end, but for one behind a backslash."""
    kept = line.rstrip(" ")
    escapes = len(kept) - len(kept.rstrip("\\"))
    return f"{kept} " if escapes % 2 and len(kept) < len(line) else kept


def _translated(text: str) -> str | None:
    expression, at = "", 0
    while at < len(text):
        sign = text[at]
        if sign == "*":
            end = at + len(text[at:]) - len(text[at:].lstrip("*"))
            part, at = _stars(text, at, end)
        elif sign == "?":
            part, at = "[^/]", at + 1
        elif sign == "[":
            group = _group(text, at)
            if group is None:
                return None
            part, at = group
        elif sign == "\\":
            if at + 1 == len(text):
                return None
            part, at = re.escape(text[at + 1]), at + 2
        else:
            part, at = re.escape(sign), at + 1
        expression += part
    return expression


def _stars(text: str, at: int, end: int) -> tuple[str, int]:
    """The expression of ``*``, which stays within a name; two between slashes cross folders."""
    opens = at == 0 or text[at - 1] == "/"
    if end - at != 2 or not opens:
        return "[^/]*", end
    if text[end : end + 1] == "/":
        return "(?:.*/)?", end + 1
    return (".*" if end == len(text) else "[^/]*"), end


def _group(text: str, at: int) -> tuple[str, int] | None:
    """The expression of ``[a-z]``, and where it ends; None if it does not."""
    at += 1
    inverse = text[at : at + 1] in ("!", "^") and bool(text[at : at + 1])
    at += inverse
    inner, first = "", True
    while at < len(text):
        sign = text[at]
        if sign == "]" and not first:
            if not inner:  # a range that runs backwards
                return ("[^/]" if inverse else "(?!)"), at + 1
            return f"(?!/)[{'^' if inverse else ''}{inner}]", at + 1
        first = False
        if text.startswith("[:", at) and (end := text.find(":]", at)) >= 0:
            inside = _CLASSES.get(text[at + 2 : end])
            if inside is None:
                return None
            inner, at = inner + inside, end + 2
            continue
        if sign == "\\":
            at += 1
            sign = text[at : at + 1]
            if not sign:
                return None
        low, at = sign, at + 1
        if text[at : at + 1] == "-" and text[at + 1 : at + 2] not in ("", "]"):
            at += 1
            if text[at] == "\\":
                at += 1
            high = text[at : at + 1]
            if not high:
                return None
            at += 1
            inner += f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""
        else:
            inner += re.escape(low)
    return None
