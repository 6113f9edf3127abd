"""Secrets kept out of what is logged, journalled and shown."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable

#: What stands in the place of a secret.
MASKED = "[masked]"

#: Values shorter than this are no secrets, and would turn up in any text.
LEAST_LENGTH = 4


class Mask:
    """Replaces known secrets in texts. May be given more at any time, from one thread.

    >>> Mask(["hunter2"])("the password is hunter2")
    'the password is [masked]'
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: tuple[str, ...] = ()
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Mask these secrets as well: each as a whole, and each of its lines."""
        known = set(self._secrets)
        for secret in secrets:
            for part in {secret, *secret.splitlines()}:
                plain = part.strip()
                if len(plain) >= LEAST_LENGTH:
                    # As it is, and as it looks inside of JSON or a repr.
                    known |= {plain, json.dumps(plain)[1:-1], repr(plain)[1:-1]}
        # The longest first: one may be the beginning of another.
        self._secrets = tuple(sorted(known, key=len, reverse=True))

    @property
    def longest(self) -> int:
        """The characters of the longest secret; 0 if there is none."""
        return max(map(len, self._secrets), default=0)

    def __call__(self, text: str) -> str:
        """The text without the secrets."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, MASKED)
        return text


class MaskFilter(logging.Filter):
    """Masks the records of a logger, tracebacks included."""

    def __init__(self, mask: Mask) -> None:
        super().__init__()
        self._mask = mask

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record; always true."""
        record.msg, record.args = self._mask(record.getMessage()), None
        if record.exc_info:
            record.exc_text = self._mask(logging.Formatter().formatException(record.exc_info))
        return True
