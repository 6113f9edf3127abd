"""Requests of users to a running head, turned into facts. Thread: the engine's."""

from __future__ import annotations

import json
from typing import Any

from dispatcher.core import events as e
from dispatcher.core.own_needs import BadNeeds, read_needs
from dispatcher.core.stores import PINS_KEY, BadPins, read_pins, read_version
from dispatcher.errors import UserError
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.snapshot import to_json, to_shared
from dispatcher.experiment.updates import apply_update
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.wiring.needs import needs_of
from dispatcher.wiring.settings import settings_of
from dispatcher.wiring.submitted import spelled
from trial_runtime.failpoints import failpoint


class UserRequests:
    """Checks requests against the experiment's file, which updates change."""

    def __init__(self, config: ExperimentConfig, folder: ExperimentFolder) -> None:
        self._config = config
        self._folder = folder

    def admit(self, parameters: dict[str, Any]) -> e.TrialSubmitted:
        """Make the event of a trial by hand, with canonical paths if its submitter looked them up.
        Its needs may stand beside its parameters, as in a tuner's. Raises ``UserError``."""
        save, restore = spelled(self._config, self._folder, parameters)
        key = self._config.needs_key
        rest = {name: value for name, value in parameters.items() if name != key}
        try:
            needs = (
                read_needs(parameters[key], needs_of(self._config)) if key in parameters else None
            )
            text = json.dumps(rest, allow_nan=False)
            named = None if restore is None else read_version(restore)
            reads = (*read_pins(rest), *(() if named is None else (named,)))
            return e.TrialSubmitted(text, save, restore, needs, tuple(dict.fromkeys(reads)))
        except BadPins as error:
            raise UserError(f"cannot submit these parameters: {PINS_KEY!r} {error}") from error
        except BadNeeds as error:
            raise UserError(f"cannot submit these parameters: {key!r} {error}") from error
        except (ValueError, TypeError) as error:
            raise UserError(f"cannot submit these parameters: {error}") from error

    def update(self, key: str, value: Any) -> list[e.Event]:
        """Change a setting, in the record as well. Raises ``UserError``."""
        before = self._config
        config = apply_update(before, key, value)
        self._folder.change_config(to_json(config), to_shared(config))
        failpoint("head.config.updated")
        self._config = config
        events: list[e.Event] = [e.SettingsUpdated(settings_of(config))]
        if config.search_space != before.search_space:
            events.append(e.SearchSpaceUpdated(json.dumps(config.search_space)))
        return events
