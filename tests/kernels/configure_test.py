#!/usr/bin/env python3
"""Configuring with a toolkit that cannot work stops at once, with one sentence that says what to do.

    configure_test.py SOURCE_FOLDER TOOLKIT
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = None
TOOLKIT = None

NVCC = """#!/bin/sh
echo 'Cuda compilation tools, release {release}, V{release}.99'
"""


class ConfigureTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def toolkit(self, release, header_number):
        """A folder that says it is a toolkit of this release with these headers."""
        root = self.folder / "toolkit"
        (root / "bin").mkdir(parents=True)
        (root / "include").mkdir()
        nvcc = root / "bin" / "nvcc"
        nvcc.write_text(NVCC.format(release=release))
        nvcc.chmod(0o755)
        (root / "include" / "cuda.h").write_text(f"#define CUDA_VERSION {header_number}\n")
        return root

    def assert_stops(self, sentence, *definitions, **variables):
        command = ["cmake", "-G", "Ninja", "-S", SOURCE, "-B", self.folder / "build"]
        command += ["-DPAVO_CUDA=ON", "-DPAVO_BUILD_TESTS=OFF"]
        command += [f"-D{definition}" for definition in definitions]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, **variables}
        )
        said = re.sub(r"\s+", " ", done.stderr)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn(sentence, said)
        self.assertEqual(said.count("CMake Error"), 1, said)
        self.assertNotIn("CUDA compiler identification", done.stdout, "it was tried all the same")

    def test_nvcc_of_cuda_13(self):
        root = self.toolkit("13.0", 13000)
        self.assert_stops(
            f"Expected nvcc of a CUDA 12.x toolkit, found release '13.0' at {root}/bin/nvcc: "
            "CUDA 13 cannot build for compute capability 6.0, 6.1 and 7.0; "
            "run tools/cuda_toolkit.sh and set PAVO_CUDA_ROOT to the path that it prints.",
            f"CMAKE_CUDA_COMPILER={root}/bin/nvcc",
        )

    def test_the_nvcc_of_this_machine_if_it_is_too_new(self):
        nvcc = shutil.which("nvcc")
        if nvcc is None:
            self.skipTest("no nvcc in PATH; the test above covers the case")
        text = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
        if "release 12." in text:
            self.skipTest("the nvcc in PATH is of CUDA 12; the test above covers the case")
        self.assert_stops("Expected nvcc of a CUDA 12.x toolkit", f"CMAKE_CUDA_COMPILER={nvcc}")

    def test_no_nvcc_at_all(self):
        self.assert_stops(
            "Expected nvcc of a CUDA 12.x toolkit, found release ''",
            "CMAKE_CUDA_COMPILER=/nowhere/nvcc",
        )

    def test_headers_beside_the_compiler_are_of_another_version(self):
        root = self.toolkit("12.4", 12060)
        self.assert_stops(
            f"Expected the headers of CUDA 12.4, found 12.6 under {root}/include: "
            f"set CUDAToolkit_ROOT to the toolkit of {root}/bin/nvcc.",
            f"PAVO_CUDA_ROOT={root}",
        )

    def test_headers_of_another_toolkit(self):
        root = self.toolkit("12.9", 12090)
        self.assert_stops(
            f"found 12.9 under {root}/include",
            f"PAVO_CUDA_ROOT={TOOLKIT}",
            f"CUDAToolkit_ROOT={root}",
        )

    def test_a_toolkit_that_is_not_there(self):
        self.assert_stops(
            "No CUDA 12.x toolkit was found: run tools/cuda_toolkit.sh once, or set PAVO_CUDA_ROOT.",
            PAVO_CUDA_ROOT="/nowhere",
        )


if __name__ == "__main__":
    SOURCE, TOOLKIT = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1], verbosity=2)
