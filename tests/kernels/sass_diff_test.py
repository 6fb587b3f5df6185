#!/usr/bin/env python3
"""tools/sass_diff.py on real machine code: finds what changed and nothing else.

    sass_diff_test.py TOOLKIT PLUGIN.so
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "sass_diff.py"
TOOLKIT = None
PLUGIN = None

KERNELS = """
__global__ void first(float* x) { x[threadIdx.x] *= 2.0f; }
__global__ void second(float* x) { x[threadIdx.x] += 1.0f; }
__global__ void third(float* x) { x[threadIdx.x] = sqrtf(x[threadIdx.x]); }
"""


def diff(old, new, *options):
    return subprocess.run(
        [sys.executable, TOOL, "--toolkit", TOOLKIT, old, new, *options],
        capture_output=True,
        text=True,
        check=False,
    )


class SassDiffTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def compiled(self, name, text):
        source, cubin = self.folder / f"{name}.cu", self.folder / f"{name}.cubin"
        source.write_text(text)
        subprocess.run(
            [f"{TOOLKIT}/bin/nvcc", "-cubin", "-arch=sm_61", "-o", cubin, source], check=True
        )
        return cubin

    def test_a_plugin_is_the_same_as_itself(self):
        done = diff(PLUGIN, PLUGIN, "--require-same")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(" kernels, 0 differ", done.stdout)

    def test_only_what_changed_is_named(self):
        old = self.compiled("old", KERNELS)
        longer = KERNELS.replace("+= 1.0f", "+= 1.0f / (1.0f + x[0])")
        new = self.compiled("new", "// a comment\n" + longer)
        done = diff(old, new, "--require-same")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"(?m)^changed .* second\(float\*\)$")
        self.assertNotIn("first(", done.stdout)
        self.assertNotIn("third(", done.stdout)
        self.assertIn("3 kernels, 1 differ", done.stdout)
        self.assertEqual(diff(old, new).returncode, 0)

    def test_a_file_without_machine_code_is_an_error(self):
        text = self.folder / "text"
        text.write_text("hello")
        done = diff(text, text)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no machine code", done.stderr)


if __name__ == "__main__":
    TOOLKIT, PLUGIN = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1], verbosity=2)
