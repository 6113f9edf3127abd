"""The JSON text of a metric that a trial reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from trial_runtime.api_errors import InvalidMetric

#: Largest single metric, encoded (bytes), unless the experiment file says otherwise.
MAX_METRIC_BYTES = 64 << 10

_DEEPEST = 8
_encoder = msgspec.json.Encoder()


def metric_text(value: Any, *, limit: int = MAX_METRIC_BYTES) -> str:
    """A number, or a mapping with a numeric ``default``, as JSON text.

    Numpy scalars and zero-dimensional tensors count as numbers.

    Raises:
        InvalidMetric: the value is something else, is NaN or infinite, or is too large.
    """
    if type(value) is float and value - value == 0:  # by far the most common
        return repr(value)
    plain = _plain(value, "", 0)
    if isinstance(plain, dict):
        default = plain.get("default")
        if not isinstance(default, (int, float)) or isinstance(default, bool):
            raise _invalid(
                f"a mapping of metrics needs a number under 'default', not {default!r}",
                hint="the tuner sees 'default': report {'default': accuracy, 'loss': loss}",
            )
    elif not isinstance(plain, (int, float)):
        raise _invalid(
            f"a metric must be a number or a mapping with a number under 'default', "
            f"not {_short(value)}",
            hint="convert it with float(...) first",
        )
    try:
        text = _encoder.encode(plain).decode()
    except (OverflowError, UnicodeEncodeError) as error:  # half a character, a number without end
        raise _invalid(f"{_short(value)} cannot be reported: {error}") from error
    if len(text) > limit:
        raise _invalid(
            f"a metric of {len(text):,} bytes; {limit:,} are allowed",
            hint="report summaries; larger things belong into save_artefact()",
        )
    return text


def _plain(value: Any, where: str, depth: int) -> Any:
    """The value in JSON's own types. Raises where JSON has none."""
    if depth > _DEEPEST:
        raise _invalid(f"a metric nested deeper than {_DEEPEST} levels", where=where)
    if value is None or isinstance(value, (bool, str)):
        if depth == 0:
            raise _invalid(f"a metric must be a number, not {_short(value)}")
        return value
    if isinstance(value, int):
        return _whole(int(value), where)
    if isinstance(value, float):
        return _finite(float(value), where)
    if isinstance(value, Mapping):
        return {
            str(key): _plain(item, f"{where}[{str(key)!r}]", depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)]
    item_of = getattr(value, "item", None)  # numpy scalars, tensors with one element
    if callable(item_of):
        try:
            inner = item_of()
        except (TypeError, ValueError, RuntimeError) as error:
            raise _invalid(
                f"a metric must be one number, not {_short(value)}", where=where
            ) from error
        if isinstance(inner, (bool, int, float, str)):
            return _plain(inner, where, max(depth, 1) if isinstance(inner, str) else depth)
    raise _invalid(f"{_short(value)} cannot be reported", where=where)


def _invalid(message: str, *, hint: str = "", where: str = "") -> InvalidMetric:
    """Errors are loaded when one is raised: every trial would pay for them."""
    from trial_runtime.api_errors import InvalidMetric

    return InvalidMetric(message, hint=hint, where=where)


def _finite(value: float, where: str) -> float:
    if value - value != 0:
        raise _invalid(
            f"a metric must be finite, not {value!r}",
            hint="leave the report out, or stop the trial, when training has diverged",
            where=where,
        )
    return value


def _whole(value: int, where: str) -> int:
    try:
        float(value)
    except OverflowError:
        raise _invalid("a metric must be a number that a float can hold", where=where) from None
    return value


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # of a number with thousands of digits
        text = "a number too large to show"
    if len(text) > 60:
        text = text[:57] + "..."
    return f"{text} ({type(value).__name__})"
