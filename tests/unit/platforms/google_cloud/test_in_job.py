"""What a job finds out about itself, of variables as Vertex AI and AI Platform set them."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from dispatcher.platforms.google_cloud import in_job
from dispatcher.platforms.google_cloud.in_job import rank_in


@pytest.mark.parametrize("first, second", [
    ("workerpool0", "workerpool1"), ("master", "worker"), ("chief", "worker"),
])  # fmt: skip
def test_the_first_of_the_first_pool_is_rank_0(first: str, second: str) -> None:
    """Mutation: the index alone, by which two nodes are rank 0."""
    cluster = {second: ["c:2222", "d:2222"], first: ["a:2222"]}
    tasks = [(first, 0), (second, 0), (second, 1)]
    ranks = [
        rank_in({"CLUSTER_SPEC": json.dumps({
            "cluster": cluster, "environment": "cloud", "task": {"type": pool, "index": index},
        })})
        for pool, index in tasks
    ]  # fmt: skip
    assert ranks == [0, 1, 2]


def test_a_token_goes_nowhere_that_an_answer_names() -> None:
    """The library sends all headers on to where a redirection leads. Mutation: a token of the
    account of the job, to anybody."""
    got: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            """Be silent."""

        def do_GET(self) -> None:
            got.append(self.headers["Authorization"])
            self.send_response(302 if self.path == "/secret" else 200)
            self.send_header("Location", f"http://localhost:{server.server_port}/other")
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/secret"
        assert in_job.json_at(address, {"Authorization": "Bearer t0ken"}) == {}
        server.shutdown()
    assert got == ["Bearer t0ken", None]
