"""Look for known holes in what the locks name (``make audit``).

Exit codes: 0 none is known, 1 there are some, 2 it could not be looked: the list of holes is asked
over the network. No test and no landing runs this, since what it finds depends on the day.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
LOCKS = ("dev", "docs", "tools")  # demo's is a part of dev's

NONE, SOME, NOT_LOOKED = 0, 1, 2


def main() -> int:
    """Ask for each lock, and say it."""
    codes = [audited(name) for name in LOCKS]
    constraints = (FOLDER.parent / "constraints.txt").read_text()
    pinned = re.findall(r"^torch==\S+", constraints, re.M)
    print(f"{' '.join(pinned)} is in no lock and was not looked up: do it by hand")
    return max(codes)


def audited(name: str) -> int:
    """What is known of one lock."""
    # Versions are settled and hashed, so nothing is resolved or installed for it.
    words = ("--disable-pip", "--require-hashes", "--format", "json", "--progress-spinner", "off")
    ran = subprocess.run(
        [sys.executable, "-m", "pip_audit", *words, "-r", FOLDER / f"{name}.lock"],
        capture_output=True,
        text=True,
    )
    try:
        found = json.loads(ran.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return not_looked(name, (ran.stderr.strip().splitlines() or ["it said nothing"])[-1])
    holes = [(one, hole) for one in found for hole in one.get("vulns", [])]
    for one, hole in holes:
        fixed = ", ".join(hole["fix_versions"]) or "none yet"
        print(f"{name}.lock: {one['name']} {one['version']}: {hole['id']}, mended in {fixed}")
    # Not an error for pip-audit: without its list it finds that nothing has holes.
    skipped = [one["skip_reason"] for one in found if "skip_reason" in one]
    if skipped or not found:
        words_of = skipped[0] if skipped else "it found no package in the lock"
        return not_looked(name, f"{len(skipped)} of {len(found)} packages: {words_of}")
    if not holes:
        print(f"{name}.lock: no known holes in {len(found)} packages")
    return SOME if holes else NONE


def not_looked(name: str, why: str) -> int:
    """Say that nothing is known, which is not the same as that nothing is wrong."""
    print(f"{name}.lock was NOT looked at: {why}", file=sys.stderr)
    print("  the list of known holes cannot be had from here; try where the network has it",
          file=sys.stderr)  # fmt: skip
    return NOT_LOOKED


if __name__ == "__main__":
    sys.exit(main())
