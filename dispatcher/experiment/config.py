"""The experiment, as its file describes it: frozen, checked, all paths absolute.

Here are the rules for keys that are valid alone and have to agree with one another: each raises
:class:`Misfit` at the key to change. Rules within one section stand beside its keys; what needs a
look at the disk is :mod:`dispatcher.experiment.checks`.
"""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from dispatcher.experiment.addresses import is_loopback, may_lead_to
from dispatcher.experiment.algorithm import AlgorithmConfig
from dispatcher.experiment.all_keys import AllKeys, OptimizeMode
from dispatcher.experiment.builtin_names import needs_space
from dispatcher.experiment.callbacks import CALLBACKS
from dispatcher.experiment.needs import effective_needs
from dispatcher.experiment.objectives import (
    check_objectives,
    mode_of_default,
    settled_objectives,
)
from dispatcher.experiment.problems import Misfit, Misfits
from dispatcher.experiment.programs import check_program
from dispatcher.experiment.service import LOCAL
from dispatcher.experiment.services import check_workers
from dispatcher.experiment.sink_kinds import check_titles
from dispatcher.experiment.stop_when import check_ends
from tuners import space as spaces
from tuners.plain_json import JsonPath, written_path

__all__ = ["AlgorithmConfig", "ExperimentConfig"]


def _trial_is_one_thing(config: AllKeys) -> None:
    if config.trial_command is not None and config.trial_function is not None:
        raise Misfit(
            "'trialCommand' and 'trialFunction' exclude each other",
            at=("trialFunction",),
            hint="keep one of the two",
        )
    if config.trial_command is None and config.trial_function is None:
        raise Misfit(
            "needs 'trialCommand' or 'trialFunction'",
            at=("trialCommand",),
            hint="write e.g. 'trialCommand: python trial.py' or 'trialFunction: trial:main'",
        )
    for index, service in enumerate(config.services):
        if service.reuse_mode == "inProcess" and config.trial_function is None:
            listed = (index,) if isinstance(config.training_service, tuple) else ()
            raise Misfit(
                "'reuseMode: inProcess' runs functions, and this trial is a command",
                at=("trainingService", *listed, "reuseMode"),
                hint="write 'trialFunction' instead of 'trialCommand', or another reuseMode",
            )


def _this_machine_once(config: AllKeys) -> None:
    if [worker.name for _, worker in config.workers].count(LOCAL) > 1:
        raise Misfit(
            "'trainingService' names this machine twice",
            at=("trainingService",),
            hint="give one local service the slots of both",
        )


def _workers_can_be_told_apart(config: AllKeys) -> None:
    check_workers(config.services, config.usual_slots)


def _head_listens_where_agents_look(config: AllKeys) -> None:
    channel, several = config.channel, isinstance(config.training_service, tuple)
    for service, worker in config.workers:
        named = worker.address
        if not named or (channel.transport == "ipc" and is_loopback(named)):
            continue
        if channel.transport == "tcp" and may_lead_to(named, channel.listens_on):
            continue
        index = [each is service for each in config.services].index(True)
        at: JsonPath = ("trainingService", *((index,) if several else ()), "headAddress")
        raise Misfit(
            f"'{written_path(at)}' says that agents reach the head by themselves at {named}, and "
            f"it listens on {channel.listens_on} only ('channel')",
            at=at,
            hint="write, beside 'trainingService', 'channel: {transport: tcp, host: ADDRESS, "
            "beyondThisMachine: true}', or leave 'headAddress' out; the address of a gate that "
            "leads there by 'transport: tcp' is written with its port",
        )


def _memory_is_one_agents(config: AllKeys) -> None:
    if config.in_memory and [worker.name for _, worker in config.workers] != [LOCAL]:
        raise Misfit(
            "memory:// lies in one agent's process, and these trials run under several",
            at=("weightsRoot",),
            hint="name a folder or a store that all machines reach",
        )


