"""A scheduler of files: NAME.job asks for a place, NAME.state tells of it, NAME.cancel ends it."""

import fcntl
import json
import subprocess
import sys
import time
from pathlib import Path

GRACE_S, STEP_S = 2.0, 0.05


class Running:
    """A job that has a place."""

    def __init__(self, job: dict) -> None:
        self.process = subprocess.Popen(job["argv"], env=job["environment"], start_new_session=True)
        self.priority, self.ends_at, self.gone = job["priority"], time.time() + job["wall_time"], ""

    def take(self, gone: str) -> None:
        """Take its place back; it has a moment to leave it."""
        if not self.gone:
            self.gone, self.ends_at = gone, time.time() + GRACE_S
            self.process.terminate()

    def state(self, cancelled: bool) -> dict:
        """How it stands, after what is due was done."""
        code, left_s = self.process.poll(), self.ends_at - time.time()
        if code is not None:
            return {"state": "ended", "gone": self.gone or ("failed" if code else "finished")}
        if left_s <= 0 and self.gone:
            self.process.kill()
        elif left_s <= 0 or cancelled:
            self.take("cancelled" if cancelled else "wall time")
        return {"state": "running", "ends_in_s": left_s}


def serve(folder: Path, seats: int) -> None:
    """Give places to jobs, the most urgent first, until there is none."""
    running: dict[str, Running] = {}
    while jobs := {path.stem: json.loads(path.read_text()) for path in folder.glob("*.job")}:
        for name, job in sorted(jobs.items(), key=lambda j: (-j[1]["priority"], j[1]["since"])):
            cancelled = (folder / f"{name}.cancel").exists()
            if name not in running and not cancelled and len(running) < seats:
                running[name] = Running(job)
            state = {"state": "ended", "gone": "cancelled"}
            if name in running:
                state = running[name].state(cancelled)
            elif not cancelled:
                weakest = min(running.values(), key=lambda one: one.priority)
                if weakest.priority < job["priority"]:
                    weakest.take("preempted")
                waiting_s = time.time() - job["since"]
                state = {"state": "waiting", "reason": "Resources", "waiting_s": waiting_s}
            (folder / f"{name}.draft").write_text(json.dumps({"name": name, **state}))
            (folder / f"{name}.draft").replace(folder / f"{name}.state")
            if state["state"] == "ended":
                running.pop(name, None)
                for kind in ("job", "cancel", "config"):
                    (folder / f"{name}.{kind}").unlink(missing_ok=True)
        time.sleep(STEP_S)


if __name__ == "__main__":
    with open(Path(sys.argv[1], "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one queue a folder
        serve(Path(sys.argv[1]), int(sys.argv[2]))
