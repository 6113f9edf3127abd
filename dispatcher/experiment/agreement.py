"""Rules for keys of an experiment file that are valid alone and have to agree with one another.

Each rule raises :class:`Misfit` at the key to change. Rules within one section stand beside its
keys; what needs a look at the disk is :mod:`dispatcher.experiment.checks`.
"""

from __future__ import annotations

from dispatcher.experiment.all_keys import AllKeys
from dispatcher.experiment.builtin_names import needs_space
from dispatcher.experiment.needs import effective_needs
from dispatcher.experiment.planned import LOCAL
from dispatcher.experiment.problems import Misfit
from dispatcher.experiment.search_space import parse_search_space
from dispatcher.experiment.services import check_workers


def check_agreement(config: AllKeys) -> None:
    """Apply every rule to a file that has been read section by section.

    Raises:
        Misfit: for the first rule that is broken.
    """
    for rule in _RULES:
        rule(config)


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
    check_workers(config.services, config.trial_concurrency)


def _head_listens_where_agents_look(config: AllKeys) -> None:
    direct = any(worker.address for _, worker in config.workers)
    if direct and config.channel.transport != "tcp":
        raise Misfit(
            "agents are to reach the head by themselves ('headAddress'), and it listens on "
            "this machine's loopback only",
            at=("channel",),
            hint="write 'channel: {transport: tcp, host: ADDRESS, beyondThisMachine: true}', "
            "or leave 'headAddress' out",
        )


def _memory_is_one_agents(config: AllKeys) -> None:
    if config.in_memory and [worker.name for _, worker in config.workers] != [LOCAL]:
        raise Misfit(
            "memory:// lies in one agent's process, and these trials run under several",
            at=("weightsRoot",),
            hint="name a folder or a store that all machines reach",
        )


def _needs_are_said_once(config: AllKeys) -> None:
    effective_needs(config, config.training_service)


def _search_space_fits(config: AllKeys) -> None:
    strict = config.tuner.builtin and bool(config.search_space or needs_space(config.tuner.name))
    parse_search_space(config.search_space, strict=strict, repeats=config.for_nni)


_RULES = (
    _trial_is_one_thing,
    _this_machine_once,
    _workers_can_be_told_apart,
    _head_listens_where_agents_look,
    _memory_is_one_agents,
    _needs_are_said_once,
    _search_space_fits,
)
