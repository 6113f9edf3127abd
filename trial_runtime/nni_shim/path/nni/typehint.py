"""Names that annotations of v3 use."""

from __future__ import annotations

from typing import Any

Parameters = Any
SearchSpace = Any
TrialMetric = Any
TrialRecord = Any
ParameterRecord = Any
Trial = Any
