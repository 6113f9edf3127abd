"""Translates the keys for programs that import nothing of ours into what an agent gets."""

from __future__ import annotations

from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.programs import MetricsConfig, optional_names, templates_of
from dispatcher.experiment.templates import bash_text, names_in
from trial_runtime.agent.config import MetricsSpec, ProgramSpec


def command_of(config: ExperimentConfig) -> str | None:
    """The text for bash of an experiment's trials; None if they are functions."""
    if config.trial_command is None or config.for_nni:
        return config.trial_command
    return bash_text(config.trial_command, with_arguments="arguments" in config.parameters_as)


def program_of(config: ExperimentConfig) -> ProgramSpec | None:
    """The surroundings of a program; None if the file says nothing of any."""
    templates = templates_of(config)
    if not (templates or config.parameters_as or config.metrics) or config.for_nni:
        return None
    return ProgramSpec(
        parameters=config.parameters_as,
        templates=names_in([config.trial_command or ""]),
        optional=optional_names(config),
        metrics=None if config.metrics is None else _metrics(config.metrics),
    )


def _metrics(config: MetricsConfig) -> MetricsSpec:
    streams = [("stdout", config.stdout), ("stderr", config.stderr)]
    return MetricsSpec(
        objective=config.objective,
        also=config.also,
        strategies=dict(config.strategies),
        streams=tuple(name for name, is_read in streams if is_read),
        file=config.file or "",
        format=config.format,
        hypertune=config.hypertune,
        filters=config.filters,
    )
