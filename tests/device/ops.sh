#!/usr/bin/env bash
# Every op of one plugin over the conformance grid of tests/ops, once with the kernels that the
# plugin chooses and once more for each variant.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
PAVO_TEST_PLUGINS="$PWD/bin/plugins/libpavo-$1.so" bin/pavo_ops_tests --gtest_brief=1 2>&1 | tail -n 200
status=${PIPESTATUS[0]}
echo "measured: exit $status"
exit "$status"
