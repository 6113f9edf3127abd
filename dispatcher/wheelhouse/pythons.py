"""A Python on some machine, as far as wheels care."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: The C library in a wheel's platform tag, oldest spellings included.
_PLATFORM = re.compile(r"(?P<libc>manylinux|musllinux)_(?P<major>\d+)_(?P<minor>\d+)_(?P<cpu>\w+)")
_OLD_NAMES = {
    "manylinux1_": "manylinux_2_5_",
    "manylinux2010_": "manylinux_2_12_",
    "manylinux2014_": "manylinux_2_17_",
}
_LIBCS = {"glibc": "manylinux", "musl": "musllinux"}


@dataclass(frozen=True)
class HostPython:
    """A Python.

    Attributes:
        version: major and minor.
        implementation: ``cpython``, or another one, for which no compiled wheel fits.
        cpu: as uname has it, such as ``x86_64``; empty where wheels for it would not fit, as in a
            32-bit Python of a 64-bit system.
        libc: ``glibc``, ``musl`` or nothing, where it is neither.
        libc_version: major and minor.
        gpus: whether there is a driver of GPUs for a module to talk with.
    """

    version: tuple[int, int]
    implementation: str = "cpython"
    cpu: str = ""
    libc: str = ""
    libc_version: tuple[int, int] = (0, 0)
    gpus: bool = False

    def __str__(self) -> str:
        """Text for people."""
        python = f"{self.implementation} {self.version[0]}.{self.version[1]}"
        libc = f"{self.libc} {self.libc_version[0]}.{self.libc_version[1]}" if self.libc else ""
        return ", ".join(part for part in (python, libc, self.cpu) if part)

    def runs(self, python_tag: str, abi_tag: str, platform_tag: str) -> bool:
        """Whether a wheel with these tags fits. Pure.

        Args:
            python_tag: such as ``cp311`` or ``py3``.
            abi_tag: such as ``cp311``, ``abi3`` or ``none``.
            platform_tag: such as ``manylinux_2_28_x86_64`` or ``any``.
        """
        return self._has_interface(python_tag, abi_tag) and self._has(platform_tag)

    def _has_interface(self, python_tag: str, abi_tag: str) -> bool:
        major, minor = self.version
        if abi_tag == "none":
            return python_tag == f"py{major}"
        if self.implementation != "cpython" or not python_tag.startswith(f"cp{major}"):
            return False
        oldest = int(python_tag[3:] or 0)
        if abi_tag == "abi3":
            return oldest <= minor
        return oldest == minor and abi_tag == python_tag

    def _has(self, platform_tag: str) -> bool:
        if platform_tag == "any":
            return True
        for old, new in _OLD_NAMES.items():
            if platform_tag.startswith(old):
                platform_tag = new + platform_tag[len(old) :]
        match = _PLATFORM.fullmatch(platform_tag)
        if match is None or not self.cpu:
            return False
        built_for = (int(match["major"]), int(match["minor"]))
        return (
            _LIBCS.get(self.libc) == match["libc"]
            and built_for <= self.libc_version
            and match["cpu"] == self.cpu
        )
