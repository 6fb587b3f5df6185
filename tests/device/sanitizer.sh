#!/usr/bin/env bash
# compute-sanitizer over a subset of the ops: small shapes, all kernels.
#   sanitizer.sh memcheck|racecheck|initcheck PLUGIN
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
tool=compute-sanitizer/compute-sanitizer
[ -x "$tool" ] || tool=$(command -v compute-sanitizer)
filter='EmbedTest.*:NormTest.Every*:RopeTest.*:KvStoreTest.*:GluTest.*:BinaryTest.*'
filter+=':AttentionTest.LengthsAroundPages*:AttentionTest.HeadSizes*:MatmulTest.BiasAndStrides*'
PAVO_TEST_PLUGINS="$PWD/bin/plugins/libpavo-$2.so" "$tool" --tool "$1" --error-exitcode 9 \
  bin/pavo_ops_tests --gtest_brief=1 --gtest_filter="${PAVO_SANITIZER_FILTER:-$filter}" 2>&1 |
  tail -n 60
status=${PIPESTATUS[0]}
echo "measured: exit $status"
exit "$status"
