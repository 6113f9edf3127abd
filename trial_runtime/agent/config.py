"""The configuration file that an agent is started with (mode 0600: it names secrets)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal, Optional

import msgspec

from trial_runtime.endpoint import Endpoint
from trial_runtime.weights.remote.address import RemoteRoot

ReuseMode = Literal["none", "forked", "inProcess"]

#: Argument of an agent that may begin once a line comes in: its head has recorded the agent by
#: then. When nothing comes, that head has died, and the next one would start another agent beside
#: it.
ON_RECORD = "--once-on-record"


class MetricsSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """The metrics of a program that imports nothing of ours, and where they are read.

    ``objective``: the metric that is the trial's result; ``also``: those that stand beside it.
    ``strategies``: by name ``latest``, ``min`` or ``max``, the first if a name is missing.
    ``streams``: of its output that are read. ``file``: relative to its working directory, which is
    its own then. ``hypertune``: read the file that Google's library of that name writes.
    """

    objective: str
    also: tuple[str, ...] = ()
    strategies: dict[str, str] = {}
    streams: tuple[str, ...] = ()
    file: str = ""
    format: Literal["text", "json"] = "text"
    hypertune: bool = False
    filters: tuple[str, ...] = ()


class ProgramSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """The surroundings of a program that imports nothing of ours.

    ``parameters``: the ways by which it gets all of them: ``arguments``, ``environment``, ``file``.
    ``templates``: names of those that its command names. ``optional``: names of those that not
    every trial has, since they lie below a choice.
    """

    parameters: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    metrics: Optional[MetricsSpec] = None


class TrialSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """The way to run a trial.

    Exactly one of ``command`` (for ``bash -c``) and ``function`` (``module:function``) is set.
    Durations in seconds, sizes in bytes.
    """

    code_directory: str
    command: Optional[str] = None
    function: Optional[str] = None
    environment: dict[str, str] = {}
    timeout_s: Optional[float] = None
    stop_grace_s: float = 10.0
    max_log_bytes: int = 64 << 20
    max_log_files: int = 2
    reuse: ReuseMode = "none"
    preload: tuple[str, ...] = ()
    max_trials_per_worker: Optional[int] = None
    cpus_per_trial: Optional[int] = None
    max_metric_bytes: int = 64 << 10
    max_metrics: int = 100_000
    max_message_rate: int = 20_000  # a second, and for one attempt
    own_folders: bool = False  # each attempt begins in a working directory of its own
    checkpoint_variable: str = ""  # a further one with the folder of a command's checkpoints
    nni: bool = False  # written for NNI: its module and variables, metrics of any JSON value
    program: Optional[ProgramSpec] = None  # it imports nothing of ours


class CacheSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """The cache of weights on a host.

    ``folder``: if empty, the usual one of this host. ``always``: also where the weights root is on
    a disk of this host.
    """

    max_bytes: int
    folder: str = ""
    always: bool = False


class ResourcesConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """The resources of its host that an agent may offer beside slots.

    ``count_gpus``: whether trials are given devices (then one without any sees none).
    ``must_have_gpus``: each trial of this experiment needs one. ``gpu_indices``: the GPUs that
    count, all if None. ``min_gpu_memory``: bytes that must be free on one. ``trials_per_gpu``:
    0 if the file says nothing. ``custom``: resources that are only counted, by name.
    """

    count_gpus: bool = False
    must_have_gpus: bool = False
    gpu_indices: Optional[tuple[int, ...]] = None
    use_active_gpu: bool = False
    min_gpu_memory: int = 0
    trials_per_gpu: int = 0
    custom: dict[str, float] = {}


class BroughtArchive(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tar file of ours, by the SHA-256 of its content in hexadecimal, and its size.

    ``parts``: it lies there compressed by zlib, in so many files; 0: as one file, as it is.
    """

    digest: str
    nbytes: int
    parts: int = 0


class BroughtWheel(msgspec.Struct, frozen=True):
    """A wheel that lies among the archives. ``first``: searched before the Python's own modules.
    ``parts``: as those of an archive."""

    module: str
    digest: str
    nbytes: int
    first: bool
    parts: int = 0


class Brought(msgspec.Struct, frozen=True, omit_defaults=True):
    """Archives that :mod:`trial_runtime.begin` brings to where an agent runs, before it begins.

    ``work``: the folder to put the trees in. ``archives``: the folder there with the archives and
    wheels; empty for the one in which that program itself lies. ``asks``: a folder for questions
    to the head, which brings wheels then; empty where the Python must have all modules itself, but
    for those of ``wheels``, which the head knows to be lacking.
    ``alone``: nobody else can come near the work folder, whatever the rights of those above it.
    """

    work: str
    runtime: BroughtArchive
    code: BroughtArchive
    archives: str = ""
    asks: str = ""
    alone: bool = False
    wheels: tuple[BroughtWheel, ...] = ()

    @property
    def runtime_folder(self) -> str:
        """The folder there with our package in it."""
        return f"{self.work}/runtime/{self.runtime.digest}"

    @property
    def code_folder(self) -> str:
        """The folder there with the trials' code."""
        return f"{self.work}/code/{self.code.digest}"


class ProbeQuestions(msgspec.Struct, frozen=True, omit_defaults=True):
    """The questions to a place that is looked over before an agent begins there.

    ``answer``: the name of the file in the experiment's folder for the answer; one that the head
    has made is overwritten; a whole path names one that each node has for itself. ``marker``: the
    name of a file that the head has made in the weights root; empty for none. ``modules`` and
    ``packages``: names of those that trials need. ``code``: whether the trials' code must be there,
    and is not brought.
    """

    answer: str
    modules: tuple[str, ...]
    packages: tuple[str, ...]
    marker: str
    code: bool = True


