"""``python -m dispatcher.tuner_host CONFIGFILE``, as the head's driver starts it.

Prepares the process for author's code, and runs the host.
"""

from __future__ import annotations

import faulthandler
import os
import sys
from pathlib import Path

from dispatcher.tuner_host import config as config_file
from dispatcher.tuner_host import parent_pipe
from dispatcher.tuner_host.adapter import adapter_of
from dispatcher.tuner_host.config import TunerHostConfig
from dispatcher.tuner_host.host import Host
from trial_runtime.nesting import mark_inside

#: A tuner that computes must not keep the I/O thread waiting for the interpreter (5 ms is
#: Python's default).
SWITCH_INTERVAL_S = 0.0005


def settle(config: TunerHostConfig) -> None:
    """Prepare the process for author's code: harmless arguments, its own folder, a log."""
    faulthandler.enable(all_threads=False)  # the thread that crashed is what matters
    sys.setswitchinterval(config.switch_interval_s or SWITCH_INTERVAL_S)
    sys.argv = ["bequeath-tuner"]
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    if config.gpus is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = config.gpus
    mark_inside(os.environ)
    adapter_of(config).furnish(config)
    folder = str(Path(config.file).parent) if config.file else config.code_directory
    if folder and os.path.isdir(folder):
        os.chdir(folder)
    elif config.failure_file:
        os.chdir(Path(config.failure_file).parent)


def main(argv: list[str]) -> None:
    """Run the tuner host described by the file ``argv[1]``; never returns."""
    config = config_file.read(Path(argv[1]))
    if config.head_pipe >= 0:
        parent_pipe.tie(config.head_pipe)
    settle(config)
    Host(config).run()


if __name__ == "__main__":  # multiprocessing of the author's imports this once more
    main(sys.argv)
