"""Results of another experiment, imported by users for the tuner of this one."""

from __future__ import annotations

import json
from typing import Any

from dispatcher.errors import UserError

_FORM = (
    """write '[{"parameter": {…}, "value": 0.9}, …]', as 'bequeath nni experiment export' does"""
)


def results_text(rows: list[dict[str, Any]]) -> str:
    """Return the rows as JSON text for the tuner, each of ``parameter`` and ``value``.

    A value that is a text is JSON within JSON, as NNI exports it; other keys are left out.

    Raises:
        UserError: a row is no result; the message names the first one.
    """
    if not rows:
        raise UserError("there is no result among these data", hint=_FORM)
    results = [_result(number, row) for number, row in enumerate(rows, 1)]
    try:
        return json.dumps(results, allow_nan=False)
    except (ValueError, TypeError) as error:
        raise UserError(f"these results are no JSON: {error}", hint=_FORM) from error


def _result(number: int, row: dict[str, Any]) -> dict[str, Any]:
    missing = [key for key in ("parameter", "value") if key not in row]
    if missing:
        raise UserError(f"result {number} has no {missing[0]!r}", hint=_FORM)
    value = row["value"]
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            text = f"the value of result {number} is no JSON: {value[:60]!r}"
            raise UserError(text, hint=_FORM) from error
    return {"parameter": row["parameter"], "value": value}
