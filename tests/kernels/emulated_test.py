#!/usr/bin/env python3
"""`pavo` on emulated CUDA plugins: whole models, from the choice of a plugin to the text.

    emulated_test.py PAVO MAKER FAKE_DRIVER PLUGIN_FOLDER
"""

import array
import json
import math
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "apps"))

import harness  # noqa: E402

DRIVER = None
FOLDER = None
PLUGINS = {60: "cuda-sm60", 61: "cuda-sm61", 70: "cuda-sm70"}


def environment(*capabilities, version=12090):
    host = {
        "version": version,
        "devices": [
            {"name": f"Card {c}", "capability": c, "uuid": str(c), "pci": f"0000:{c}:00.0"}
            for c in capabilities
        ],
    }
    return harness.environment(
        PAVO_CUDA_DRIVER=DRIVER, PAVO_FAKE_CUDA=json.dumps(host), PAVO_PLUGIN_PATH=FOLDER
    )


def read_logits(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    begin, end = json.loads(data[8 : 8 + size])["logits"]["data_offsets"]
    values = array.array("f")
    values.frombytes(data[8 + size + begin : 8 + size + end])
    return values


class Emulated(harness.Case):
    def run_model(self, env, *options):
        model = harness.tiny_model()
        return harness.pavo(
            "run", "-m", model, "-p", "Once upon", "-n", 12, "--temp", 0, *options, env=env
        )


class Choice(Emulated):
    def owners(self, *capabilities, **host):
        done = harness.pavo("doctor", "--json", env=environment(*capabilities, **host))
        devices = self.json_of(done)["cuda_driver"]["devices"]
        owners = {}
        for device in devices:
            chosen = [p for p in device["plugins"] if p["chosen"]]
            self.assertTrue(all(p["tested"] for p in chosen), chosen)
            owners[device["capability"]] = chosen[0]["id"] if chosen else None
        return owners

    def test_each_card_is_tested_by_its_plugin(self):
        self.assertEqual(
            self.owners(60, 61, 62, 70, 72, 75, 90),
            {
                "6.0": "cuda-sm60",
                "6.1": "cuda-sm61",
                "6.2": "cuda-sm61",
                "7.0": "cuda-sm70",
                "7.2": "cuda-sm70",
                "7.5": "cuda-sm70",
                "9.0": "cuda-sm70",
            },
        )
        self.assertEqual(
            self.owners(61, 70, 90, version=12000),
            {"6.1": "cuda-sm61", "7.0": "cuda-sm70", "9.0": None},
        )

    def test_cards_of_three_kinds_serve_one_run(self):
        done = self.run_model(environment(60, 61, 70))
        self.assertEqual(self.assert_ok(done), self.run_model(None, "--backend", "cpu").stdout)
        self.assertIn("(cuda-sm", done.stderr)

    def test_a_named_plugin_takes_a_card_that_is_not_its_own(self):
        done = self.run_model(environment(61, 70), "--backend", "cuda-sm60")
        self.assert_ok(done)
        self.assertIn("(cuda-sm60)", done.stderr)


class Models(Emulated):
    def logits(self, name, env, *options):
        tokens = harness.FOLDER / "tokens.json"
        tokens.write_text(json.dumps([7 * i % 300 for i in range(20)]))
        out = harness.FOLDER / f"{name}.safetensors"
        model = harness.tiny_model()
        done = harness.pavo(
            "logits", "-m", model, "--tokens", tokens, "--out", out, "--exact", "--kv-type", "f32",
            *options, env=env,
        )
        self.assert_ok(done)
        return read_logits(out)

    def test_text_and_logits_are_those_of_the_cpu(self):
        text = self.assert_ok(self.run_model(None, "--backend", "cpu", "--exact"))
        expected = self.logits("cpu", None, "--backend", "cpu")
        for capability, name in PLUGINS.items():
            env = environment(capability)
            done = self.run_model(env, "--exact")
            self.assertEqual(self.assert_ok(done), text, name)
            self.assertIn(f"({name})", done.stderr)
            got = self.logits(name, env, "--backend", name)
            distance = math.dist(expected, got) / math.hypot(*expected)
            self.assertLess(distance, 5e-5, name)
            plain = self.logits("plain", env, "--backend", name, "--plugin-option", f"{name}.graphs=0")
            self.assertEqual(plain, got, f"{name}: graphs change the result")

    def test_refused_ops_run_on_the_cpu(self):
        text = self.assert_ok(self.run_model(None, "--backend", "cpu", "--exact"))
        for ops in ("attention", "matmul", "norm,rope"):
            done = self.run_model(
                environment(61), "--exact", "--plugin-option", f"cuda-sm61.refuse={ops}"
            )
            self.assertEqual(self.assert_ok(done), text, ops)
            self.assertIn("refused by", done.stderr)

    def test_bench_tells_what_the_host_takes(self):
        report = self.json_of(
            harness.pavo(
                "bench", "-m", harness.tiny_model(), "-p", 0, "-n", 8, "-r", 2, "--json",
                env=environment(61),
            )
        )
        self.assertGreater(report["launches_per_token"], 20)
        (test,) = report["tests"]
        # The fake runs kernels when somebody waits for them, so that the host only queues.
        self.assertLess(test["host_share"], 0.5)


class Failures(Emulated):
    def test_each_allocation_in_turn(self):
        for capability, name in PLUGINS.items():
            done = subprocess.run(
                [
                    sys.executable,
                    TESTS / "device" / "allocation_checks.py",
                    harness.PAVO,
                    harness.tiny_model(),
                    name,
                ],
                env=environment(capability),
                capture_output=True,
                text=True,
                check=False,
            )
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertTrue(re.search(r"measured: [2-9]\d allocations", done.stdout), done.stdout)

    def test_a_full_card_is_said_with_numbers(self):
        done = self.run_model(
            environment(61), "--plugin-option", "cuda-sm61.memory_budget_bytes=100000"
        )
        self.assert_fails(done, 1, "device memory: expected", "budget 100000")


if __name__ == "__main__":
    DRIVER, FOLDER = sys.argv.pop(3), sys.argv.pop(3)
    harness.main()
