"""An experiment's settings as they may be shown: with values under names of secrets masked.

All code that prints settings uses this function. References stay, since they hold no secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from dispatcher.experiment.references import ENV, FILE, LITERAL
from trial_runtime.masking import MASKED

_SECRET_NAME: Final = re.compile(
    r"(?i)(secret|token(?!i[sz])|passw|passphrase|credential|api_?key|access_?key|account_?key"
    r"|private|(^|_)key$|conn.*string)"
)

#: Its keys are names of parameters, ``tokens`` among them, and its values are no secrets.
_NO_SECRETS_BELOW: Final = frozenset({"searchSpace", "search_space"})

#: ``scheme://user:password@host``, under whatever name.
_PASSWORD_IN_URL: Final = re.compile(r"(://[^/@\s:]*:)[^/\s]+(?=@)")

#: Shorter ones are common in logs, such as ``false`` under TOKENIZERS_PARALLELISM.
_LEAST_LENGTH_IN_LOGS: Final = 8


def shown(settings: Any) -> Any:
    """Return the settings with secrets masked; keys, numbers and references stay.

    >>> shown({"machineList": [{"environment": {"API_TOKEN": "abc", "HF_TOKEN": "env:HF"}}]})
    {'machineList': [{'environment': {'API_TOKEN': '[masked]', 'HF_TOKEN': 'env:HF'}}]}
    """
    return _shown(settings, secret=False)


def written_out(settings: Any) -> Iterator[str]:
    """Yield the secrets that :func:`shown` masks, to be kept out of logs as well."""
    for written, secret in _texts(settings, secret=False):
        text = written.removeprefix(LITERAL)  # as the trial is given it
        if secret and len(text) >= _LEAST_LENGTH_IN_LOGS:
            yield text


def _shown(value: Any, *, secret: bool) -> Any:
    if isinstance(value, Mapping):
        return {
            key: inner if key in _NO_SECRETS_BELOW else _shown(inner, secret=_below(key, secret))
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_shown(each, secret=secret) for each in value]
    if not isinstance(value, str) or value.startswith((ENV, FILE)):
        return value
    return MASKED if secret and value else _PASSWORD_IN_URL.sub(rf"\1{MASKED}", value)


def _texts(value: Any, *, secret: bool) -> Iterator[tuple[str, bool]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key not in _NO_SECRETS_BELOW:
                yield from _texts(inner, secret=_below(key, secret))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each, secret=secret)
    elif isinstance(value, str) and not value.startswith((ENV, FILE)):
        yield value, secret


def _below(key: object, secret: bool) -> bool:
    return secret or _SECRET_NAME.search(str(key)) is not None
