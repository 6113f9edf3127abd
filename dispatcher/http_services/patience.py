"""The rule by which a request is repeated: that of urllib3, which this module imports.

A request that changes something is repeated where it was certainly not carried out: it never left,
or the service says that it was one too many (429). Any other is repeated after faults of the
service as well.
"""

from __future__ import annotations

import random

from urllib3.util import Retry

#: How often one request is repeated. Who asks for it waits meanwhile, and asks again later anyway.
TIMES = 2

#: Pauses without a word of the service (seconds): the first, the longest, and by how much they
#: differ, so that not all come back at once.
FIRST_S, LONGEST_S, JITTER_S = 0.5, 4.0, 0.5

#: Answers after which a request may be asked again, and those after which any may be.
PASSING, TOO_MANY = frozenset({429, 500, 502, 503, 504}), frozenset({429})


class _Patient(Retry):
    """The rule for what may be carried out twice. Other than the library's, its first pause is one,
    too."""

    def get_backoff_time(self) -> float:
        """See :class:`urllib3.util.Retry`."""
        first_s = FIRST_S + random.random() * JITTER_S  # noqa: S311 - no secret
        return max(first_s, super().get_backoff_time())


class _OnlyTooMany(_Patient):
    """The rule for what changes something: ``Retry-After`` beside a 503 promises nothing."""

    RETRY_AFTER_STATUS_CODES = TOO_MANY


def patience(*, is_repeatable: bool) -> Retry:
    """Return the rule for one request.

    Args:
        is_repeatable: whether to be carried out twice does no harm.
    """
    made = _Patient if is_repeatable else _OnlyTooMany
    return made(
        total=TIMES,
        connect=TIMES,
        read=TIMES if is_repeatable else 0,
        status=TIMES,
        other=0,
        redirect=0,
        allowed_methods=None,
        status_forcelist=PASSING if is_repeatable else TOO_MANY,
        backoff_factor=FIRST_S,
        backoff_max=LONGEST_S,
        backoff_jitter=JITTER_S,
        respect_retry_after_header=True,
        raise_on_status=False,
    )
