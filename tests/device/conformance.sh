#!/usr/bin/env bash
# One plugin through the conformance kit: what fails is shown, and how many checks passed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
bin/pavo-conformance "$PWD/bin/plugins/libpavo-$1.so" --verbose >conformance.txt
status=$?
cat conformance.txt
echo "measured: $(tail -n 1 conformance.txt | sed 's/.*: //')"
exit "$status"
