"""The page for users who come from NNI, written from the tables that the code follows."""

# ruff: noqa: E501 - rows of tables are one line each

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from typer.core import TyperCommand, TyperGroup

from dispatcher.cli.lazy_group import CommandEntry, load
from dispatcher.experiment.translated_keys import Does, Row
from dispatcher.nni.commands.verbs import NNI
from dispatcher.nni.files import algorithms
from dispatcher.nni.files.algorithms import Algorithm
from dispatcher.nni.files.clusters.catalogue import CLUSTERS, GONE, Cluster
from dispatcher.nni.files.tables import ANNOTATIONS, SECTIONS

_WORDS = {
    Does.KEEP: "same",
    Does.SPECIAL: "same",
    Does.DROP: "not needed",
    Does.WHEN_ON: "same",
    Does.FALSE_ONLY: "not when on",
    Does.NOTHING: "no effect, with a warning",
    Does.REFUSE: "not",
}

_HEAD = """\
# From NNI

<!-- Generated from dispatcher/nni by `make docs`; edits here are lost. -->

Experiment files, tuners, assessors and trials written for NNI run here as they are:

```
bequeath run config.yml             # v1, v2 or v3: nothing to change
bequeath nni create -c config.yml   # in the words of nnictl
bequeath convert config.yml         # the same under our keys, with the reason for each
```

A file is taken for one of NNI's if it has `trainingServicePlatform` (v1), a key or an algorithm that
only NNI has, or if the code it names imports `nni`. `compatibility: none` says that it is ours,
`compatibility: nni` that it has our keys and code written for NNI. A key is honoured, or refused
by name with what to do instead, at its line in your own file; none is dropped silently.

## What is different in such an experiment

| | NNI | here |
|---|---|---|
| `multiThread: true` | a pool of as many threads as the machine has cores; the last blocked one stops results, trial ends and pings: a deadlock without a message | a thread for each request, results on a way of their own, and a report of which request waits for which where nothing can go on |
| `multiThread` absent or `false` | two threads since v0.6: `trial_end` beside all else | one call at a time: result, then end, then the next request |
| requests | one for each trial that has ended, `trialConcurrency` in all; if all of them wait, nothing happens ever again | the same: a request follows when the result and the end of a trial were delivered. If all of them wait, one more is asked for after ten seconds (at once if they wait by `wait_for`), up to `lookahead`, and a line says so; `lookahead` in the file asks ahead from the beginning, so that no slot idles while children wait |
| `NoMoreTrialError` | the slot is lost for good | asked again after the next result, unless the tuner keeps its callback; the search is over when nothing runs; a callback that nothing is left to call is not waited for, and other requests take its place |
| `st_callback` | any number of answers | an id whose callback is kept is not asked again; the first answer counts, others are logged; after a restart it is asked where its answer came |
| an exception in a tuner | ends the dispatcher | is kept with its traceback; `onTunerError` says what follows |
| a restart | running trials are lost or run again; the tuner starts empty | trials are found again, the tuner is rebuilt from the journal; `load_checkpoint` is not called, as it would count results twice |
| metrics | any JSON value | any JSON value; NaN and infinity are left out with a line in the trial's log: of a dict with a finite `default` those entries, else the result |
| weights | your own paths | your own paths: not confined, kept or digested, unless the file adds `weightsRoot` |
| failed trials | not tried again | not tried again, unless the file adds `trialRetries` |
| code on other machines | a copy, without what `.nniignore` names | the same; `.nniignore` and `.bequeathignore`, by git's rules |
| other machines | any host key is accepted | its key must be known: `bequeath hosts add` |
| passwords, tokens and keys in the file | shown in the profile and on the web page | looked up in your file when needed, copied nowhere, in no log |
| processes of a trial | the first one is killed | all of them |
"""

_SERVICES = """\
## Training services

A file runs on the platform that stands for its training service. [The guides](choosing-a-platform.md) have what each needs on this machine; what is missing is
named before anything is asked for. Keys of ours may stand in NNI's section as well: `bringCode`, `volumes`, `sharedFolder`.
"""

