#!/usr/bin/env python3
"""The program on a real model, which PAVO_TEST_SMOLLM2 names; exit status 77 without it."""

import os
import sys

import harness
from harness import Case, pavo

MODEL = os.environ.get("PAVO_TEST_SMOLLM2")


def ask(question, *arguments):
    prompt = f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
    return pavo("run", "-m", MODEL, "-p", prompt, "--threads", "2", "-n", "48", *arguments)


class RealModel(Case):
    def test_knows_the_capital_of_france(self):
        for options in ([], ["--kv-type", "q8_0"], ["--exact", "--kv-type", "f32"]):
            with self.subTest(options=options):
                done = ask("What is the capital of France?", "--temp", "0", *options)
                self.assertIn("Paris", self.assert_ok(done))

    def test_repeats_itself_with_the_same_seed(self):
        first, second = (self.assert_ok(ask("Tell me a story.", "--seed", "7")) for _ in range(2))
        self.assertEqual(first, second)
        self.assertGreater(len(first.split()), 20)

    def test_runs_every_node_on_a_fast_kernel(self):
        done = ask("Hello", "--temp", "0", "--timings")
        self.assert_ok(done)
        self.assertIn("placement: 454 nodes on cpu; segments: 1", done.stderr)
        self.assertNotIn("generic", done.stderr)


if __name__ == "__main__":
    if not MODEL:
        print("PAVO_TEST_SMOLLM2 does not name the model file")
        sys.exit(77)
    harness.main()
