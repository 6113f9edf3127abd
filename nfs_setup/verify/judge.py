"""All judgements over everything that was measured."""

from __future__ import annotations

from nfs_setup.verify.finding import Finding, Level, merged
from nfs_setup.verify.judge_failure import failed
from nfs_setup.verify.judge_habits import judge_habits
from nfs_setup.verify.judge_mount import judge_mount
from nfs_setup.verify.judge_owner import judge_owner, judge_owners_between
from nfs_setup.verify.judge_pace import judge_pace, judge_rereads
from nfs_setup.verify.judge_pairs import judge_churn, judge_locks, judge_views
from nfs_setup.verify.judge_room import judge_clock, judge_clocks_between, judge_room
from nfs_setup.verify.surveyed import Survey


def judged(survey: Survey) -> list[Finding]:
    """Findings of a survey: what passes, is slow or wrong, and what to change, as in a table."""
    found: list[Finding] = []
    alone = [machine for machine in survey.machines if not machine.again]
    for machine in alone:
        found += judge_mount(machine)
    for machine in alone:
        found += judge_owner(machine)
    found += judge_owners_between(survey.machines)
    for machine in alone:
        found += judge_room(machine) + judge_clock(machine)
    found += judge_clocks_between(alone)
    for machine in alone:
        found += judge_habits(machine) + judge_pace(machine)
    found += judge_rereads(survey)
    found += judge_views(survey) + judge_churn(survey.machines) + judge_locks(survey.locks)
    if survey.left_behind is not None:
        text, change = failed(survey.left_behind)
        found.append(Finding("clean-up", "the share", Level.NOTE, text, change))
    if survey.one_host and len(survey.machines) > 1 and survey.machines[-1].uses_it:
        text = "only this machine was asked: nothing is known of what others see, and when"
        found.append(Finding("other machines", "here", Level.NOTE, text, "add --from HOST"))
    return merged(found)