_AFTER_SERVICES = """\
What NNI does by itself on clusters is written out, and `bequeath convert` shows it:

- **Jobs.** One is asked for when a trial needs it, `trialConcurrency` at most, and takes trial after trial (`allocations`); with `reuse: false` or
  `reuseMode: false` each trial has a job of its own.
- **Code** is brought to them (`bringCode`). NNI's storage is mounted where NNI has it, and logs lie there.
- **The way back.** `nniManagerIp` is the address at which jobs reach this machine (`headAddress`, `channel`). Pods need it; jobs that share a folder with this machine do without.
- **Roles.** `ps`, `worker`, `master` and `taskRoles` are the pods of one trial (`trialNodes`, `roles`). The master speaks, else the first worker or the first of `taskRoles`
  whose success counts; what the others report is dropped. Where their commands differ, `trialCommand` asks for `BEQUEATH_ROLE`.
- **Secrets.** A token, a password or a key of a cloud in the file is looked up there when it is needed, and copied nowhere. References, `env:NAME` and `file:PATH`, may stand in
  its place.
- **Old versions.** `apiVersion` of Kubeflow's operators is `v1`; the operators that read `v1alpha2` to `v1beta2` are gone. OpenPAI is asked by an application token: logging in
  by `passWord` went with its YARN.
"""

_ANNOTATED = """\
## Annotated code

With `useAnnotation: true` the search space is read from the strings in the trial's code, by NNI's keys
(`<module>/<name>/<type>`), and trials run a copy in the experiment's folder in which the strings have
become calls. Your own files stay as they are; lines keep their numbers, so that a traceback points into
your file. An annotation that cannot be honoured is named with its file and line, also by `bequeath
validate`. [`examples/nni_classic/annotated`](../examples/nni_classic/annotated/train.py) is such a
trial.
"""

_PHASES = """\
## Multi-phase

`multiPhase: true` let a running job ask for parameters again. A trial has its parameters once here, and
each phase becomes a trial of its own:

| in NNI's code | write |
|---|---|
| a loop around `nni.get_next_parameter()` in the trial | its body; what one phase leaves for the next goes into a file, in a folder that the parameters name |
| `generate_parameters(parameter_id, trial_job_id)` | a list of chains that are ready for their next phase; with none ready, `raise NoMoreTrialError`: you are asked again after the next result |
| `receive_trial_result(…, trial_job_id)` | note the result, and put the chain back with its next phase |
| `MultiPhaseTuner` | `Tuner` |
| `multiPhase: true` | nothing |

[`phases_tuner.py`](../examples/nni_classic/phases_tuner.py) and
[`phases_trial.py`](../examples/nni_classic/phases_trial.py) are such a pair;
`bequeath run examples/nni_classic/config_phases.yml` runs them. Where the phases of one chain hand on
weights, `weightsRoot` and `tuners.Tuner.wait_for` keep and check them as well ([for authors of
tuners](tuner-authors.md)).
"""

_TRIAL = """\
## Trials

A real `nni` in the trial's own environment is what `import nni` gives, and the agent reads the file
by which it speaks; otherwise it is ours. A line in the trial's log says so.

| function | here |
|---|---|
| `nni.get_next_parameter()`, `get_next_parameters`, `get_parameters` | same: at once, and `None` from the second call on |
| `nni.get_current_parameter(tag)` | same |
| `nni.report_intermediate_result`, `nni.report_final_result` | same; a second final result is recorded and does not count |
| `nni.get_experiment_id`, `get_trial_id`, `get_sequence_id` | same; a trial's id is its number, as text |
| `nni.utils.merge_parameter` | same |
| `nni.trace`, `nni.dump`, `nni.load`, `nni.common.serializer` | `trace` hands back what it is given; JSON, nothing is pickled |
| `nni.choice` and others of annotated code, `nni.smartparam` | same, where `useAnnotation` is on; by hand they draw at random |
| `nni.common.hpo_utils` (v2.5 and later) | same, for tuners modelled on NNI's own |
| `nni.retiarii`, `nni.nas`, `nni.compression`, and whatever else is not here | not: an `ImportError` that says what to do |
| `nni.algorithms.hpo.*`, `nni.<name>_tuner`, `nni.tools` | can be imported, as some trials do without need; using them raises an error that says what to do, but for `RandomTuner`, `GridSearchTuner`, `BatchTuner`, `MedianstopAssessor` and `CurvefittingAssessor`, which are ours |
| `nni.experiment` | in scripts that `bequeath run SCRIPT.py [ARG]…` runs and in those that they start, in other programs names that raise an explanation when they are used: `Experiment` with `id` (known before the start), `run`, `start`, `stop`, `resume`, `view`, `get_*`, `list_trial_jobs`, `export_data`, `update_*` and `kill_trial_job`; `connect` finds [a port](#nnis-rest) of this machine; passwords in a script are refused |
| `nnicli` (v1.9), `nni.experiment.Experiment().start_experiment(FILE)` (v2.0) | not: refused with what to do; `bequeath run FILE` does the same |
| by hand: `PYTHONPATH=$(python -m trial_runtime.nni_shim) python trial.py`, where no NNI is installed | NNI's standalone mode: `{}`, `STANDALONE`, reports are printed |

| variable | here |
|---|---|
| `NNI_PLATFORM` | `local`, also on other machines |
| `NNI_EXP_ID`, `NNI_TRIAL_JOB_ID`, `NNI_TRIAL_SEQ_ID` | same |
| `NNI_SYS_DIR`, `NNI_OUTPUT_DIR` | the attempt's own folder, with `parameter.cfg` and `.nni/` |
| `NNI_CODE_DIR` | the code folder, in which the trial begins |
| `MULTI_PHASE`, `REUSE_MODE` | `false` |
| `CUDA_VISIBLE_DEVICES` | set whenever the file names a number of GPUs; with 0 there are none |
"""

