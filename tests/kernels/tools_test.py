#!/usr/bin/env python3
"""Tests of tools/kernel_resources.py and tools/sass_diff.py on texts as cuobjdump prints them."""

import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

import kernel_resources  # noqa: E402
import sass_diff  # noqa: E402

USAGE = """
Resource usage:
 Common:
  GLOBAL:0
 Function _ZN4pavo4cuda1kINS0_1KINS0_4Sm61EEEEEvi:
  REG:64 STACK:8 SHARED:32 LOCAL:0 CONSTANT[2]:24 CONSTANT[0]:616 TEXTURE:0 SURFACE:0 SAMPLER:0
"""
SASS = """
\t\tFunction : _Z1kPf
\t.headerflags\t@"EF_CUDA_SM61"
        /*0008*/                   MOV R1, c[0x0][0x20] ;        /* 0x4c98078000870001 */
        /*0010*/                   EXIT ;                        /* 0xe30000000007000f */
\t\tFunction : _Z1jPf
        /*0008*/                   EXIT ;                        /* 0xe30000000007000f */
"""


class KernelResourcesTest(unittest.TestCase):
    def test_reads_usage(self):
        ((name, numbers),) = kernel_resources.parse_usage(USAGE)
        self.assertEqual((numbers["REG"], numbers["STACK"], numbers["SHARED"]), (64, 8, 32))
        self.assertEqual(kernel_resources.short_name(name), "k<K<Sm61>>")

    def test_allow_list_matches_parts(self):
        entry = {"line": 1, "match": ["12.4", "*", "k<K"], "stack": 8, "used": False}
        self.assertEqual(kernel_resources.allowed_stack([entry], "12.4", "p", "k<K<Sm61>>"), 8)
        self.assertTrue(entry["used"])
        self.assertEqual(kernel_resources.allowed_stack([entry], "12.9", "p", "k<K<Sm61>>"), 0)
        self.assertEqual(kernel_resources.allowed_stack([entry], "12.4", "p", "other"), 0)


class SassDiffTest(unittest.TestCase):
    def test_addresses_do_not_count(self):
        moved = SASS.replace("/*0008*/", "/*0108*/").replace("0x4c98078000870001", "0x1")
        self.assertEqual(sass_diff.compare(sass_diff.parse_sass(SASS), sass_diff.parse_sass(moved)), [])

    def test_names_what_differs(self):
        other = SASS.replace("c[0x0][0x20]", "c[0x0][0x28]").replace("_Z1jPf", "_Z1iPf")
        found = sass_diff.compare(sass_diff.parse_sass(SASS), sass_diff.parse_sass(other))
        self.assertEqual(
            found, [("added", "_Z1iPf", 0, 1), ("gone", "_Z1jPf", 1, 0), ("changed", "_Z1kPf", 2, 2)]
        )


if __name__ == "__main__":
    unittest.main()
