"""Text of others (trials, tuners, names of files) made harmless for a terminal or a page.

Only :class:`SafeText` is sent to a terminal. :func:`made_safe` converts other text, and the one
function that prints (``console.emit``) calls it, so that no caller can forget it.
"""

from __future__ import annotations

import re

# C0 without tab, DEL, C1, the marks that change the direction of text, and lone surrogates
# (bytes that were no UTF-8), which a terminal cannot be sent at all.
_UNSAFE = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_PICTURES = {number: chr(0x2400 + number) for number in range(0x20)} | {0x7F: "␡"}


class SafeText(str):
    """Text that may be sent to a terminal unchanged: made harmless, and perhaps styled after that.

    Text that is added is made harmless; any other operation gives plain text, whose styles are
    then shown instead of obeyed.
    """

    __slots__ = ()

    def __add__(self, other: str) -> SafeText:
        return SafeText(f"{self}{made_safe(other)}")

    def __radd__(self, other: str) -> SafeText:
        return SafeText(f"{made_safe(other)}{self}")


def made_safe(text: str) -> SafeText:
    r"""Return a text of any number of lines without anything that a terminal would obey.

    >>> made_safe("one\ntwo\x07")
    'one\ntwo␇'
    """
    if isinstance(text, SafeText):
        return text
    return SafeText("\n".join(safe_text(line) for line in text.split("\n")))


def safe_text(text: str) -> str:
    r"""Return one line without anything that a terminal would obey; it stays visible.

    >>> safe_text("done\x1b[2J")
    'done␛[2J'
    """
    if text.isprintable():  # what is unsafe is never printable; most texts are short and safe
        return text
    return _UNSAFE.sub(lambda match: _PICTURES.get(ord(match[0]), "�"), text)


def safe_lines(text: str) -> str:
    r"""Return several harmless lines; of one that was overwritten (progress bars) the last state.

    >>> safe_lines("10%\r20%\r\nok")
    '20%\nok'
    """
    return "\n".join(safe_text(_last_state(line)) for line in text.split("\n"))


def keep_lines(text: str) -> str:
    r"""Return several lines, each harmless; none is left out.

    >>> keep_lines("one\ntwo\x07")
    'one\ntwo␇'
    """
    return "\n".join(safe_text(line) for line in text.splitlines())


def safe_json(text: str) -> str:
    r"""Return the same JSON document, with characters that a terminal would obey as escapes.

    >>> safe_json('{"a": "\u202e"}')
    '{"a": "\\u202e"}'
    """
    return _UNSAFE.sub(lambda m: m[0] if m[0] == "\n" else f"\\u{ord(m[0]):04x}", text)


def _last_state(line: str) -> str:
    return line.rstrip("\r").rpartition("\r")[2]
