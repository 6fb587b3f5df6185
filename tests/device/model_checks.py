#!/usr/bin/env python3
"""SmolLM2 on one plugin against the CPU plugin, and the plugin's own promises about whole models.

    model_checks.py PAVO MODEL PLUGIN

Prints what was measured; exit status 0 only if every check holds.
"""
import json
import os
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np

TOKENS = 500
LONG_RUN = 2000
HOST_SHARE = 0.1  # of a decode step, with a captured graph
TIE = {"exact": 1e-3, "default": 0.5}  # in logits
failures = []


def run(arguments, **options):
    return subprocess.run(arguments, capture_output=True, check=False, **options)


def expect(condition, what):
    print(("ok: " if condition else "FAILED: ") + what)
    if not condition:
        failures.append(what)


def read_logits(path):
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    entry = json.loads(data[8:8 + size])["logits"]
    begin = 8 + size + entry["data_offsets"][0]
    count = int(np.prod(entry["shape"]))
    return np.frombuffer(data, np.float32, count, begin).reshape(entry["shape"])


def log_softmax(logits):
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def compare(expected, got, tie):
    """Worst relative L2 of a row, mean KL divergence, rows whose best token differs beyond a tie."""
    difference = np.linalg.norm(expected.astype(np.float64) - got, axis=1)
    l2 = float((difference / np.linalg.norm(expected.astype(np.float64), axis=1)).max())
    p, q = log_softmax(expected), log_softmax(got)
    kl = float((np.exp(p) * (p - q)).sum(axis=1).mean())
    chosen = np.take_along_axis(expected, got.argmax(axis=1)[:, None], axis=1)[:, 0]
    return l2, kl, int((expected.max(axis=1) - chosen > tie).sum())


class Model:
    def __init__(self, pavo, model, plugin):
        self.pavo, self.model, self.plugin = pavo, model, plugin
        self.folder = tempfile.mkdtemp()

    def logits(self, backend, tokens_file, name, *extra):
        out = os.path.join(self.folder, name)
        done = run([self.pavo, "logits", "-m", self.model, "--tokens", tokens_file, "--out", out,
                    "--backend", backend, *extra])
        if done.returncode != 0:
            print(done.stderr.decode(errors="replace")[-1500:])
            return None
        return read_logits(out)

    def generate(self, backend, count, *extra):
        return run([self.pavo, "run", "-m", self.model, "-p", "Once upon a time", "-n", str(count),
                    "--temp", "0", "-c", "4096", "--backend", backend, *extra])


def default_kl(model):
    """Budget of the mean KL divergence without --exact: half2 activations on sm_60, else int8."""
    return 1e-5 if model.plugin == "cuda-sm60" else 2e-3


def check_logits(model):
    text = model.generate("cpu", TOKENS).stdout
    tokens_file = os.path.join(model.folder, "tokens.json")
    tokens = json.loads(run([model.pavo, "tokenize", "-m", model.model],
                            input=text).stdout)[:TOKENS]
    with open(tokens_file, "w", encoding="utf-8") as file:
        json.dump(tokens, file)
    # Both against the CPU's f32 arithmetic with the same weights and K/V types.
    for kind, budget, kv_type in (("exact", 1e-7, "f32"), ("default", default_kl(model), "f16")):
        expected = model.logits("cpu", tokens_file, "cpu", "--exact", "--kv-type", kv_type)
        extra = ["--kv-type", kv_type] + (["--exact"] if kind == "exact" else [])
        got = model.logits(model.plugin, tokens_file, "gpu", *extra)
        if expected is None or got is None:
            expect(False, f"logits, {kind}")
            continue
        l2, kl, moved = compare(expected, got, TIE[kind])
        expect(kl <= budget, f"{kind}: mean KL {kl:.2e} over {len(tokens)} tokens, budget {budget}")
        expect(kind != "exact" or l2 <= 5e-5, f"{kind}: worst relative L2 {l2:.2e}")
        expect(moved == 0, f"{kind}: {moved} greedy tokens differ by more than a tie")
        plain = model.logits(model.plugin, tokens_file, "plain", *extra, "--plugin-option",
                             model.plugin + ".graphs=0")
        expect(plain is not None and np.array_equal(plain, got), f"{kind}: graphs change no bit")


def check_long_run(model):
    done = model.generate(model.plugin, LONG_RUN)
    expect(done.returncode == 0, f"{LONG_RUN} tokens without a NaN (exit {done.returncode})")
    if done.returncode != 0:
        print(done.stderr.decode(errors="replace")[-800:])


def check_fallback(model):
    expected = model.generate(model.plugin, 60).stdout
    for ops in ("attention", "matmul", "norm,rope"):
        done = model.generate(model.plugin, 60, "--plugin-option", f"{model.plugin}.refuse={ops}")
        summary = done.stderr.decode(errors="replace")
        expect(done.returncode == 0 and "refused by" in summary, f"fallback of {ops} is said")
        same = os.path.commonprefix([expected, done.stdout])
        expect(len(same) >= min(40, len(expected)), f"fallback of {ops} continues alike")


def check_speed(model):
    done = run([model.pavo, "bench", "-m", model.model, "--backend", model.plugin, "--json"])
    if done.returncode != 0:
        expect(False, "bench: " + done.stderr.decode(errors="replace")[-500:])
        return
    report = json.loads(done.stdout)
    for test in report["tests"]:
        if test["test"] == "generate":
            share = test["host_share"]
            expect(share < HOST_SHARE, f"host share of decode {share:.3f}, budget {HOST_SHARE}")
    print("measured:" + json.dumps(report, separators=(",", ":")))


def main():
    pavo, path, plugin = sys.argv[1:4]
    model = Model(pavo, path, plugin)
    for step in (check_logits, check_long_run, check_fallback, check_speed):
        start = time.time()
        step(model)
        print(f"{step.__name__}: {time.time() - start:.1f} s")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
