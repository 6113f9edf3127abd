"""Tuners and advisors of NNI's, as the tuner host asks about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dispatcher.nni.tuner import surroundings
from dispatcher.nni.tuner.advisor import AdvisorTuner, is_advisor
from dispatcher.nni.tuner.callbacks import Callbacks
from dispatcher.tuner_host.adapter import HostServices, Propose, TunerAdapter
from dispatcher.tuner_host.config import TunerHostConfig


class _NniTuners:
    any_keys = True

    def make_importable(self) -> None:
        surroundings.make_importable()

    def furnish(self, config: TunerHostConfig) -> None:
        surroundings.furnish(config)

    def advisor(self, tuner: Any, services: HostServices) -> AdvisorTuner | None:
        return AdvisorTuner(tuner, services) if is_advisor(tuner) else None

    def is_inherited(self, method: Callable[..., Any] | None) -> bool:
        """Whether it is a method of NNI's base class, ours under its name or a real one."""
        module = getattr(method, "__module__", None) or ""
        return module.partition(".")[0] == "nni" or module.startswith("trial_runtime.nni_shim.")

    def later_answers(self, note: Callable[[str], None], propose: Propose) -> Callbacks:
        return Callbacks(note, propose)


ADAPTER: TunerAdapter = _NniTuners()
