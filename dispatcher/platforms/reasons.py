"""Reasons in the words of others (schedulers, other packages), as a journal can hold them."""

from __future__ import annotations

#: Longest reason that is passed on (characters): each is a row of the journal.
LONGEST_REASON = 4000


def plain_reason(text: str) -> str:
    r"""Return a reason that can be written down, whoever gave it.

    Output that is no UTF-8 often comes as lone surrogates, which no journal can hold: they become
    escapes. What is too long is cut.

    >>> plain_reason("no account caf\udce9")
    'no account caf\\udce9'
    """
    if len(text) > LONGEST_REASON:
        text = f"{text[:LONGEST_REASON]}..."
    return text.encode(errors="backslashreplace").decode()
