#!/usr/bin/env bash
# The search, then what there is to see of it. Results go to ./bequeath-demo.
# DEMO_TRIALS=40 makes it shorter.
set -euo pipefail
cd "$(dirname "$0")"
export BEQUEATH_HOME="${BEQUEATH_HOME:-$(cd ../.. && pwd)/bequeath-demo}"
bequeath run --web ${DEMO_TRIALS:+--set "maxTrialNumber=$DEMO_TRIALS"} experiment.yml
experiment=$(bequeath experiment list --json | python -c '
import json, sys
print(max(json.load(sys.stdin)["experiments"], key=lambda e: e["created_at"] or 0)["id"])')
echo
bequeath lineage "$experiment" | tail -n 40
mkdir -p "$BEQUEATH_HOME/pictures"
for kind in progress parallel lineage; do
  bequeath plot "$kind" "$experiment" --out "$BEQUEATH_HOME/pictures/$kind.png"
done
echo
echo "pictures are in $BEQUEATH_HOME/pictures; go on with: bequeath best $experiment"
echo "or look at it in a browser again: bequeath web --folder $BEQUEATH_HOME"
