"""What is seen from here of the ways from nodes to the head."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from dispatcher.findings import Severity
from dispatcher.platforms.clusters.inspection import host_of, inspect_ways, is_elsewhere
from dispatcher.platforms.slurm.section import SlurmServiceConfig

OTHER = "203.0.113.7"  # of nobody, RFC 5737


def section(**keys: Any) -> SlurmServiceConfig:
    return SlurmServiceConfig.model_validate({"platform": "slurm", **keys})


@pytest.mark.parametrize("named", ["127.0.0.1", "localhost:7070", "[::1]:7070"])
def test_the_loopback_of_nodes_that_are_other_machines(named: str) -> None:
    """Mutations: an address with a port is none; one of several nodes here excuses all."""
    nodes = ["127.0.0.1", OTHER, socket.gethostname(), OTHER]
    (found,) = inspect_ways(section(headAddress=named), nodes)
    assert found.severity is Severity.PROBLEM
    assert found.text == f"'headAddress' is {named}: on {OTHER} that is the node itself"


def test_many_nodes_are_some() -> None:
    (found,) = inspect_ways(section(headAddress="127.0.0.1"), [f"203.0.113.{n}" for n in range(9)])
    assert "203.0.113.3 and 5 more that is" in found.text


@pytest.mark.parametrize(
    "keys, nodes",
    [
        ({"headAddress": "127.0.0.1"}, []),
        ({"headAddress": "127.0.0.1"}, ["127.0.0.1", "127.0.0.3", "nobody.invalid"]),
        ({"headAddress": "login1"}, [OTHER]),
        ({"headAddress": "127.0.0.1", "channel": "folder"}, [OTHER]),
        ({}, [OTHER]),
    ],
)
def test_what_may_be_well(keys: dict[str, Any], nodes: list[str]) -> None:
    """Mutation: a name that nobody knows here is said to be another machine's."""
    assert list(inspect_ways(section(**keys), nodes)) == []


@pytest.mark.parametrize(
    "address, host",
    [("a:1", "a"), ("a", "a"), ("[::1]:7", "::1"), ("[::1]", "::1"), ("127.0.0.1", "127.0.0.1")],
)
def test_the_host_of_an_address(address: str, host: str) -> None:
    assert host_of(address) == host


def test_addresses_of_this_machine() -> None:
    assert not is_elsewhere("localhost")
    assert not is_elsewhere("127.0.0.9")
    assert is_elsewhere(OTHER)
