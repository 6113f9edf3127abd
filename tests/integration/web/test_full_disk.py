"""A disk that is full under the page: what cannot be kept is named, the rest is shown."""

from __future__ import annotations

import json
from pathlib import Path

from dispatcher.store.verify import verify
from tests.faults.storage.conftest import SmallDisk, small_disk
from tests.integration.web.conftest import EXPERIMENT, laid_down
from tests.support.web_server import WebServer

__all__ = ["small_disk"]

ONE = f"/experiments/{EXPERIMENT}"
NOTES = f"{ONE}/trials/1/notes"


def test_nothing_is_lost_and_everything_is_shown_while_the_disk_is_full(
    small_disk: SmallDisk, tmp_path: Path
) -> None:
    """Experiment, keys and log of the server lie on it. Mutation: a change that is half done, an
    answer without its reason, a server that ends with its log."""
    folder = laid_down(small_disk.folder / "home", 8)
    server = WebServer(folder.parent, small_disk.folder / "state")
    try:
        cookie = server.cookie()
        kept = json.loads(server.command("web", "--share", "kept", "--json"))["token"]
        assert server.ask("POST", NOTES, {"text": "before"}).status == 200
        stream = server.stream(f"{ONE}/events")
        assert stream.next("changes").data["anew"]
        trials = server.get(f"{ONE}/table")["count"]
        small_disk.fill()
        written = ["before"]
        for at in range(49):
            text = f"{at} " + "y" * 1_900
            answer = server.ask("POST", NOTES, {"text": text})
            if answer.status != 200:
                break
            written.append(text)
        problem = answer.json()["error"]
        assert "disk is full" in problem["message"]
        assert problem["hint"]
        assert (answer.status, problem["kind"]) == (502, "environment"), answer

        # All that only reads goes on, for all who had come in.
        assert [one["text"] for one in server.get(f"{ONE}/trials/1")["notes"]] == written
        assert server.get(f"{ONE}/table")["count"] == trials
        assert server.raw("GET", f"/api/v1{ONE}", {"Cookie": cookie}).status == 200
        assert server.ask("GET", ONE, token=kept).status == 200
        refused = server.command("web", "--share", "another", code=4)
        assert "nothing was changed" in refused
        assert "kept" in server.command("web", "--shares")

        small_disk.free()
        assert server.ask("POST", NOTES, {"text": "after"}).status == 200
        stream.next("changes")
        assert len(server.get(f"{ONE}/trials/1")["notes"]) == len(written) + 1
        stream.close()
        last = json.loads(server.log.read_text().splitlines()[-1])
        assert last["what"] == "trial-note"
    finally:
        assert server.end() == 0
    assert verify(folder / "journal.sqlite").ok
