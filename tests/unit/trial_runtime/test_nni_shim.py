"""The module ``nni``: import paths of all releases, standalone mode, and standing aside."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from trial_runtime import nni_shim
from trial_runtime.nni_shim.path.nni import utils

ROOT = Path(__file__).parents[3]

PATHS = [
    "from nni.tuner import Tuner",
    "from nni.assessor import Assessor, AssessResult",
    "from nni import NoMoreTrialError, ClassArgsValidator, get_next_parameters",
    "from nni.utils import OptimizeMode, MetricType, NodeType, extract_scalar_history",
    "from nni.msg_dispatcher_base import MsgDispatcherBase",
    "from nni.runtime.msg_dispatcher_base import MsgDispatcherBase",
    "from nni.protocol import CommandType, send",
    "from nni.runtime.protocol import CommandType, send",
    "from nni.common import init_logger, multi_thread_enabled, multi_phase_enabled",
    "from nni.runtime.common import multi_thread_enabled",
    "from nni.env_vars import trial_env_vars, dispatcher_env_vars",
    "from nni.runtime.env_vars import trial_env_vars",
    "from nni.recoverable import Recoverable",
    "from nni.parameter_expressions import quniform, qlognormal",
    "from nni.typehint import Parameters, SearchSpace",
    "import nni.runtime.log",
    "from nni.algorithms.hpo.random_tuner import RandomTuner",
    "from nni.gridsearch_tuner.gridsearch_tuner import GridSearchTuner",
    "from nni.algorithms.hpo.medianstop_assessor import MedianstopAssessor",
    "from nni.batch_tuner.batch_tuner import BatchTuner",
    "from nni.common import enable_multi_thread, init_standalone_logger, env_args",
    "from nni.utils import init_dispatcher_logger, randint_to_quniform, to_json",
    "from nni.protocol import receive",
    "from nni.runtime.tuner_command_channel import CommandType",
    "from nni.common.serializer import dump, load, trace",
    "from nni.runtime.env_vars import _load_env_vars, _dispatcher_env_var_names",
]

SCRIPT = """
import nni
assert nni.get_next_parameter() == {}
assert nni.get_experiment_id() == nni.get_trial_id() == "STANDALONE"
assert nni.get_sequence_id() == 0
nni.report_intermediate_result(0.5)
nni.report_final_result({"default": 1, "note": "text"})
names = ["retiarii.nn.pytorch", "multi_phase.x", "platform.local", "constants"]
for name in names:
    try:
        __import__("nni." + name)
    except ImportError as error:
        assert ": " in str(error), error
    else:
        raise AssertionError(name)
assert nni.choice(1, 2, name="x") in (1, 2)
assert nni.function_choice(lambda: 3) == 3
assert 0.0 <= nni.uniform(0, 1) <= 1.0
try:
    nni.variable
except AttributeError as error:
    assert "from-nni" in str(error)
assert nni.load(nni.dump({"a": [1]})) == {"a": [1]}
"""


def run(script: str, *more: str, **environment: str) -> str:
    path = ":".join([*more, str(ROOT), nni_shim.folder()])
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_paths_of_all_releases_and_standalone_mode() -> None:
    out = run("\n".join(PATHS) + SCRIPT)
    assert out == (
        '[nni] intermediate result 0: 0.5\n[nni] final result: {"default": 1, "note": "text"}\n'
    )


UNUSED = """
import nni
from nni.experiment import Experiment
from nni.experiment.config import LocalConfig
from nni.algorithms.hpo.hyperopt_tuner import HyperoptTuner
from nni.pbt_tuner.pbt_tuner import PBTTuner
from nni.tools.nnictl import updater
for use, instead in (
    (lambda: Experiment("local"), "bequeath run SCRIPT.py"),
    (lambda: Experiment.connect(8080), "bequeath run SCRIPT.py"),
    (lambda: nni.experiment.LocalConfig(), "bequeath run SCRIPT.py"),
    (lambda: type("Mine", (HyperoptTuner,), {}), "a tuner of your own"),
    (lambda: PBTTuner(), "a tuner of your own"),
    (lambda: updater.update_searchspace(None), "the command line 'bequeath'"),
):
    try:
        use()
    except (RuntimeError, AttributeError) as error:
        assert instead in str(error), error
    else:
        raise AssertionError(instead)