_TUNER = """\
## Tuners and assessors

Import paths of v0.5, v1, v2 and v3 all work: `nni.tuner`, `nni.assessor`, `nni.utils`,
`nni.common`, `nni.parameter_expressions`, `nni.recoverable`, `nni.runtime.*`, `nni.env_vars`.
`super().__init__()` may be forgotten, and methods may take fewer arguments than NNI came to give.

| method | here |
|---|---|
| `generate_parameters(parameter_id, **kwargs)` | same; `st_callback` for those who take it |
| `generate_multiple_parameters(ids, **kwargs)` | same, with lists of one id |
| `receive_trial_result(parameter_id, parameters, value, **kwargs)` | better: once for each trial, before its end; `customized` and `trial_job_id` for those who take them |
| `trial_end(parameter_id, success, **kwargs)` | better: always after the result, never beside it |
| `update_search_space(search_space)` | same; `{}` if the file has none |
| `_accept_customized_trials()` | same, for trials by `bequeath trial submit` |
| `import_data(data)` | same, by `bequeath experiment import`; repeated when the tuner is rebuilt; `resume` does not call it |
| `load_checkpoint`, `save_checkpoint` | not called: the journal has what they were for |
| `get_checkpoint_path()` | same: a folder of the experiment |
| `_on_exit()` | same, also when the experiment is stopped |
| `assess_trial(trial_job_id, trial_history)` | same; an exception counts as "go on" and is shown |

An advisor of one's own, a subclass of `nni.msg_dispatcher_base.MsgDispatcherBase` or
`nni.runtime.msg_dispatcher_base.MsgDispatcherBase`, stands where a tuner would:

| message | here |
|---|---|
| `handle_initialize`, `handle_update_search_space` | same; `Initialized` may be sent |
| `handle_request_trial_jobs(1)` | one trial at a time, when nothing that it has sent before waits |
| `send(CommandType.NewTrialJob, …)`, `self.send` | same, asked for or not, from any thread; ids may be anything |
| `handle_report_metric_data` | same; the value as JSON text for code that decodes it (v1.5 and later), else as it is; after a restart all are delivered again, between the ends they came between |
| `handle_trial_end` | same; `SUCCEEDED`, `EARLY_STOPPED` if it ended the trial itself, else `FAILED` |
| `send(CommandType.KillTrialJob, …)` | same: the trial counts as stopped early |
| `NoMoreTrialJobs` | not needed: the search is over when nothing runs that could make it send |
| `SendTrialJobParameter` | not: a trial gets its parameters once |
| `handle_import_data` | same, by `bequeath experiment import` |
| `handle_add_customized_trial` | not called: trials by `bequeath trial submit` run without it |
| `multiThread` | no difference: one message after another, so that no end overtakes its result |
| `json_tricks`, and `schema`, by which tuners check their arguments as NNI's own do | the installed ones: `pip install 'bequeath[nni]'` brings both, as NNI did |
| a real `nni` in bequeath's own environment | refused: its advisors speak with its own manager only |
"""


def page() -> str:
    """Return the text of ``docs/from-nni.md``."""
    parts = [_HEAD, _services(), _keys(), _algorithms(), _TUNER, _commands(), _REST, _TRIAL]
    parts += [_annotations(), _PHASES]
    return "\n".join(parts)


