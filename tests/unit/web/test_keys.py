"""Secrets that let people in: how long they count, and what ends them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dispatcher.errors import UserError
from dispatcher.operations.operation import Scope
from dispatcher.web.keys import COOKIE_S, LINK_S, Keys


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def keys(tmp_path: Path, clock: Clock) -> Keys:
    return Keys(tmp_path / "web", clock)


def test_the_token_lasts_and_is_long(keys: Keys, tmp_path: Path) -> None:
    assert Keys(tmp_path / "web").token == keys.token
    assert len(keys.token) >= 43  # 256 bits
    owner = keys.by_token(keys.token)
    assert owner is not None
    assert owner.scopes == set(Scope)
    for wrong in ("", keys.token[:-1], keys.token + "x", keys.token.upper()):
        assert keys.by_token(wrong) is None


def test_a_link_counts_once_and_not_for_ever(keys: Keys, clock: Clock) -> None:
    code = keys.new_link()
    assert keys.take_link(code) == keys.owner
    assert keys.take_link(code) is None
    late = keys.new_link()
    clock.now += LINK_S + 1
    assert keys.take_link(late) is None


def test_links_are_few(keys: Keys) -> None:
    first = keys.new_link()
    for _ in range(200):
        last = keys.new_link()
    assert keys.take_link(first) is None
    assert keys.take_link(last) is not None


def test_a_cookie_ends(keys: Keys, clock: Clock) -> None:
    value, seconds = keys.cookie(keys.owner)
    assert seconds == COOKIE_S
    found = keys.by_cookie(value)
    assert found is not None
    assert found.by_cookie
    assert keys.still_counts(found)
    clock.now += COOKIE_S + 1
    assert keys.by_cookie(value) is None
    assert not keys.still_counts(found)


@pytest.mark.parametrize("place", range(4))
def test_no_part_of_a_cookie_can_be_changed(keys: Keys, place: int) -> None:
    """Mutation: a part that is not signed."""
    parts = keys.cookie(keys.owner)[0].split(".")
    other = {0: "cmVhZGVy", 1: str(int(parts[1]) + 1), 2: "x", 3: "0" * len(parts[3])}[place]
    changed = [other if at == place else part for at, part in enumerate(parts)]
    assert keys.by_cookie(".".join(changed)) is None
    assert keys.by_cookie(".".join(parts)) is not None


@pytest.mark.parametrize("value", ["", ".", "...", "a.b.c.d", "." * 900, "☃.1.x.y", "x" * 2_000])
def test_nonsense_is_no_cookie(keys: Keys, value: str) -> None:
    assert keys.by_cookie(value) is None


def test_a_share_reads_until_it_ends(keys: Keys, clock: Clock) -> None:
    token = keys.share("paper", 2)
    found = keys.by_token(token)
    assert found is not None
    assert found.scopes == {Scope.READ}
    assert keys.cookie(found)[1] == 2 * 86_400  # no longer than the share
    logs = keys.by_token(keys.share("logs", 1, logs=True))
    assert logs is not None
    assert logs.scopes == {Scope.READ, Scope.LOGS}
    clock.now += 2 * 86_400 + 1
    assert keys.by_token(token) is None
    keys.share("paper", 2)  # the name is free again


def test_a_share_that_is_revoked_counts_no_more(keys: Keys, tmp_path: Path, clock: Clock) -> None:
    """Mutation: a cookie that is good for the next share of that name."""
    token = keys.share("paper", 2)
    identity = keys.by_token(token)
    assert identity is not None
    cookie = keys.cookie(identity)[0]
    Keys(tmp_path / "web", clock).revoke("paper")  # as another process
    assert keys.by_token(token) is None
    assert keys.by_cookie(cookie) is None
    assert not keys.still_counts(identity)
    keys.share("paper", 2)
    assert keys.by_cookie(cookie) is None


def test_two_who_change_the_list_at_once_both_have_what_they_wanted(tmp_path: Path) -> None:
    """A page and a command. Mutation: the list is written as it was read before the other did."""
    folder = tmp_path / "web"
    every = [Keys(folder) for _ in range(4)]

    def share(place: int) -> None:
        for number in range(25):
            every[place].share(f"{place}-{number}", 1.0)
            if number % 5 == 4:
                every[place].revoke(f"{place}-{number}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(share, range(4)))
    assert len(Keys(folder).shares()) == 4 * 20


def test_the_list_of_shares_lets_nobody_in(keys: Keys, tmp_path: Path) -> None:
    token = keys.share("paper", 2)
    text = (tmp_path / "web" / "shares.json").read_text()
    assert token not in text
    (tmp_path / "web" / "shares.json").chmod(0o640)
    (tmp_path / "web" / "shares.json").write_text(text + " ")
    with pytest.raises(UserError, match="others may read"):
        keys.shares()


def test_a_list_that_cannot_be_read_lets_nobody_in(keys: Keys, tmp_path: Path) -> None:
    keys.share("paper", 2)
    (tmp_path / "web" / "shares.json").write_text("{")
    with pytest.raises(UserError, match="cannot be read"):
        keys.shares()


def test_a_new_token_ends_what_the_old_one_began(keys: Keys) -> None:
    cookie, owner = keys.cookie(keys.owner)[0], keys.owner
    old = keys.token
    keys.renew()
    assert keys.by_token(old) is None
    assert keys.by_cookie(cookie) is None
    assert not keys.still_counts(owner)


def test_a_token_that_is_gone_lets_nobody_in(keys: Keys, tmp_path: Path) -> None:
    cookie, owner = keys.cookie(keys.owner)[0], keys.owner
    (tmp_path / "web" / "token").unlink()
    assert keys.by_token("") is None
    assert keys.by_cookie(cookie) is None
    assert not keys.still_counts(owner)
    assert Keys(tmp_path / "web").token
