"""What users ask of a running head, turned into facts. Thread: the engine's."""

from __future__ import annotations

import json
from typing import Any

from dispatcher.core import events as e
from dispatcher.errors import UserError
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.snapshot import to_json
from dispatcher.experiment.updates import apply_update
from dispatcher.folders import ExperimentFolder
from dispatcher.submitted import spelled
from dispatcher.wiring import settings_of
from trial_runtime.failpoints import failpoint


class UserRequests:
    """Checks requests against the experiment's file, which updates change."""

    def __init__(self, config: ExperimentConfig, folder: ExperimentFolder) -> None:
        self._config = config
        self._folder = folder

    def admit(self, parameters: dict[str, Any]) -> e.TrialSubmitted:
        """A trial by hand, with canonical paths if they were looked up by who submits it.
        Raises ``UserError``."""
        save, restore = spelled(self._config, self._folder, parameters)
        try:
            return e.TrialSubmitted(json.dumps(parameters, allow_nan=False), save, restore)
        except (ValueError, TypeError) as error:
            raise UserError(f"cannot submit these parameters: {error}") from error

    def update(self, key: str, value: Any) -> list[e.Event]:
        """Change a setting, in the record as well. Raises ``UserError``."""
        before = self._config
        config = apply_update(before, key, value)
        self._folder.write_config(to_json(config))
        failpoint("head.config.updated")
        self._config = config
        events: list[e.Event] = [e.SettingsUpdated(settings_of(config))]
        if config.search_space != before.search_space:
            events.append(e.SearchSpaceUpdated(json.dumps(config.search_space)))
        return events
