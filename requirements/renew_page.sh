#!/usr/bin/env bash
# Renew what the web page is made of beside our own modules, by npm: needs node, which nobody else
# does. Argument: nothing. The versions stand here; `npm view NAME version` names the newest.
# Changes to others' files are the two below: a browser resolves no bare names, and uPlot's small
# build is a script, not a module.
set -euo pipefail
cd "$(dirname "$0")/.."
vendor=$(pwd)/dispatcher/web/static/vendor
judges=$(pwd)/tests/system/page/vendor
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

take() { # NAME VERSION
  (cd "$work" && npm pack --silent "$1@$2" >/dev/null && mkdir "$1" && tar xzf "$1-$2.tgz" -C "$1" --strip-components 1)
}
take preact 10.29.8
take htm 3.1.1
take uplot 1.6.32
take axe-core 4.14.1

mkdir -p "$vendor" "$judges"
rm -f "$vendor"/* "$judges"/*
plain() { sed '/^\/\/# sourceMappingURL=/d' "$1"; }
plain "$work/preact/dist/preact.module.js" >"$vendor/preact.js"
plain "$work/preact/hooks/dist/hooks.module.js" | sed 's#from *"preact"#from"./preact.js"#' >"$vendor/hooks.js"
plain "$work/htm/dist/htm.module.js" >"$vendor/htm.js"
{ plain "$work/uplot/dist/uPlot.iife.min.js"; echo 'export default uPlot;'; } >"$vendor/uplot.js"
cp "$work/uplot/dist/uPlot.min.css" "$vendor/uplot.css"
for name in preact htm uplot; do
  cp "$work/$name/LICENSE" "$vendor/LICENSE.$name"
done
cp "$work/axe-core/axe.min.js" "$judges/axe.js"
cp "$work/axe-core/LICENSE" "$judges/LICENSE.axe-core"
grep -q '"./preact.js"' "$vendor/hooks.js" || { echo "hooks.js asks for preact in a new way" >&2; exit 1; }
for folder in "$vendor" "$judges"; do
  (cd "$folder" && sha256sum -- *[!6] >"$work/sums" && mv "$work/sums" vendored.sha256)
done