class Renewal(msgspec.Struct, frozen=True, omit_defaults=True):
    """The way in which a scheduler takes a place back and lends it again, under the same ticket.

    ``restarts``: the variable with the number of times that it has done so. ``nodes``: the variable
    with the number of nodes that there are this time; empty: as many as ever. ``exit_code``: that
    of an agent that was asked to go, by which the scheduler knows that it is to come again.
    """

    restarts: str
    nodes: str = ""
    exit_code: int = 0


class AgentConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """The configuration of one agent.

    Folders are absolute; ``run_folder`` is short, since socket paths are.
    ``stale_timeout_s``: how long announced weights may take to appear, where parents are trained
    on other hosts than this one. ``canonical_root``, ``canonical_read_roots``: the roots as the
    head spells them, in the same order, where this host may have them at other places.
    ``root_token``: the content of the share's token file, see
    :mod:`trial_runtime.weights.storage.share`; with it an agent takes no attempt before it has
    seen that file.
    ``domain``: the storage domain of this host, if the head does not see its weights: without a
    token the agent writes one itself, and reports it.
    ``cache``: of parents' files on this host's disk; None: there is none.
    ``remote``: the weights root, if that is no folder; ``weights_root`` is then a folder of this
    host for views of it. ``runtime``: the folder of our package, where it was copied to this host,
    and ``modules`` the folders of its dependencies that this host's Python lacks.
    ``resources``: those that it may offer. ``shared_stores``: whether the head answers offers to
    shared stores. ``ticket``: a secret of this one start, which the agent shows its head; empty
    where the head knows the agent by its process. ``run_folder`` may be empty, too: the agent then
    makes one where it runs. ``brought``: what was brought there before the agent begins, if it does
    by :mod:`trial_runtime.begin`. ``nodes``: of its allocation; each of them starts with this very
    configuration, and one speaks for all. ``rank_variable``: of the environment, where the
    scheduler says which of them it is; where it is not set they take ranks as they come.
    ``launched``: whether a launcher of the place tells the processes of a trial where the others
    are: its variables count then, and not ours.
    ``renewal``: of a scheduler that lends the place anew by itself; None: none does.
    ``ways``: further ways to the head, tried in this order where the head gives no answer at
    ``head``. ``probe``: the questions of a program that looks for what this agent would need; no
    agent is started with it. ``no_weights``: why nothing can save weights there, or restore them,
    since nobody else sees the weights root; empty: it can. ``log_end_bytes``: so much of the end
    of each log is handed in with the end of an attempt, since nobody sees its files but this
    agent; 0: nothing.
    """

    worker: str
    slots: int
    head: Endpoint
    epoch: int
    run_folder: str
    experiment_folder: str
    trial: TrialSpec
    weights_root: str
    read_roots: tuple[str, ...] = ()
    save_key: str = "save_path"
    restore_key: str = "restore_path"
    head_grace_s: float = 120.0
    heartbeat_s: float = 1.0
    seed: int = 0
    experiment: str = ""
    stale_timeout_s: float = 75.0
    canonical_root: str = ""
    canonical_read_roots: tuple[str, ...] = ()
    root_token: str = ""
    cache: Optional[CacheSpec] = None
    remote: Optional[RemoteRoot] = None
    runtime: str = ""
    resources: ResourcesConfig = ResourcesConfig()
    modules: tuple[str, ...] = ()
    domain: str = ""
    shared_stores: bool = False
    ticket: str = ""
    brought: Optional[Brought] = None
    nodes: int = 1
    rank_variable: str = "BEQUEATH_RANK"
    launched: bool = False
    renewal: Optional[Renewal] = None
    ways: tuple[Endpoint, ...] = ()
    probe: Optional[ProbeQuestions] = None
    log_end_bytes: int = 0
    no_weights: str = ""

    @property
    def trials_folder(self) -> str:
        """The folder of the folders of attempts."""
        return f"{self.experiment_folder}/trials"

    @property
    def spool_path(self) -> str:
        """The file of the messages that no head has acknowledged when an agent ends."""
        return f"{self.experiment_folder}/spool-{self.worker}"

    def restarts(self, environment: Mapping[str, str] | None = None) -> int:
        """Return how often the scheduler has lent the place anew; 0 where none does, or says so."""
        given = "" if self.renewal is None else _in(environment, self.renewal.restarts)
        return int(given) if given.isascii() and given.isdigit() else 0

    def nodes_now(self, environment: Mapping[str, str] | None = None) -> int:
        """Return how many nodes there are this time: those of the file at most."""
        given = "" if self.renewal is None else _in(environment, self.renewal.nodes)
        many = int(given) if given.isascii() and given.isdigit() else self.nodes
        return max(1, min(many, self.nodes))


def _in(environment: Mapping[str, str] | None, name: str) -> str:
    return (os.environ if environment is None else environment).get(name, "")


_decoder = msgspec.json.Decoder(AgentConfig)


def read_config(path: str) -> AgentConfig:
    """Read a configuration; raises ``OSError`` or ``msgspec.MsgspecError``."""
    with open(path, "rb") as file:
        return _decoder.decode(file.read())


def encode_config(config: AgentConfig) -> bytes:
    """The content of a configuration file."""
    return msgspec.json.encode(config)
