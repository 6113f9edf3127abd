"""The tuner host's configuration: one JSON file of mode 0600, its only argument."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import msgspec

from dispatcher.core.resources import A_SLOT, Needs
from dispatcher.errors import InternalError
from trial_runtime.endpoint import Endpoint


class AssessorSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Names the assessor's class in the same way as the tuner's class."""

    class_name: str = ""
    file: str = ""
    code_directory: str = ""
    class_args: dict[str, Any] = {}
    builtin: str = ""


class TunerHostConfig(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Configures one tuner host. Paths are absolute; durations in seconds.

    The class is named by exactly one of ``builtin`` (a name of ours) and ``class_name``:
    ``module:Class`` looked for in ``code_directory``, or the bare class name within ``file``.
    """

    endpoint: Endpoint
    weights_root: str
    builtin: str = ""
    class_name: str = ""
    file: str = ""
    code_directory: str = ""
    class_args: dict[str, Any] = {}
    assessor: AssessorSpec | None = None
    search_space: str = "{}"  # JSON text
    multi_thread: bool = True
    save_key: str = "save_path"
    restore_key: str = "restore_path"
    weights_read_roots: tuple[str, ...] = ()
    max_parameters_bytes: int = 1 << 20
    needs_key: str = "_needs"
    needs: Needs = A_SLOT  # of trials whose parameters name none
    seed: int | None = None
    epoch: int = 0
    restore: str = ""  # file of the calls to repeat, see restore.py
    replay_call_timeout_s: float = 30.0
    snapshot_every: int = 50  # deliveries
    snapshot_period_s: float = 10.0
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    # Set by the driver for each start.
    head_pipe: int = -1  # read end of a pipe that ends with the head
    failure_file: str = ""  # gets the reason why a tuner cannot be built
    leader_file: str = ""  # names the head that leads
    switch_interval_s: float = 0.0  # how long a thread keeps the interpreter; 0: as usual
    provoke: bool = False  # requests yield between the author's lines (rehearsals)
    optimize_mode: str = ""  # the experiment's; empty: the built-in tuner's own default
    objectives: dict[str, str] = {}  # the same; empty: none
    adapter: str = ""  # ``module:object`` for code that is written for another framework
    nni: bool = False  # in its place, from a head of 0.1.0 that runs on; goes with 0.3
    experiment: str = ""
    gpus: str | None = None  # value for CUDA_VISIBLE_DEVICES; None: unchanged
    shown: str = ""  # set by the driver: file with the metrics of before, once asked for


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(TunerHostConfig)


def write(config: TunerHostConfig, path: Path) -> None:
    """Write the file, readable by its owner only from the start: it holds a secret."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(_encoder.encode(config))


def read(path: Path) -> TunerHostConfig:
    """Read the file.

    Raises:
        InternalError: it is not what :func:`write` wrote.
    """
    try:
        config = _decoder.decode(path.read_bytes())
    except (OSError, msgspec.MsgspecError) as error:
        raise InternalError(f"the tuner host cannot read its config: {error}") from error
    if config.nni and not config.adapter:
        from dispatcher.experiment.dialects import dialect_named

        return msgspec.structs.replace(config, adapter=dialect_named("nni").tuner_adapter)
    return config
