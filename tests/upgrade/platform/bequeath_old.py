"""Platforms as they were written for 0.1.0, against what that version asked of one. Not changed."""

from typing import Literal

import dispatcher.platforms.protocol as bq


class Section(bq.ServiceConfig):
    platform: Literal["old", "helped", "service"]


class Files:
    def __init__(self, place):
        self.place = place


class Old(bq.AgentPlatform[Section]):
    """Its visits add the licences that a place has to the agent's configuration."""

    protocol = 1
    section = Section
    reach = "socket"

    def visit(self, given):
        return f"a visit of {given.worker}"

    def files(self, given, trial, attempt):
        return Files(f"files of {trial}.{attempt}")


class Helpers:
    """What several platforms share, under names that nobody else had."""

    driver = "docker"
    host = "h1"
    this_machine = "h1"

    def check(self, section):
        raise RuntimeError("not with this")

    def storage_domain(self):
        raise RuntimeError("not this either")

    def worker_files(self):
        raise RuntimeError("nor this")


class Helped(Helpers, Old):
    """Helpers of its own before what it has of ours."""

    has_agent = "yes, version 7"
    sends_code = property(lambda self: 1 / 0)

    def __init__(self):
        self.own_resources = False


class Service(bq.BackendPlatform[Section]):
    protocol = 1
    section = Section
    driver = "docker"
    has_agent = True

    def reach_of(self, part):
        return "socket"

    def backend(self, given):
        return f"a backend of {given.worker}"


OLD, HELPED = Old(), Helped()