"""


def test_what_a_trial_imports_and_leaves_unused_is_in_nobodys_way() -> None:
    run(UNUSED)


def test_the_environment_is_read_anew_by_who_asks_so() -> None:
    """Mutation: always the trial's."""
    script = (
        "import os; from nni.runtime import env_vars as them; "
        "os.environ['NNI_LOG_DIRECTORY'] = '/l'; os.environ['NNI_SYS_DIR'] = '/s'; "
        "tuner = them._load_env_vars(them._dispatcher_env_var_names); "
        "trial = them._load_env_vars(them._trial_env_var_names); "
        "print(tuner.NNI_LOG_DIRECTORY, trial.NNI_SYS_DIR, them.trial_env_vars.NNI_SYS_DIR)"
    )
    assert run(script) == "/l /s None\n"


def test_a_real_one_is_never_in_our_shadow(tmp_path: Path) -> None:
    (tmp_path / "nni").mkdir()
    (tmp_path / "nni" / "__init__.py").write_text("__version__ = '9.9'\n")
    (tmp_path / "nni" / "tuner.py").write_text("Tuner = 'the real one'\n")
    behind = f"import sys; sys.path.append({str(tmp_path)!r}); "
    ask = "import nni; from nni.tuner import Tuner; print(nni.__version__, Tuner)"
    assert run(behind + ask) == "9.9 the real one\n"
    assert run(ask, str(tmp_path)) == "9.9 the real one\n"


def test_nothing_is_visible_without_being_asked_for() -> None:
    script = "import importlib.util; print(importlib.util.find_spec('nni'))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.stdout == "None\n"


def test_merge_parameter() -> None:
    base = argparse.Namespace(lr=0.1, n=2, name=None)
    assert utils.merge_parameter(base, {"lr": 1, "name": "x", "n": None}) is base
    assert (base.lr, base.n, base.name) == (1, 2, "x")
    with pytest.raises(ValueError, match="no parameter 'm'"):
        utils.merge_parameter({"n": 1}, {"m": 1})
    with pytest.raises(TypeError, match="wrong type"):
        utils.merge_parameter({"n": 1}, {"n": "text"})
    assert utils.merge_parameter({"n": 1}, None) == {"n": 1}


def test_scalars_of_results() -> None:
    assert utils.extract_scalar_reward({"default": 2, "loss": 1}) == 2
    with pytest.raises(RuntimeError):
        utils.extract_scalar_reward({"loss": 1})
    assert utils.split_index({"a": {"_index": 1, "_value": {"b": 2}}}) == {"a": {"b": 2}}


def test_whole_numbers_as_tuners_of_their_time_wanted_them() -> None:
    inner = {"_name": "x", "k": {"_type": "randint", "_value": [0, 3]}}
    space = {
        "n": {"_type": "randint", "_value": [1, 9]},
        "c": {"_type": "choice", "_value": ["a", inner]},
    }
    utils.randint_to_quniform(space)
    assert space["n"] == {"_type": "quniform", "_value": [1, 9, 1]}
    assert inner["k"] == {"_type": "quniform", "_value": [0, 3, 1]}


def test_spaces_as_old_tuners_read_them() -> None:
    space = {
        "c": {"_type": "choice", "_value": ["a", {"x": {"_type": "uniform", "_value": [0, 1]}}]}
    }
    assert utils.json2space(space) == ["root[c]-choice[1][x]-uniform", "root[c]-choice"]
    drawn = utils.json2parameter(space, {}, np.random.RandomState(0), Rand=True)
    assert drawn["c"]["_index"] in (0, 1)
    kept = utils.json2parameter(
        space, {"root[c]-choice": False}, np.random.RandomState(1), oldy=drawn
    )
    assert kept["c"]["_index"] == drawn["c"]["_index"]


def test_a_trial_by_hand_finds_it_by_the_folder_that_is_said(tmp_path: Path) -> None:
    """The line of docs/from-nni.md, word by word."""
    asked = [sys.executable, "-m", "trial_runtime.nni_shim"]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    script = tmp_path / "trial.py"
    script.write_text(
        "import nni\nprint(nni.get_next_parameter(), nni.get_trial_id())\n"
        "nni.report_final_result(0.5)\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        env={"PYTHONPATH": said, "PATH": os.environ["PATH"]},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "{} STANDALONE" in done.stdout
    assert "final result: 0.5" in done.stdout


NOT_REWRITTEN = """
import nni
for call in (lambda: nni.choice(1, 2), lambda: nni.uniform(0, 1)):
    try:
        call()
    except RuntimeError as error:
        assert "useAnnotation: true" in str(error)
    else:
        raise AssertionError
"""


def test_a_trial_whose_calls_were_not_rewritten_draws_nothing_by_itself() -> None:
    run(NOT_REWRITTEN, BEQUEATH_SESSION="somewhere")
