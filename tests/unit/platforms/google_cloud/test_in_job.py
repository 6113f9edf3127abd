"""What a job finds out about itself, of variables as Vertex AI and AI Platform set them."""

from __future__ import annotations

import json

import pytest

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
