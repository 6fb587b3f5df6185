#!/usr/bin/env bash
# Sets up, builds and passes every check: format, tests, the CUDA plugins, clang-tidy.
#   tools/test.sh            everything but the sanitizers; CI runs this
#   tools/test.sh quick      without the CUDA plugins and clang-tidy
#   tools/test.sh cuda       the CUDA plugins alone: builds them and checks what can be known of
#                            them without a GPU; finds or makes the toolkit
#   tools/test.sh sanitize   the tests under AddressSanitizer and UndefinedBehaviorSanitizer
# Exit status 0 only if every step passed; a failed check does not hide those after it.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mode=${1:-all}
case $mode in
  all | quick | cuda | sanitize) ;;
  *)
    echo "test: expected 'quick', 'cuda', 'sanitize' or nothing, got '$mode'" >&2
    exit 2
    ;;
esac

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

# Seconds that one CUDA plugin, and all of the CUDA step, may take to build on two cores.
readonly plugin_budget=480 cuda_budget=1500

build_plugin() {
  local start=$SECONDS took
  cmake --build --preset cuda -j "$jobs" --target "pavo_cuda_$1" || return
  took=$((SECONDS - start))
  echo "cuda-$1: built in $took s of $plugin_budget s"
  [ "$took" -le "$plugin_budget" ]
}

check_cuda_time() {
  echo "CUDA step: $1 s of $cuda_budget s"
  [ "$1" -le "$cuda_budget" ]
}

# Everything that is labelled cuda: tests/kernels/CMakeLists.txt.
cuda_checks() {
  local chip start=$SECONDS
  step "CUDA toolkit" tools/cuda_toolkit.sh || return
  step "configure cuda" cmake --preset cuda -DPAVO_BUILD_TESTS=ON --log-level=WARNING || return
  for chip in sm60 sm61 sm70; do
    step "build cuda-$chip" build_plugin "$chip" || return
  done
  step "build the CUDA checks" cmake --build --preset cuda -j "$jobs" --target pavo_cuda_checks ||
    return
  step "CUDA checks" ctest --test-dir build/cuda --output-on-failure --no-tests=error -L cuda \
    -j "$jobs"
  step "CUDA time" check_cuda_time $((SECONDS - start))
}

step setup tools/setup.sh test || finish
step format check_format
if [ "$mode" = cuda ]; then
  cuda_checks
  finish
fi
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
cuda_checks
# The product; tests are held to the compiler's warnings and to the format.
step "clang-tidy" python3 tools/tidy.py --build build/cpu --jobs "$jobs" sdk core llm plugins apps
finish
