"""Author's code imports its neighbours by plain names, whatever these names are."""

from __future__ import annotations

import json
from pathlib import Path

from dispatcher.core import events as e
from tests.integration.tuner_host.conftest import Make


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


COLLIDING = {
    "dispatcher.py": "WHO = 'the author'\n",
    "msgspec.py": "raise RuntimeError('the host must not import this')\n",
    "queue.py": "raise RuntimeError('the standard library wins')\n",
    "tuners/__init__.py": "FROM = 'their tuners'\n",
    "tuners/shapes.py": "import dispatcher\nWHO = dispatcher.WHO\n",
    "tuners/mine.py": """
import queue, random
import dispatcher
import tuners
import tuners.shapes
from tuners import NoMoreTrialError, Tuner
from tuners.base import Tuner as Base
from tuners.shapes import WHO
from helper import HELP
from . import shapes as relative

class T(Tuner):
    def generate_parameters(self, parameter_id, **kwargs):
        import dispatcher as late
        from tuners.random import RandomTuner
        return {
            "dispatcher": dispatcher.WHO, "late": late.WHO, "tuners": tuners.FROM,
            "shapes": tuners.shapes.WHO, "who": WHO, "same": Base is Tuner, "help": HELP,
            "relative": relative is tuners.shapes, "ours": RandomTuner.__name__,
            "base": tuners.base.Tuner is Tuner,
        }
    def receive_trial_result(self, *args, **kwargs): pass
""",
    "helper.py": "import dispatcher\nHELP = dispatcher.WHO + ' helps'\n",
}


def test_a_folder_with_its_own_tuners_and_dispatcher(make: Make, tmp_path: Path) -> None:
    write(tmp_path / "code", COLLIDING)
    head = make("", class_name="tuners.mine:T").start()
    head.open(0)
    assert json.loads(head.wait_for(e.Proposed, 0).parameters) == {
        "dispatcher": "the author",
        "late": "the author",
        "tuners": "their tuners",
        "shapes": "the author",
        "who": "the author",
        "same": True,
        "help": "the author helps",
        "relative": True,
        "ours": "RandomTuner",
        "base": True,
    }
    head.deliver(0)
    head.wait_for(e.EndDelivered, 0)


def test_the_class_in_a_file_of_any_name(make: Make, tmp_path: Path) -> None:
    write(tmp_path / "code", COLLIDING)
    text = """
from tuners import Tuner
import dispatcher, helper
class T(Tuner):
    def generate_parameters(self, parameter_id, **kwargs):
        return {"help": helper.HELP}
    def receive_trial_result(self, *args, **kwargs): pass
"""
    for name in ("trial_runtime.py", "tuners.py", "random.py", "my-tuner.py"):
        write(tmp_path / "code", {name: text})
        file = str(tmp_path / "code" / name)
        head = make("", class_name="T", file=file, code_directory="").start()
        head.open(0)
        assert json.loads(head.wait_for(e.Proposed, 0).parameters)["help"] == "the author helps"
        (tmp_path / "code" / name).unlink()


def test_what_author_code_finds_around_it(make: Make, tmp_path: Path) -> None:
    head = make(
        """
        import os, sys
        class T:
            def generate_parameters(self, parameter_id):
                return {"argv": sys.argv, "cwd": os.getcwd(), "stdin": sys.stdin.read(),
                        "me": __name__, "found": sys.modules[__name__].__file__}
            def receive_trial_result(self, parameter_id, parameters, value): pass
        """
    ).start()
    head.open(0)
    found = json.loads(head.wait_for(e.Proposed, 0).parameters)
    code = tmp_path / "code"
    assert found == {
        "argv": ["bequeath-tuner"],
        "cwd": str(code),
        "stdin": "",
        "me": "my_tuner",
        "found": str(code / "my_tuner.py"),
    }
