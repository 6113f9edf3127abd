"""The list of planted faults does not rot: each applies, each names tests that exist."""

from __future__ import annotations

import pytest

from tests.mutations.catalogue import ALL
from tests.mutations.mutation import ROOT, Mutation


@pytest.mark.parametrize("mutation", ALL, ids=lambda m: m.name)
def test_it_can_still_be_planted(mutation: Mutation) -> None:
    text = (ROOT / mutation.file).read_text()
    changed = mutation.applied_to(text)
    compile(changed, mutation.file, "exec")
    for target in mutation.tests:
        assert (ROOT / target.partition("::")[0]).exists(), f"there is no {target}"


def test_each_promise_has_one_and_each_name_is_its_own() -> None:
    assert {mutation.promise for mutation in ALL} == set(range(1, 11))
    assert len({mutation.name for mutation in ALL}) == len(ALL) >= 25
