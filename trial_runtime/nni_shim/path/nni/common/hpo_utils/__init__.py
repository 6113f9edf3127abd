"""Functions to read search spaces, for tuners modelled on NNI's own (v2.5 and later)."""

from __future__ import annotations

from ...utils import OptimizeMode  # noqa: TID252 - this file is nni.common… to its users
from .dedup import Deduplicator
from .formatting import (
    ParameterSpec,
    deformat_parameters,
    format_parameters,
    format_search_space,
)
from .validation import validate_search_space

__all__ = [
    "Deduplicator",
    "OptimizeMode",
    "ParameterSpec",
    "deformat_parameters",
    "format_parameters",
    "format_search_space",
    "validate_search_space",
]
