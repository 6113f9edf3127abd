"""A list that comes page by page, in rounds."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dispatcher.http_services.errors import Unreachable
from dispatcher.platforms.http_jobs.jobs import ServiceJob
from dispatcher.platforms.http_jobs.pages import Pages


class Book:
    """A list of jobs, two on a page."""

    def __init__(self, many: int) -> None:
        self.words = {f"j{number}": "RUNNING" for number in range(many)}
        self.asked: list[str] = []
        self.fails = False

    def page(self, token: str) -> tuple[Sequence[ServiceJob], str]:
        self.asked.append(token)
        if self.fails:
            raise Unreachable("no answer")
        start = int(token or 0)
        jobs = [ServiceJob(name, name, word) for name, word in self.words.items()]
        following = str(start + 2) if len(jobs) > start + 2 else ""
        return jobs[start : start + 2], following


def words(jobs: Sequence[ServiceJob]) -> dict[str, str]:
    return {each.name: each.word for each in jobs}


def test_all_of_it_at_first_and_a_page_at_each_look_later() -> None:
    """Mutations: a head that begins sees a part; a look is a request for each page; what stands on
    another page is gone."""
    book = Book(6)
    pages = Pages(book.page)
    assert words(pages.look()) == book.words
    assert book.asked == ["", "2", "4"]
    book.words["j3"] = "ENDED"
    assert words(pages.look())["j3"] == "RUNNING", "its page was not asked for"
    assert words(pages.look())["j3"] == "ENDED"
    assert len(book.asked) == 5
    assert len(pages.look()) == 6


def test_what_is_listed_no_more_goes_with_the_end_of_a_round() -> None:
    """Mutation: it is known for ever."""
    book = Book(4)
    pages = Pages(book.page)
    pages.look()
    del book.words["j0"]
    assert "j0" in words(pages.look())
    assert "j0" not in words(pages.look())
    assert pages.of("j0") is None
    there = pages.of("j3")
    assert there is not None
    assert there.name == "j3"


def test_after_a_failure_a_new_round_begins() -> None:
    """Services forget their tokens. Mutation: a token that is refused is shown for ever."""
    book = Book(6)
    pages = Pages(book.page)
    pages.look()
    pages.look()
    book.fails = True
    with pytest.raises(Unreachable):
        pages.look()
    book.fails = False
    pages.look()
    assert book.asked[-2:] == ["2", ""]
    assert words(pages.look()) == book.words


@pytest.mark.parametrize("circle", [1, 3])
def test_a_list_that_comes_to_no_end_is_none(circle: int) -> None:
    """Mutations: a thousand requests at each look, for ever; what a head has seen of it is all, and
    all others are gone."""
    asked: list[str] = []

    def page(token: str) -> tuple[Sequence[ServiceJob], str]:
        asked.append(token)
        return [ServiceJob(f"j{token}", token, "RUNNING")], str((int(token or 0) % circle) + 1)

    pages = Pages(page)
    for _ in range(2):
        with pytest.raises(Unreachable, match="no end"):
            pages.look()
    assert len(asked) <= 2 * (circle + 1)
