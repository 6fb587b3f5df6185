#!/usr/bin/env python3
"""A whole model on a device that takes no fused op: it gets them in simpler ones, and the logits are
those of the CPU."""

import json
import math
import os
import pathlib
import struct

import harness
from harness import Case, pavo, tiny_model

MOCK = pathlib.Path(os.environ["PAVO_TEST_FAKES"]) / "mock" / "mock.so"

# No norm but the plain one, no bias of a product.
SIMPLE = "norm:inputs>1,matmul:inputs>2"


class Lowering(Case):
    def logits(self, name, *arguments):
        tokens = harness.FOLDER / "lowering.json"
        tokens.write_text(json.dumps([5, 9, 1, 30, 7]))
        out = harness.FOLDER / f"{name}.safetensors"
        done = pavo(
            *("logits", "-m", tiny_model(), "--tokens", tokens, "--out", out, "--exact", *arguments)
        )
        self.assert_ok(done)
        data = out.read_bytes()
        (size,) = struct.unpack("<Q", data[:8])
        body = data[8 + size :]
        return struct.unpack(f"<{len(body) // 4}f", body), done.stderr

    def test_a_device_without_fused_ops_runs_a_whole_model(self):
        expected, _ = self.logits("cpu")
        settings = harness.FOLDER / "simple.toml"
        settings.write_text(f"[plugin.mock]\nrefuse = '{SIMPLE}'\n")
        mock = ("--plugin-path", MOCK, "--backend", "mock", "--config", settings)
        found, told = self.logits("mock", *mock, "--fallback", "error")
        self.assertIn("x norm in simpler ops on mock-0 (", told)
        self.assertNotIn("refused by", told)
        self.assertIn("segments: 1;", told)
        difference = math.sqrt(sum((a - b) ** 2 for a, b in zip(found, expected, strict=True)))
        # The budget of f32 arithmetic for whole models.
        self.assertLess(difference, 5e-5 * math.sqrt(sum(b * b for b in expected)))


if __name__ == "__main__":
    harness.main()
