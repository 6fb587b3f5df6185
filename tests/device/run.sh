#!/usr/bin/env bash
# Runs on a GPU machine, inside the unpacked suite: every plugin forced in turn.
#   run.sh OUT [MODEL] [STEP...]      steps: doctor ops references allocations model sanitizer, the
#                                     default, and conformance, which takes minutes a plugin
# Each check writes its log to OUT/logs.txt and one line to OUT/results.tsv:
#   plugin, check, pass or fail, seconds, what was measured
# Exit status 0 only if all passed. tests/device/report.py makes the committed report of it.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

out=$1
model=${2:-}
shift $(($# < 2 ? $# : 2))
steps=${*:-doctor ops references allocations model sanitizer}
plugins=${PAVO_DEVICE_PLUGINS:-cuda-sm60 cuda-sm61 cuda-sm70}
mkdir -p "$out"
logs=$out/logs.txt
results=$out/results.tsv
failed=0
export PAVO_TEST_REFERENCES=$PWD/references
export LD_LIBRARY_PATH=$PWD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export CUDA_CACHE_MAXSIZE=2147483648
pavo=bin/pavo

# check PLUGIN NAME COMMAND...: the last line of its output that begins with "measured:" is kept.
check() {
  local plugin=$1 name=$2 start=$SECONDS status=pass measured
  shift 2
  printf '\n==== %s %s: %s\n' "$plugin" "$name" "$*" >>"$logs"
  timeout 470 "$@" >"$out/last.txt" 2>&1 || status=fail
  cat "$out/last.txt" >>"$logs"
  measured=$(grep -a '^measured:' "$out/last.txt" | tail -1 | cut -c11-)
  printf '%s\t%s\t%s\t%d\t%s\n' "$plugin" "$name" "$status" $((SECONDS - start)) "$measured" |
    tee -a "$results"
  if [ "$status" = fail ]; then
    failed=1
    tail -n "${PAVO_DEVICE_TAIL:-12}" "$out/last.txt" | cut -c1-300
  fi
}

wanted() { case " $steps " in *" $1 "*) true ;; *) false ;; esac; }

gpu_name() { nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader; }

if wanted doctor; then
  { gpu_name; date -u +%F; cat commit kernel_state toolkit; } >"$out/machine.txt"
  check all doctor "$pavo" doctor
fi
for plugin in $plugins; do
  if wanted doctor; then
    check "$plugin" probe sh -c \
      'bin/pavo-probe "$1" | tee /dev/stderr | grep -q "\"tested\":true.*\"ok\":true"' \
      probe "$PWD/bin/plugins/libpavo-$plugin.so"
  fi
  if wanted ops; then
    check "$plugin" ops ./ops.sh "$plugin"
  fi
  if wanted conformance; then
    check "$plugin" conformance ./conformance.sh "$plugin"
  fi
  if wanted references; then
    check "$plugin" references env PAVO_TEST_BACKEND="$plugin" bin/pavo_llm_test \
      --gtest_filter='*ReferenceModel*'
    check "$plugin" references-nographs env PAVO_TEST_BACKEND="$plugin" \
      PAVO_TEST_OPTIONS=graphs=0,recheck=1 bin/pavo_llm_test --gtest_filter='*ReferenceModel*exact*'
  fi
  if wanted allocations; then
    python3 make_tiny_model.py "$out/tiny.gguf" --context 512 --type q8_0 &&
      check "$plugin" allocations python3 allocation_checks.py "$pavo" "$out/tiny.gguf" "$plugin"
    rm -f "$out/tiny.gguf"
  fi
  if wanted model && [ -n "$model" ]; then
    check "$plugin" model python3 model_checks.py "$pavo" "$model" "$plugin"
  fi
  if wanted sanitizer; then
    for tool in memcheck racecheck initcheck; do
      check "$plugin" "$tool" ./sanitizer.sh "$tool" "$plugin"
    done
  fi
done
rm -f "$out/last.txt"
exit "$failed"
