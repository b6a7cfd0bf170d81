#!/bin/sh
# Every night: ask, publish what is new, check it, and say what changed on SITE/changes.html. As cron has it:
#   17 3 * * *  cd /srv/psyprobe && sh nightly.sh hernandez2025 observers.toml registry site "Example Laboratory"
# The registry is a repository of git. The same command goes on with a night that was stopped.
set -u
page=$1 observers=$2 registry=$3 site=$4 contributor=$5
night=${6:-$(date -u +%F)}

# Code 3: something is not finished; 4: some observers failed, and the others are done.
psyprobe run "$page" --observer "$observers" --label "$night" --store "$night.sqlite" \
  --output "$night" --jsonl > "$night.jsonl"
code=$?
case $code in 0 | 3 | 4) ;; *) exit $code ;; esac

psyprobe publish "$night.sqlite" -o "$registry" --contributor "$contributor" --failed || [ $? -eq 4 ] || exit 1
psyprobe registry check "$registry" --changed-since HEAD --append-only || [ $? -eq 3 ] || exit 1
git -C "$registry" add . && git -C "$registry" commit -qm "Night $night" || exit 1
psyprobe registry build "$registry" -o "$site" || exit 1
# Code 1: a score changed, beyond chance and beyond the spread of the last ten nights.
psyprobe compare "$registry" --label "$night" --against previous --fail-on change || exit
exit $code
