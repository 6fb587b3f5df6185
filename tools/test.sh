#!/usr/bin/env bash
# Sets up, builds and passes every check: format, tests, clang-tidy.
#   tools/test.sh            everything but the sanitizers; CI runs this
#   tools/test.sh quick      without clang-tidy
#   tools/test.sh sanitize   the tests under AddressSanitizer and UndefinedBehaviorSanitizer
# Exit status 0 only if every step passed; a failed check does not hide those after it.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mode=${1:-all}
if [ "$mode" != all ] && [ "$mode" != quick ] && [ "$mode" != sanitize ]; then
  echo "test: expected 'quick', 'sanitize' or nothing, got '$mode'" >&2
  exit 2
fi

# Objects made in another clone of the same sources are found again.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
jobs=$(nproc)
failed=()
not_checked=()

# step NAME COMMAND...: runs it, says how long it took, remembers a failure.
step() {
  local name=$1 start=$SECONDS
  shift
  echo "== $name"
  if "$@"; then
    echo "== $name: passed in $((SECONDS - start)) s"
  else
    echo "== $name: FAILED after $((SECONDS - start)) s"
    failed+=("$name")
    return 1
  fi
}

finish() {
  [ "${#not_checked[@]}" -eq 0 ] || printf 'NOT CHECKED: %s\n' "${not_checked[@]}"
  if [ "${#failed[@]}" -ne 0 ]; then
    printf 'FAILED: %s\n' "${failed[@]}"
    exit 1
  fi
  exit 0
}

check_format() {
  git ls-files -z '*.h' '*.c' '*.cpp' '*.cu' '*.cuh' |
    xargs -0 -r -n 50 -P "$jobs" clang-format --dry-run -Werror
}

build() {
  cmake --preset "$1" -DPAVO_BUILD_TESTS=ON >/dev/null && cmake --build --preset "$1" -j "$jobs"
}

# What needs the real model is tested where it can be had; the end says so where it cannot.
get_model() {
  if model=$(tools/get_model.sh); then
    export PAVO_TEST_SMOLLM2=$PWD/$model
  else
    not_checked+=("what needs the model of the demo: it cannot be had here")
  fi
}

run_tests() {
  ctest --test-dir "build/$1" --output-on-failure --no-tests=error -LE 'slow|gpu' -j "$jobs"
}

step setup tools/setup.sh test || finish
step format check_format
get_model
if [ "$mode" = sanitize ]; then
  step "build asan" build asan || finish
  step "tests under the sanitizers" run_tests asan
  finish
fi
step "build cpu" build cpu || finish
if [ "$mode" = quick ]; then
  step "tests" run_tests cpu
  finish
fi
step "tests" run_tests cpu
# The product; tests are held to the compiler's warnings and to the format.
step "clang-tidy" python3 tools/tidy.py --build build/cpu --jobs "$jobs" sdk core llm plugins apps
finish