def _annotations() -> str:
    rows = (f"| `@nni.{name}` | {here} |" for name, here in ANNOTATIONS.items())
    return "\n".join([_ANNOTATED, "| annotation | here |", "|---|---|", *rows, ""])


def _keys() -> str:
    lines = ["## Keys of experiment files", ""]
    for title, rows in SECTIONS.items():
        lines += [f"### {title}", "", "| key | here | our key | note |", "|---|---|---|---|"]
        lines += [_key(key, row) for key, row in rows.items()]
        lines.append("")
    return "\n".join(lines)


def _services() -> str:
    lines = ["| NNI | here | in files of | its own section of v1 |", "|---|---|---|---|"]
    lines += ["| `local` | `local` | v1, v2, v3 | `localConfig` |"]
    lines += ["| `remote` | `ssh` | v1, v2, v3 | `machineList`, `remoteConfig` |"]
    lines += [_service(each) for each in CLUSTERS]
    lines += ["| `hybrid` | a list of services | v1; a list since v2 | `hybridConfig` |"]
    lines += [f"| `{word}` | not: {text}; {hint} |" for word, (text, hint) in GONE.items()]
    return "\n".join([_SERVICES, *lines, "", _AFTER_SERVICES])


def _service(cluster: Cluster) -> str:
    names = ", ".join(f"`{name}`" for name in cluster.names)
    versions = [*(["v1"] if cluster.v1 else []), *(["v2", "v3"] if cluster.v2 else [])]
    config = f"`{cluster.config}`" if cluster.config else ""
    return f"| {names} | `{cluster.ours}` | {', '.join(versions)} | {config} |"


def _key(key: str, row: Row) -> str:
    native = f"`{row.native}`" if row.native and row.native != key else ""
    return f"| `{key}` | {_WORDS[row.does]} | {native} | {row.note.replace('|', ',')} |"


def _algorithms() -> str:
    lines = ["## Built-in algorithms", "", "| NNI | here | class arguments | note |"]
    lines.append("|---|---|---|---|")
    for table in (algorithms.TUNERS, algorithms.ASSESSORS):
        lines += _rows(table)
    lines += [
        "",
        "Arguments in brackets have no counterpart: with NNI's default they are taken, any other "
        "value is refused by name. A stand-in is logged when the experiment starts.",
        "",
    ]
    return "\n".join(lines)


def _rows(table: Mapping[str, Algorithm]) -> Iterator[str]:
    for each in table.values():
        here = f"`{each.native}`" if each.native else "not"
        taken = [
            f"`{name}`" if argument.native or name == "tpe_args" else f"[`{name}`]"
            for name, argument in each.arguments.items()
        ]
        stands = "stand-in: " if each.stand_in else ""
        yield f"| `{each.nni}` | {here} | {', '.join(taken)} | {stands}{each.note} |"


_VERBS = """\
## Command line

`bequeath nni` takes the commands of `nnictl`; each calls the function of a command of our own.
There is no `nnictl` of ours that could hide a real one: `alias nnictl='bequeath nni'` where none
is. Ids of experiments are ours (`NAME-xxxxxx`), ids of trials their numbers.

| NNI | here | options | |
|---|---|---|---|
"""

_AFTER_VERBS = """\
| `nnictl --version` | same | `-v` | Print bequeath's version. |
| `python launch.py`, with `nni.experiment` | same | | `bequeath run launch.py` |
| REST, at a port that listens always | same, at a port that you ask for | `--port`, `--url_prefix` | [NNI's REST](#nnis-rest); ours is [another one](rest.md) |
"""

