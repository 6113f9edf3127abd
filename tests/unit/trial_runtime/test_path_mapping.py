"""Roots that a host has mounted at other places than its head: in, out, and in the middle."""

from __future__ import annotations

import pytest

from tests.support.workers import LOCAL
from trial_runtime import facts
from trial_runtime.agent.config import AgentConfig, TrialSpec
from trial_runtime.agent.link.path_mapping import PathMapping, on_another_host
from trial_runtime.endpoint import Endpoint


def config(**more: object) -> AgentConfig:
    told: dict[str, object] = {
        "worker": "a",
        "slots": 1,
        "head": Endpoint("ipc:///x"),
        "epoch": 1,
        "run_folder": "/r",
        "experiment_folder": "/e",
        "trial": TrialSpec("/code", command="true"),
        "weights_root": "/mnt/w",
        "canonical_root": "/srv/weights",
    }
    return AgentConfig(**(told | more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "there, here",
    [
        ("7", "7"),
        ("a/../7", "a/../7"),
        ("/srv/weights/7", "/mnt/w/7"),
        ("/srv//weights/./a/../7", "/mnt/w/7"),
        ("/srv/weights", "/mnt/w"),
        ("/srv/weights2/7", "/srv/weights2/7"),
        ("/srv/pre/bert", "/data/pre/bert"),
        ("/srv/weights/pre/x", "/mnt/w2/x"),  # a read root inside the root, mounted on its own
        ("/elsewhere", "/elsewhere"),
    ],
)
def test_paths_on_their_way_in(there: str, here: str) -> None:
    told = config(
        canonical_read_roots=("/srv/pre", "/srv/weights/pre"),
        read_roots=("/data/pre", "/mnt/w2"),
    )
    assert PathMapping(told).here(there) == here


@pytest.mark.parametrize(
    "here, there",
    [
        ("/mnt/w/7: is cut short", "/srv/weights/7: is cut short"),
        ("below '/mnt/w'.", "below '/srv/weights'."),
        ("in /mnt/w.", "in /srv/weights."),
        ("/mnt/w2/7 and /mnt/w.old/7", "/mnt/w2/7 and /mnt/w.old/7"),
        ("/a/mnt/w/7", "/a/mnt/w/7"),
        ("nothing of the kind", "nothing of the kind"),
    ],
)
def test_texts_on_their_way_out(here: str, there: str) -> None:
    assert PathMapping(config()).for_head(here) == there


def test_names_that_contain_each_other_are_translated_once() -> None:
    swapped = config(
        weights_root="/w",
        canonical_root="/w/w",
        read_roots=("/w/w",),
        canonical_read_roots=("/w",),
    )
    assert PathMapping(swapped).for_head("/w/1 and /w/w/1") == "/w/w/1 and /w/1"


def test_an_order_to_start_has_both_paths_of_this_host() -> None:
    order = facts.StartAttempt(LOCAL, 1, 1, "{}", "/srv/weights/1", "0", "ab", "bequeath")
    moved = PathMapping(config()).order(order)
    assert (moved.save_path, moved.restore_path) == ("/mnt/w/1", "0")
    assert moved.restore_digest == "ab"
    bare = facts.StartAttempt(LOCAL, 1, 1, "{}")
    assert PathMapping(config()).order(bare) == bare


def test_the_same_place_needs_nothing() -> None:
    plain = PathMapping(config(canonical_root=""))
    order = facts.StartAttempt(LOCAL, 1, 1, "{}", "/srv/weights/1")
    assert plain.order(order) is order
    assert plain.for_head("/mnt/w") == "/mnt/w"


def test_what_an_agent_on_another_host_is_told() -> None:
    head = config(canonical_root="", weights_root="/srv/weights", read_roots=("/pre", "/more"))
    moved = on_another_host(head, token="t", weights_root="/mnt/w", read_roots={"/pre": "/x"})
    assert (moved.weights_root, moved.canonical_root) == ("/mnt/w", "/srv/weights")
    assert (moved.read_roots, moved.canonical_read_roots) == (("/x", "/more"), ("/pre", "/more"))
    same = on_another_host(head, token="t")
    assert (same.weights_root, same.root_token) == ("/srv/weights", "t")
    assert PathMapping(same).here("/srv/weights/1") == "/srv/weights/1"
