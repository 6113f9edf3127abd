"""Which wheels fit which Python, and what is brought of them."""

from __future__ import annotations

import re

import pytest

from dispatcher.wheelhouse import MODULES, USEFUL, HostPython, Wheel, known_wheels, plan
from dispatcher.wheelhouse.wheels import choose

LINUX = HostPython((3, 9), cpu="x86_64", libc="glibc", libc_version=(2, 31))


def host(**keys: object) -> HostPython:
    values = {name: getattr(LINUX, name) for name in LINUX.__dataclass_fields__} | keys
    return HostPython(**values)


@pytest.mark.parametrize(
    "tags, keys, fits",
    [
        ("py3-none-any", {}, True),
        ("py3-none-any", {"implementation": "pypy", "libc": ""}, True),
        ("py2.py3-none-any", {}, True),
        ("py2-none-any", {}, False),
        ("cp39-cp39-manylinux2014_x86_64", {}, True),
        ("cp39-cp39-manylinux1_x86_64", {}, True),
        ("cp310-cp310-manylinux2014_x86_64", {}, False),
        ("cp39-cp39-manylinux2014_x86_64", {"implementation": "pypy"}, False),
        ("cp39-cp39-manylinux2014_x86_64", {"implementation": "cpythont"}, False),
        ("cp39-cp39-manylinux2014_aarch64", {}, False),
        ("cp39-cp39-manylinux2014_x86_64", {"cpu": ""}, False),
        ("cp39-cp39-manylinux2014_x86_64", {"libc": "musl", "libc_version": (1, 2)}, False),
        ("cp39-cp39-musllinux_1_1_x86_64", {"libc": "musl", "libc_version": (1, 2)}, True),
        ("cp39-cp39-musllinux_1_1_x86_64", {}, False),
        ("cp39-cp39-manylinux_2_31_x86_64", {}, True),
        ("cp39-cp39-manylinux_2_32_x86_64", {}, False),
        ("cp39-cp39-manylinux_2_35_x86_64.manylinux_2_17_x86_64", {}, True),
        ("cp37-abi3-manylinux_2_17_x86_64", {}, True),
        ("cp312-abi3-manylinux_2_17_x86_64", {}, False),
        ("cp312-abi3-manylinux_2_17_x86_64", {"version": (3, 13)}, True),
        ("cp39-cp39-macosx_11_0_arm64", {}, False),
    ],
)
def test_tags(tags: str, keys: dict[str, object], fits: bool) -> None:
    assert Wheel(f"some_thing-1.0-{tags}.whl", "").fits(host(**keys)) is fits


def test_the_newest_that_fits_is_taken() -> None:
    names = ["msgspec-0.9-py3-none-any.whl", "msgspec-0.18-py3-none-any.whl"]
    names += ["msgspec-0.22-cp310-cp310-manylinux2014_x86_64.whl", "numpy-9-py3-none-any.whl"]
    chosen = choose(LINUX, ["msgspec", "zmq"], [Wheel(name, "") for name in names])
    assert chosen == {"msgspec": Wheel("msgspec-0.18-py3-none-any.whl", "")}


@pytest.mark.parametrize("cpu", ["x86_64", "aarch64"])
@pytest.mark.parametrize("libc", [("glibc", (2, 28)), ("musl", (1, 2))])
@pytest.mark.parametrize("minor", range(9, 15))
def test_there_are_wheels_for_each_python(
    minor: int, libc: tuple[str, tuple[int, int]], cpu: str
) -> None:
    one = HostPython((3, minor), cpu=cpu, libc=libc[0], libc_version=libc[1])
    assert choose(one, MODULES).keys() == MODULES.keys()


def test_the_list_names_each_file_once_by_a_whole_digest() -> None:
    wheels = known_wheels()
    assert len({wheel.file for wheel in wheels}) == len(wheels)
    for wheel in wheels:
        assert re.fullmatch("[0-9a-f]{64}", wheel.digest)
        assert wheel.project in MODULES.values()


ABSENT = "ModuleNotFoundError: No module named 'it'"


def planned(troubles: dict[str, str], versions: dict[str, str], on: HostPython = LINUX):  # type: ignore[no-untyped-def]
    return plan(on, dict.fromkeys(MODULES, "") | troubles, versions)


def test_only_what_is_absent_is_brought_and_comes_last() -> None:
    """Mutation: ours before the machine's own, and its torch meets another numpy."""
    found = planned({"msgspec": ABSENT}, {"numpy": "1.19.5", "zmq": "25.1"})
    assert found.last.keys() == {"msgspec"}
    assert not found.first
    assert found.problem("python3", LINUX) == ""


def test_what_is_too_old_is_passed_by_ours_but_for_numpy() -> None:
    found = planned({}, {"msgspec": "0.17.1", "zmq": "19.0.2", "numpy": "1.16.0"})
    assert found.first.keys() == {"msgspec", "zmq"}
    assert not found.last


def test_what_is_there_and_broken_cannot_be_helped() -> None:
    found = planned({"numpy": "ImportError: libopenblas.so.0: not found"}, {})
    assert not found.wheels
    said = found.problem("/usr/bin/python3", LINUX)
    assert "cannot import numpy (ImportError: libopenblas" in said
    assert "install there: numpy" in said


def test_what_is_only_useful_is_no_problem() -> None:
    strange = host(cpu="riscv64")
    found = planned(dict.fromkeys(USEFUL, "ImportError: broken"), {}, strange)
    assert found.problem("python3", strange) == ""
    assert found.without == ("filelock",), "nobody asks for GPUs where there is no driver"
    with_gpus = planned(dict.fromkeys(USEFUL, ABSENT), {}, host(gpus=True))
    assert with_gpus.last.keys() == set(USEFUL)


def test_a_python_that_no_wheel_fits_is_told_what_to_install() -> None:
    old = host(libc_version=(2, 12))
    found = planned(dict.fromkeys(("msgspec", "zmq"), ABSENT), {}, old)
    said = found.problem("/usr/bin/python3", old)
    assert "none that we know fits it (cpython 3.9, glibc 2.12, x86_64)" in said
    assert said.endswith("install there: msgspec pyzmq")
