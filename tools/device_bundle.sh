#!/usr/bin/env bash
# Bundles what a GPU machine needs to check the CUDA plugins: PTX-only plugins, the programs, the
# test binaries, reference data, the demo model, compute-sanitizer.
#   tools/device_bundle.sh [FOLDER]        default: out/device
# The folder gets suite.tar.xz (unpack it, then run tests/device/run.sh inside) and the model in two
# parts, since a transfer may have a size limit. Nothing of the bundle is committed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=${1:-out/device}
model=models/SmolLM2-135M-Instruct.Q4_1.gguf
references=../shared/reference-models

say() { echo "device_bundle: $*" >&2; }

toolkit=$(tools/cuda_toolkit.sh)
say "building with $toolkit"
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
cmake --preset device -DPAVO_BUILD_TESTS=ON -DCMAKE_CUDA_COMPILER="$toolkit/bin/nvcc" \
  -DCUDAToolkit_ROOT="$toolkit" >/dev/null
cmake --build build/device --target pavo pavo_probe pavo_cpu pavo_ops_tests pavo_llm_test gpu_matmul_bench \
  pavo_conformance_runner pavo_cuda_sm60 pavo_cuda_sm61 pavo_cuda_sm70 >&2

rm -rf "$out"
stage=$out/suite
mkdir -p "$stage/references"
cp -r build/device/bin "$stage/"
find "$stage/bin" -type f -exec strip --strip-unneeded {} +
cp tests/device/* tools/make_tiny_model.py "$stage/"
# Libraries that a bare machine may lack.
mkdir "$stage/lib"
ldd build/device/bin/pavo | awk '/libpcre2|libstdc|libgcc/ {print $3}' |
  xargs -I{} cp -L {} "$stage/lib/"
kernel_state() {  # the state of the kernels that the report names
  git ls-files kernels 'plugins/cuda-*' | grep -E '\.(cu|cuh|h|inc|cpp)$' | LC_ALL=C sort |
    tr '\n' '\0' | xargs -0 cat | sha256sum | cut -d' ' -f1
}
kernel_state >"$stage/kernel_state"
git rev-parse HEAD >"$stage/commit"
"$toolkit/bin/nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p' >"$stage/toolkit"
if [ -d "$references" ]; then
  for family in llama-hs128 llama-hs64-llama3rope llama-hs256-falcon3 mistral-hs128; do
    cp -r "$references/$family" "$stage/references/"
  done
  chmod -R u+w "$stage/references"
else
  say "no $references: the model references will be missing on the device"
fi
if [ -d "$toolkit/compute-sanitizer" ]; then
  cp -r "$toolkit/compute-sanitizer" "$stage/"
else
  say "no compute-sanitizer in the toolkit: the one of the device machine will be used"
fi
tar -C "$out" -cJf "$out/suite.tar.xz" suite
rm -rf "$stage"
if [ -f "$model" ]; then
  split -n 2 -d -a 1 "$model" "$out/model."
else
  say "no $model: run tools/demo.sh first, or the whole-model checks will be missing"
fi
du -sh "$out"/* >&2
