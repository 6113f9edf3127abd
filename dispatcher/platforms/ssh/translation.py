"""An agent's configuration as it must be on another machine. Pure but for secrets looked up."""

from __future__ import annotations

from msgspec.structs import replace

from dispatcher.platforms.agents.attended import Told
from dispatcher.platforms.agents.carried_secrets import environment_there, variables_of_agent
from dispatcher.platforms.agents.named_variables import named_variables
from dispatcher.platforms.ssh.machine import Machine
from dispatcher.platforms.ssh.provisioning import Fitted
from trial_runtime import carried
from trial_runtime.agent.config import AgentConfig
from trial_runtime.agent.link.path_mapping import on_another_host


def translate(
    config: AgentConfig, machine: Machine, fitted: Fitted, *, address: str, token: str
) -> Told:
    """The configuration with that machine's paths and its end of the tunnel.

    References of the trials' environment are resolved here, where they mean something; there
    they name variables of the agent.

    Args:
        config: as it would be on this machine.
        machine: the one it is for.
        fitted: the folders there.
        address: HOST:PORT at which that machine reaches our ROUTER.
        token: of the share below the weights root.

    Raises:
        LookupError: a reference leads nowhere.
    """
    wanted, modules = config.trial.environment, fitted.modules
    environment = variables_of_agent(wanted, machine.environment) | carried.variables(*modules)
    variables = environment_there(wanted, machine.environment)
    root = machine.weights_root
    if config.remote is not None:  # views of a store lie on the machine's own disk
        # Of this experiment and this worker alone: an agent removes all views that it finds.
        own_part = f"{config.experiment}/{config.worker}"
        root = f"{root}/{own_part}" if root else f"{folder_there(config, fitted)}/weights"
        environment = named_variables(config.remote.options) | environment
    moved = dict(zip(config.read_roots, machine.read_roots, strict=False))
    there = on_another_host(config, token=token, weights_root=root, read_roots=moved)
    there = replace(
        there,
        head=replace(config.head, address=f"tcp://{address}"),
        experiment_folder=folder_there(config, fitted),
        run_folder="",  # known there
        runtime=fitted.runtime,
        modules=(*modules.last, *modules.first),
        trial=replace(
            config.trial, code_directory=fitted.code, environment=variables, own_folders=True
        ),
    )
    return Told(there, environment)


def folder_there(config: AgentConfig, fitted: Fitted) -> str:
    """The experiment's folder on that machine."""
    return experiment_folder(fitted.folder, config.experiment, config.worker)


def experiment_folder(work_folder: str, experiment: str, worker: str) -> str:
    """The folder of one worker of an experiment on a machine; homes may be shared by several.

    Args:
        work_folder: of the machine, absolute there.
        experiment: its id.
        worker: its name.
    """
    return f"{work_folder}/experiments/{experiment}/{worker}"
