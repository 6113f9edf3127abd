"""Rules of what does not belong to the code: ``.bequeathignore``, ``.nniignore``, read as git does.

Patterns are those of gitignore(5), in the code folder and in any folder below, the nearest
file first. ``.gitignore`` itself is not read: what git leaves out, such as data and built
modules, is often just what a trial needs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dispatcher.code_archive.pattern import Pattern, parse
from dispatcher.errors import UserError

FILE_NAMES = (".nniignore", ".bequeathignore")  # rules of the later one count

#: Never sent, whatever the rules: history holds what was taken out of the code on purpose.
HISTORY = frozenset({".git", ".hg", ".svn"})

#: Left out unless a rule takes them back in: caches and installed packages.
BUILT_IN = (
    ".venv/",
    "__pycache__/",
    "*.pyc",
    "node_modules/",
    ".ipynb_checkpoints/",
    ".mypy_cache/",
    ".pytest_cache/",
    ".ruff_cache/",
    ".hypothesis/",
    ".tox/",
    ".nox/",
)

#: Not sent unless a rule takes them back in: files that usually hold keys and passwords.
SECRETS = (
    ".env*",
    "*.pem",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".pypirc",
    ".git-credentials",
    ".aws/",
    ".ssh/",
    ".gnupg/",
    ".kube/",
)
_SPECIAL = re.compile(r"([\\*?\[\]!# ])")
_ESCAPED = r"\\\1"
_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class Rules:
    """The rules for one folder: its own, then those of the folders above.

    ``base`` is the folder's path below the code folder, ``""`` for that itself.
    """

    base: str
    patterns: Sequence[Pattern]  # the one that counts most at the end
    above: Rules | None

    def leaves_out(self, path: str, *, is_folder: bool) -> bool:
        """Whether ``path`` (below the code folder, with slashes) does not belong to the code.

        Not asked for what lies in a folder that is left out: as with git, nothing in there
        can be taken back in.
        """
        if path.rpartition("/")[2] in HISTORY:
            return True
        rules: Rules | None = self
        while rules is not None:
            below = path[len(rules.base) + 1 :] if rules.base else path
            for pattern in reversed(rules.patterns):
                if pattern.fits(below, is_folder=is_folder):
                    return not pattern.takes_back
            rules = rules.above
        return False


def built_in_rules() -> Rules:
    """The rules above all others."""
    return _rules("", BUILT_IN, None)


def secret_rules(names: Iterable[str]) -> Rules:
    """The rules for files that are not sent since they are likely to be a secret.

    Args:
        names: files that are known to be one, below the code folder, with slashes.
    """
    exact = [f"/{_SPECIAL.sub(_ESCAPED, name)}" for name in names]
    return _rules("", [*SECRETS, *exact], None)


def below(rules: Rules, above: Rules) -> Rules:
    """Rules of the code folder with others above them."""
    return Rules(rules.base, rules.patterns, above)


def rules_in(folder: Path, base: str, above: Rules) -> Rules:
    """The rules of a folder: ``above`` itself where it has no file of its own. Reads files.

    Args:
        folder: the folder.
        base: its path below the code folder, ``""`` for that itself.
        above: the rules of the folder above.

    Raises:
        UserError: a file cannot be read as text.
    """
    lines: list[str] = []
    for name in FILE_NAMES:
        path = folder / name
        try:
            with path.open("rb") as file:
                content = file.read(_MOST_BYTES + 1)
            if len(content) > _MOST_BYTES:
                raise UserError("is longer than 1 MiB", where=str(path))
            lines += content.decode().split("\n")
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"cannot be read: {error}", where=str(path)) from error
    return _rules(base, lines, above) if lines else above


def is_environment(folder: str) -> bool:
    """Whether a folder is a virtual environment, whatever its name: its Python is a link out of
    the code, and to no other machine's."""
    return os.path.exists(f"{folder}/pyvenv.cfg")


def _rules(base: str, lines: Iterable[str], above: Rules | None) -> Rules:
    patterns = [pattern for line in lines if (pattern := parse(line)) is not None]
    return Rules(base, patterns, above)
