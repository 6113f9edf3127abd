"""A head in a process of its own: ``python -m dispatcher.background FOLDER``.

The module's name is on command lines, by which :mod:`dispatcher.experiments.processes` knows
heads again; it starts and ends them.
"""

from __future__ import annotations

import gc
import signal
import sys
from pathlib import Path

from dispatcher.errors import DispatcherError, UserError

#: After the folder on the command line: lead even if another head does.
TAKE_OVER = "--take-over"


def main() -> int:
    """Lead the experiment whose folder is the first argument."""
    from dispatcher.head.collector import THRESHOLDS, walk_less

    # What is imported stays: the collector would walk it two hundred times meanwhile, in vain.
    gc.set_threshold(*THRESHOLDS)
    from dispatcher.core.model import Phase
    from dispatcher.head.head import Head
    from dispatcher.notices import Notice, NoticeKind

    last: list[str] = [""]

    def note(notice: Notice) -> None:
        if notice.kind is NoticeKind.FINISHED:
            last[0] = notice.text

    head = Head(Path(sys.argv[1]), on_notice=note, take_over=TAKE_OVER in sys.argv[2:])
    stops = iter(("drain", "now", "now"))

    def stop(number: int, _: object) -> None:
        kind = "now" if number == signal.SIGTERM else next(stops, "now")
        head.request_stop(kind, f"signal {signal.Signals(number).name}")

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    walk_less()
    try:
        phase = head.run()
    except DispatcherError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    if phase is Phase.FAILED:
        sys.stderr.write(f"{last[0]}\n")
        return UserError.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