_REST = """\
## NNI's REST

Scripts, NNI's own client and NNI's own page find an experiment of ours at a port of this machine, once it is asked for:

```
bequeath nni create -c config.yml --port 8080   # closes when the experiment is stopped
bequeath nni serve ID --port 8080               # of any experiment, running or over; Ctrl-C closes it
bequeath web --nni-port 8080=ID                 # beside our own page
```

```python
from nni.experiment import Experiment  # nni 3.0 from PyPI, in an environment of its own

experiment = Experiment.connect(8080)
print(experiment.get_job_statistics())
experiment.update_max_trial_number(500)
```

NNI's page is shown where `nni` 3.0 is installed beside bequeath, or by `bequeath nni serve ID --page ENVIRONMENT`, which names an environment that has it. It
loads nothing of other machines here, so that its icons are empty boxes. Over 1,000 trials [ours](web.md) is made for more.

| route below `/api/v1/nni` | here |
|---|---|
| `GET /version` | bequeath's version, as text |
| `GET /check-status` | same: INITIALIZED, RUNNING, STOPPING, STOPPED, DONE, ERROR |
| `GET /experiment`, `/experiment-metadata`, `/experiments-info` | same; `params` has NNI's keys (v2), `pid` is our head's, secrets are masked |
| `PUT /experiment?update_type=` TRIAL_CONCURRENCY, MAX_TRIAL_NUM, MAX_EXEC_DURATION, SEARCH_SPACE | same: of the profile that one value counts |
| `DELETE /experiment` | same: stops it; it can be resumed |
| `GET /trial-jobs`, `?status=`, `/trial-jobs/ID`; `/job-statistics` | same; requests without parameters are no trials yet |
| `POST /trial-jobs`, `DELETE /trial-jobs/ID` | same: a trial by hand, and the end of one |
| `GET /metric-data`, `/metric-data/ID`, `?type=`, `/metric-data-range/FIRST/LAST`, `/metric-data-latest` | same; of the attempt that counts |
| `GET /export-data`, `POST /experiment/import-data` | same |
| `GET /trial-file/ID/` stdout, stderr, trial.log; `/logs/` nnimanager.log, dispatcher.log | the last MiB, wherever the trial ran |
| `GET /tensorboard-tasks` | empty; other routes of TensorBoard are refused (501): `bequeath tensorboard ID` |
| `POST /experiment`, `PUT /experiment/cluster-metadata` | refused (501): `bequeath nni create` |
| `GET /experiment/imported-data` | not |

Errors are `{"error": TEXT}`, with the statuses of [ours](rest.md): 404 for what is not there, 503 where no head runs.

NNI's manager listens on every interface and asks nobody who they are. Here the port is one of loopback, and the kernel is asked whose each connection is: another user of the
machine gets nothing, nor does a page of another site in your own browser (Host, Origin and Sec-Fetch rules as [for the page](web.md#who-may-do-what)). Where a system
does not tell whose a connection is, as macOS, a secret prefix is made; clients then need it (`url_prefix`). From another machine: `ssh -L 8080:127.0.0.1:8080 HOST`.
What was changed over it is written into `nni/logs/PORT.log` of the state folder (`~/.local/state/bequeath`).

A port that `create`, `resume` or `view` has opened is a process of its own: it goes on when the head is killed, answers DONE when all is over, and closes when the experiment is
stopped or deleted, or when nobody has asked for an hour and nothing runs.
"""

#: Verbs that nnictl has not.
_OURS = ("serve",)

#: The beginning of an option's help, if the option is not honoured.
MARKS = {"Refused": "refused", "Not needed": "not needed"}


def _commands() -> str:
    """Return the section about the command line, read off the commands themselves."""
    return _VERBS + "".join(_verb_rows((), NNI)) + _AFTER_VERBS


def _verb_rows(path: tuple[str, ...], table: Mapping[str, CommandEntry]) -> Iterator[str]:
    for name, entry in table.items():
        command = load(name, entry)
        if isinstance(command, TyperGroup):
            yield from _verb_rows((*path, name), command.table)  # type: ignore[attr-defined]
        else:
            yield _verb_row(" ".join((*path, name)), command)


def _verb_row(verb: str, command: TyperCommand) -> str:
    text = " ".join((command.help or "").split("\n\n")[0].split()).replace("|", "\\|")
    if text.startswith("Refused: "):
        return f"| `nnictl {verb}` | not | | {text.removeprefix('Refused: ')} |\n"
    if verb in _OURS:
        return f"| none | `bequeath nni {verb}` | {_options(command.params)} | {text} |\n"
    return f"| `nnictl {verb}` | same | {_options(command.params)} | {text} |\n"


def _options(parameters: list[Any]) -> str:
    by_kind: dict[str, list[str]] = {"": [], **{word: [] for word in MARKS.values()}}
    for one in parameters:
        if one.param_type_name == "option" and one.name != "help" and not one.hidden:
            mark = next((word for text, word in MARKS.items() if one.help.startswith(text)), "")
            by_kind[mark].append(f"`{one.opts[0]}`")
    parts = [f"{kind}: {', '.join(names)}" if kind else ", ".join(names)
             for kind, names in by_kind.items() if names]  # fmt: skip
    return "; ".join(parts)
