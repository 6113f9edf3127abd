"""Each block of code on each page is run, or read, by a test: this one knows by which.

Experiment files, commands and files of other programs are seen on all pages by the tests beside
this one; here are the others. A block that no test knows fails here.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.integration.pages.test_commands import SHELLS
from tests.support.pages import PAGES, ROOT, Block, blocks

#: Which test runs all Python of a page, or all blocks of another language. Each of them takes
#: them from the page, so that one more of them is run as well, or fails there.
RUN_BY = {
    "tests/integration/pages/test_digits.py": {
        "docs/demo.md": "test_a_demo_makes_its_model",
        "docs/operations.md": "test_operations_from_python",
    },
    "tests/integration/pages/test_ends.py": {
        "docs/ends.md": "test_a_script_hears_of_trials",
    },
    "tests/integration/pages/test_extensions.py": {
        "docs/backends.md": "test_a_platform_passes_the_suite_of_its_author",
        "docs/backends.md toml": "test_the_suite_by_its_command",
        "docs/placement.md": "test_what_one_trial_needs",
        "docs/python-api.md": "test_the_package_of_all_public_names",
        "docs/sinks.md": "test_a_sink_is_tried",
        "docs/sinks.md toml": "test_a_sink_is_tried",
        "docs/tuners.md toml": "test_tuners_and_assessors_by_name",
    },
    "tests/integration/pages/test_other_files.py": {
        "docs/contributing/failpoints.md": "test_a_failpoint_of_the_page_is_one",
    },
    "tests/integration/pages/test_programs.py": {
        "docs/assessors.md": "test_an_assessor_of_ones_own_ends_trials",
        "docs/recipes.md": "test_the_recipes_run_as_they_are_printed",
        "docs/tutorial.md": "test_the_tutorial_runs_as_it_is_printed",
    },
    "tests/integration/pages/test_trials.py": {
        "README.md": "test_the_readmes_tuner_trial_and_file",
        "docs/trial-authors.md": "test_a_trial_as_a_program",
        "docs/tuners.md": "test_a_child_computes_what_its_parent_computed",
    },
    "tests/arch/test_docs.py": {
        "docs/states.md mermaid": "test_generated_pages_are_current",
    },
    "tests/integration/api/test_cells.py": {
        "docs/notebooks.md": "test_all_blocks_of_the_page_run",
    },
    "tests/integration/tuners/test_guide.py": {
        "docs/tuner-authors.md": "test_its_tests_pass",
    },
    "tests/system/nni/test_judges.py": {
        "docs/from-nni.md": "test_nnis_client_as_the_page_has_it",
    },
    "tests/system/page/test_proxied.py": {
        "docs/web.md nginx": "test_nginx",
    },
    "tests/unit/experiment/test_short_spaces.py": {
        "docs/search-spaces.md": "test_all_blocks_of_the_page_are_read",
    },
    "tests/unit/study/test_objectives.py": {
        "docs/objectives.md": "test_all_blocks_of_the_page_run",
    },
    "tests/unit/study/test_page.py": {
        "docs/ask-tell.md": "test_all_blocks_of_the_page_run",
    },
}

#: Pages whose programs are files below ``examples``: one test compares them, another runs them.
PROGRAMS = "docs/coming-from/"
PROGRAMS_RUN_BY = (
    "tests/unit/examples/test_coming_from.py",
    "test_a_page_shows_the_programs_as_they_are",
)

#: Languages that the tests beside this one see on all pages.
EVERYWHERE = ("yaml", *SHELLS)


#: The same by page and language.
CLAIMS = {
    (page.partition(" ")[0], page.partition(" ")[2] or "python"): (module, function)
    for module, pages in RUN_BY.items()
    for page, function in pages.items()
}


def shown() -> list[Block]:
    return [block for page in PAGES for block in blocks(page)]


def key_of(block: Block) -> tuple[str, str]:
    return block.place.partition(":")[0], block.language


@pytest.mark.parametrize("block", shown(), ids=lambda block: block.place)
def test_a_block_is_run_by_a_test(block: Block) -> None:
    """Mutation: a page gets a block of code that nobody runs."""
    page, language = key_of(block)
    assert (
        language in EVERYWHERE
        or (page, language) in CLAIMS
        or (page.startswith(PROGRAMS) and block.file)
    ), "run it in a test that takes it from the page, and name the test here"


@pytest.mark.parametrize("module, function", sorted({*CLAIMS.values(), PROGRAMS_RUN_BY}))
def test_these_tests_are_there(module: str, function: str) -> None:
    """Mutation: one of them is renamed or removed, or reads another page."""
    text = (ROOT / module).read_text()
    tests = [each.name for each in ast.parse(text).body if isinstance(each, ast.FunctionDef)]
    assert function in tests
    for page in RUN_BY.get(module, {}):
        name = Path(page.partition(" ")[0]).name
        assert name in text or function == "test_generated_pages_are_current", page


def test_no_page_is_named_in_vain() -> None:
    """Mutation: the last block of a page goes, and its line here stays."""
    there = {key_of(block) for block in shown()}
    assert [key for key in CLAIMS if key not in there] == []


def test_every_fence_is_a_block() -> None:
    """Mutation: a block within a list, or with a word behind its language, is seen by no test."""
    for page in PAGES:
        fences = [line for line in page.read_text().splitlines() if line.lstrip().startswith("```")]
        assert len(fences) == 2 * len(blocks(page)), page
