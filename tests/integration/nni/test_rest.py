"""NNI's REST of an experiment that runs: real heads, trials, ports and users."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from dispatcher.control.client import RunFile
from dispatcher.folders.status import is_led
from tests.integration.cli.conftest import Place, place
from tests.support.nni_port import API, NniPort, printed_link
from tests.support.processes import processes_of
from tests.support.trackers import free_port

__all__ = ["place"]

SERVED = "NNI's page and REST: "


def created(place: Place, *words: str) -> NniPort:
    """An experiment of which two trials run, with a port; ``nni create`` has opened it."""
    process = place.start(
        "nni", "create", "-c", "experiment.yml", "--port", str(free_port()), *words
    )
    link = printed_link(process, SERVED)
    out, _ = process.communicate()
    place.forget(process)
    assert process.returncode == 0
    assert out.strip() == place.experiment.name, "scripts read the id"
    place.wait_until_running()
    return NniPort.at(link)


def statuses(port: NniPort) -> dict[str, str]:
    return {one["trialJobId"]: one["status"] for one in port.json("/trial-jobs")}


def endpoints_of(place: Place) -> list[psutil.Process]:
    return [one for one in processes_of(place.experiment) if "serve" in one.cmdline()]


def test_an_experiment_is_seen_and_steered_from_create_to_stop(place: Place) -> None:
    port = created(place)
    assert port.json("/check-status") == {"status": "RUNNING", "errors": []}
    assert statuses(port) == {"0": "RUNNING", "1": "RUNNING"}
    assert port.json("/job-statistics") == [{"trialJobStatus": "RUNNING", "trialJobNumber": 2}]
    assert [one["data"] for one in port.json("/metric-data/0")] == ['"0.5"']
    raw = port.raw("GET", f"{API}/trial-file/0/trial.log")
    assert b"trial 0" in raw.body
    assert raw.headers["Content-Type"].startswith("text/plain")
    assert b"is empty" in port.raw("GET", f"{API}/trial-file/0/stderr").body

    run = RunFile.read(place.experiment)
    assert run is not None
    line = port.json("/experiment-metadata")
    assert (line["pid"], line["port"], line["status"]) == (run.pid, port.port, "RUNNING")

    changed = port.json("/experiment")
    changed["params"]["maxTrialNumber"] = 4
    port.json("/experiment?update_type=MAX_TRIAL_NUM", "PUT", json.dumps(changed))
    assert port.json("/experiment")["params"]["maxTrialNumber"] == 4
    assert place.json("status")["experiment"]["max_trials"] == 4
    number = port.json("/trial-jobs", "POST", '{"n": 77}')["sequenceId"]
    port.json("/trial-jobs/0", "DELETE")
    place.wait_until(lambda: statuses(port)["0"] == "USER_CANCELED", "trial 0 is ended")
    place.wait_until(lambda: statuses(port).get(str(number)) == "RUNNING", "the trial by hand")
    rows = {str(one.id): one.state for one in place.trials()}
    assert rows[str(number)] == "running"

    port.json("/experiment", "DELETE")
    place.wait_until(lambda: not is_led(place.experiment), "it has stopped")
    assert "NNI's REST" in json.dumps(place.json("status"))
    place.wait_until(lambda: not endpoints_of(place), "its port closes as NNI's does")
    assert not port.is_open


def test_scripts_that_wait_for_the_end_hear_it(place: Place) -> None:
    port = created(place)
    place.go()
    place.wait_until(lambda: port.json("/check-status")["status"] == "DONE", "it is done")
    assert set(statuses(port).values()) == {"SUCCEEDED"}
    results = port.json("/export-data")
    assert [json.loads(one["value"]) for one in results] == [float(n) for n in range(6)]
    assert port.json("/experiment")["endTime"] > 0
    assert port.json("/experiment-metadata")["pid"] is None
    (endpoint,) = endpoints_of(place)
    port.json("/experiment", "DELETE")
    endpoint.wait(60)
    assert not port.is_open


def test_nnictl_stop_finds_an_experiment_by_its_port(place: Place) -> None:
    port = created(place)
    assert "no experiment of yours" in place("nni", "stop", "--port", str(free_port()), code=3)
    place("nni", "stop", "--port", str(port.port))
    place.wait_until(lambda: not is_led(place.experiment), "it has stopped")
    place.wait_until(lambda: not endpoints_of(place), "its port closes")


def test_a_head_that_is_killed_is_seen_and_one_that_comes_back_as_well(place: Place) -> None:
    port = created(place)
    run = RunFile.read(place.experiment)
    assert run is not None
    os.kill(run.pid, signal.SIGKILL)
    place.wait_until(lambda: port.json("/check-status")["status"] == "STOPPED", "it is seen")
    assert len(port.json("/trial-jobs")) == 2, "the store is there"
    answer = port.raw("POST", f"{API}/trial-jobs", {"Content-Type": "application/json"}, "{}")
    assert answer.status == 503
    place("resume", "--background")
    place.wait_until(lambda: port.json("/check-status")["status"] == "RUNNING", "it goes on")
    place.go()
    place.wait_until(lambda: port.json("/check-status")["status"] == "DONE", "it is done")


def test_a_port_that_somebody_has_begins_nothing(place: Place) -> None:
    port = created(place)
    folders = list(place.kept.iterdir())
    said = place("nni", "create", "-c", "experiment.yml", "--port", str(port.port), code=3)
    assert f"port {port.port}" in said
    assert list(place.kept.iterdir()) == folders
    said = place("nni", "serve", "--port", str(port.port), code=3)
    assert f"shows the experiment {place.experiment.name}" in said


@pytest.mark.skipif(os.getuid() != 0, reason="only root has processes of others")
def test_another_user_of_the_machine_gets_nothing(place: Place) -> None:
    port = created(place)
    code = (
        "import encodings.idna, http.client, os, sys\n"
        "os.setuid(65534)\n"
        "for method, path in (('GET', '/check-status'), ('DELETE', '/experiment')):\n"
        "    one = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]))\n"
        f"    one.request(method, '{API}' + path)\n"
        "    print(one.getresponse().status)\n"
    )
    for host in ("127.0.0.1", "::1"):
        done = subprocess.run(
            [sys.executable, "-c", code, host, str(port.port)], capture_output=True, text=True
        )
        assert done.stdout.split() == ["403", "403"], done
    assert port.json("/check-status")["status"] == "RUNNING"


def test_it_listens_on_this_machine_only_and_below_its_prefix(place: Place) -> None:
    port = created(place, "--url_prefix", "a/b")
    assert port.link.endswith("/a/b/")
    (endpoint,) = endpoints_of(place)
    listening = {one.laddr.ip for one in endpoint.net_connections() if one.status == "LISTEN"}
    assert listening <= {"127.0.0.1", "::1"}
    assert "127.0.0.1" in listening
    assert port.json("/check-status")["status"] == "RUNNING"
    assert port.raw("GET", f"{API}/check-status").status == 404


def test_it_is_served_of_an_experiment_that_is_over_until_one_ends_it(
    place: Place, tmp_path: Path
) -> None:
    place.go()
    place("run", "experiment.yml")
    port = NniPort(place.kept, tmp_path / "state", "--port", "0")
    assert port.json("/check-status")["status"] == "DONE"
    assert len(port.json("/trial-jobs")) == 6
    answer = port.raw("DELETE", f"{API}/experiment")
    assert answer.status == 503
    assert port.is_open
    assert port.end() == 0


def test_it_is_served_beside_the_page_and_ends_with_it(place: Place) -> None:
    place("create", "experiment.yml")
    place.wait_until_running()
    number = free_port()
    process = place.start("web", "--port", "0", "--nni-port", f"{number}={place.experiment.name}")
    port = NniPort.at(printed_link(process, "NNI's REST: "))
    assert port.port == number
    assert port.json("/check-status")["status"] == "RUNNING"
    assert process.stdout is not None
    assert "/login?once=" in process.stdout.readline()
    process.kill()
    process.communicate()
    place.forget(process)
    place.wait_until(lambda: not port.is_open, "it has ended")
    for given in ("x", "80=", "70000"):
        assert "PORT" in place("web", "--port", "0", "--nni-port", given, code=2)
