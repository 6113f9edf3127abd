"""Metrics as code written for NNI reports them: any JSON value, for tuners that can read it."""

from __future__ import annotations

import sys
from typing import Any, Optional

import msgspec

from trial_runtime import session as _session
from trial_runtime import trial_wire as wire

#: Nesting beyond which a value is taken for one that contains itself.
_DEEPEST = 8


def report_any(value: Any, *, final: bool) -> None:
    """Report a value. A call for a final value returns when the agent has it.

    JSON has no NaN and no infinities, so such a metric is not reported. Of a dict whose
    ``default`` is a number the other finite entries are reported. Standard error names what is
    left out.

    Raises:
        InvalidMetric: it is no JSON value, or larger than the experiment allows.
        ReportRefused, AgentGone: as :func:`trial_runtime.report_final`.
    """
    current = _session.current()
    text, whole = _text(value, current.file.max_metric_bytes)
    if not whole:
        which = "the final result" if final else "an intermediate result"
        what = f"{which} that is not finite" if text is None else f"of {which} what is not finite"
        sys.stderr.write(f"[bequeath] {what} is left out: {value!r}\n")
    if text is None:
        return
    if isinstance(current, _session.AgentSession):
        if not final:
            current.link.post([wire.Metric(text)])
            return
        current.post_final(text)
        return
    report = current.report_final if final else current.report_intermediate
    report(value if whole else msgspec.json.decode(text))


def any_metric_text(value: Any, *, limit: int) -> str | None:
    """JSON text of a metric without its entries that are not finite; None if nothing is left.

    Raises:
        InvalidMetric: it is no JSON value, or larger than ``limit`` bytes.
    """
    return _text(value, limit)[0]


def _text(value: Any, limit: int) -> tuple[Optional[str], bool]:
    """The text, and whether it holds the whole value."""
    plain, whole = _plain(value, 0)
    if not whole:
        if not isinstance(plain, dict):
            return None, whole
        plain = {key: inner for key, inner in plain.items() if _plain(inner, 1)[1]}
        if "default" not in plain:  # without it the rest is no result
            return None, whole
    text = msgspec.json.encode(plain).decode()
    if len(text) > limit:
        from trial_runtime.api_errors import InvalidMetric

        raise InvalidMetric(
            f"a metric of {len(text):,} bytes; {limit:,} are allowed",
            hint="report summaries; larger things belong into files below NNI_OUTPUT_DIR",
        )
    return text, whole


def _plain(value: Any, depth: int) -> tuple[Any, bool]:
    """The value in JSON's own types, and whether all its numbers are finite."""
    if value is None or isinstance(value, (bool, str)):
        return value, True
    if isinstance(value, int):
        return int(value), True
    if isinstance(value, float):
        return float(value), value - value == 0
    if depth <= _DEEPEST and isinstance(value, dict):
        pairs = {str(key): _plain(inner, depth + 1) for key, inner in value.items()}
        return {key: inner for key, (inner, _) in pairs.items()}, all(
            fine for _, fine in pairs.values()
        )
    if depth <= _DEEPEST and isinstance(value, (list, tuple)):
        items = [_plain(inner, depth + 1) for inner in value]
        return [inner for inner, _ in items], all(fine for _, fine in items)
    for name in ("tolist", "item"):  # arrays, scalars of numpy, tensors
        convert = getattr(value, name, None)
        if depth <= _DEEPEST and callable(convert):
            return _plain(convert(), depth + 1)
    from trial_runtime.api_errors import InvalidMetric

    raise InvalidMetric(
        f"{str(value)[:60]!r} ({type(value).__name__}) is no JSON value",
        hint="report a number, or a dict with a number under 'default'",
    )
