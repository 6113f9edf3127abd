"""Budgets under NNI's name: its trials get ``TRIAL_BUDGET``, and train from scratch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

BUDGET = "TRIAL_BUDGET"


def in_nnis_word(parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters of one of our Hyperbands with the budget under NNI's name."""
    own = {key: parameters[key] for key in parameters if key not in ("budget", "budget_before")}
    return {**own, BUDGET: parameters["budget"]}


def without_budget(parameters: Any) -> dict[str, Any]:
    """The parameters without the budget: the configuration."""
    known = parameters if isinstance(parameters, Mapping) else {}
    return {key: known[key] for key in known if key != BUDGET}