def _several_nodes_are_one_place(config: AllKeys) -> None:
    nodes = config.trial_nodes
    if nodes == 1:
        return
    for index, service in enumerate(config.services):
        listed = (index,) if isinstance(config.training_service, tuple) else ()
        at = ("trainingService", *listed)
        if service.slots not in (None, 1):
            raise Misfit(
                f"'slots' is {service.slots}, and one trial takes all {nodes} nodes of its place "
                "('trialNodes')",
                at=(*at, "slots"),
                hint="leave 'slots' out",
            )
        if service.reuse_mode != "none":
            raise Misfit(
                f"'reuseMode: {service.reuse_mode}' keeps processes of one node, and a trial has "
                f"{nodes} nodes ('trialNodes')",
                at=(*at, "reuseMode"),
                hint="leave 'reuseMode' out",
            )
    if config.weights_root is not None and config.weights_folder is None:
        raise Misfit(
            f"'weightsRoot' is no folder, and the {nodes} nodes of a trial ('trialNodes') have to "
            "see the same weights",
            at=("weightsRoot",),
            hint="name a folder that all nodes see",
        )


def _sinks_can_be_told_apart(config: AllKeys) -> None:
    check_titles(config.sinks)
    for index, each in enumerate(config.sinks):
        if each.title == CALLBACKS:
            raise Misfit(
                f"'sinks' has one called {CALLBACKS!r}, as the callbacks are",
                at=("sinks", index, "name" if each.name else "kind"),
                hint="give it another 'name'",
            )


def _needs_are_said_once(config: AllKeys) -> None:
    effective_needs(config, config.training_service)


def _program_gets_what_it_names(config: AllKeys) -> None:
    check_program(config)


def _search_space_fits(config: AllKeys) -> None:
    strict = config.tuner.builtin and bool(config.search_space or needs_space(config.tuner.name))
    problems = spaces.problems(config.search_space, strict=strict, repeats=config.for_nni)
    if problems:
        misfits = []
        for each in problems:
            at = ("searchSpace", *each.path)
            misfits.append(Misfit(f"'{written_path(at)}' {each.message}", at=at, hint=each.hint))
        raise Misfits(misfits)


_RULES = (
    _trial_is_one_thing,
    _this_machine_once,
    _workers_can_be_told_apart,
    _head_listens_where_agents_look,
    _memory_is_one_agents,
    _several_nodes_are_one_place,
    _sinks_can_be_told_apart,
    _needs_are_said_once,
    _search_space_fits,
    check_objectives,
    check_ends,
    _program_gets_what_it_names,
)


class ExperimentConfig(AllKeys):
    """All of an experiment's settings, which agree with one another."""

    @model_validator(mode="after")
    def _keys_agree(self) -> Self:
        for rule in _RULES:
            rule(self)
        return self

    @model_validator(mode="after")
    def _settle_objectives(self) -> Self:
        object.__setattr__(self, "objectives", dict(settled_objectives(self)))
        return self

    @model_validator(mode="after")
    def _settle_optimize_mode(self) -> Self:
        of_default = mode_of_default(self.objectives)
        of_tuner = of_default or _read_mode(self.tuner.class_args.get("optimize_mode"))
        if self.optimize_mode is None:
            # Frozen for everybody else; here the value is still being made.
            object.__setattr__(self, "optimize_mode", of_tuner or "maximize")
        elif of_default is not None and of_default != self.optimize_mode:
            raise Misfit(
                f"'optimizeMode' is {self.optimize_mode}, but 'objectives' has "
                f"'default: {of_default}'",
                at=("optimizeMode",),
                hint="leave 'optimizeMode' out",
            )
        elif of_tuner is not None and of_tuner != self.optimize_mode:
            raise Misfit(
                f"'optimizeMode' is {self.optimize_mode}, but the tuner's is {of_tuner}",
                at=("optimizeMode",),
                hint="keep one of 'optimizeMode' and 'tuner.classArgs.optimize_mode'",
            )
        return self


def _read_mode(value: object) -> OptimizeMode | None:
    match value.lower() if isinstance(value, str) else None:
        case "maximize":
            return "maximize"
        case "minimize":
            return "minimize"
        case _:
            return None
