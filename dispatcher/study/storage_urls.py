"""URLs of Optuna's storages: the file that one names, and texts without its password."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote

_HIDDEN: Final = "***"

#: What stands between a name and the host; a password may hold any mark, unquoted too.
_USER: Final = re.compile(r"(?s)://[^:/?@]*:(?P<password>[^?]*)@")

#: Settings behind the question mark that some drivers take a password from.
_SETTING: Final = re.compile(r"(?i)[?&][^=&]*(?:pass|pwd|secret|token)[^=&]*=(?P<password>[^&#]*)")

#: Marks at which a driver may take a password that was not quoted apart.
_MARKS: Final = re.compile(r"[@:/?#\[\]]")


def file_of_sqlite(url: str) -> Path | None:
    """Return the file that a URL of SQLite names; None for another storage, or one in memory."""
    scheme, _, rest = url.partition("://")
    path, _, settings = rest.partition("?")
    path = path.partition("/")[2]
    if scheme.lower().partition("+")[0] != "sqlite" or path in ("", ":memory:"):
        return None
    if path.startswith("file:") and "uri=" in settings:
        path = unquote(path.removeprefix("file:"))
        return None if path == ":memory:" or "mode=memory" in settings else Path(path)
    return Path(path)


def without_password(text: str, url: str) -> str:
    """Return a text with three stars for the password of a URL, however it is spelled there.

    Args:
        text: one that may repeat the URL, or a part of it.
        url: of a storage.
    """
    found = [*_USER.finditer(url), *_SETTING.finditer(url)]
    secrets: set[str] = set()
    for password in (each["password"] for each in found):
        for whole in (password, unquote(password)):
            secrets |= {whole, *_MARKS.split(whole)}
    for secret in sorted(secrets - {""}, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", _HIDDEN, text)
    return text
