#!/usr/bin/env python3
"""Checks the shape of the tree: who includes whom, how long files are, what kernels may not say.

    architecture_test.py [--root DIR]    scans a tree; one file:line message per violation, exit 1
    architecture_test.py --self-test     builds trees that break each rule and demands the message

Arrows: apps -> llm -> core -> sdk <- kernels <- plugins; tests may include anything.
"""

import argparse
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent

# What each folder may include besides itself.
ALLOWED = {
    "sdk": set(),
    "core": {"sdk"},
    "llm": {"core", "sdk"},
    "apps": {"llm", "core", "sdk"},
    "kernels": {"sdk"},
    "plugins": {"kernels", "sdk"},
    "tests": {"sdk", "core", "llm", "apps", "kernels", "plugins"},
}
SOURCES = {".h", ".hpp", ".c", ".cpp", ".cu", ".cuh", ".inc"}
MEASURED = SOURCES | {".py", ".sh", ".cmake"}
LINES_WARN = 400
LINES_MAX = 800

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def strip_comments(text):
    """The text without comments, with the same line numbers."""

    def keep_lines(match):
        return re.sub(r"[^\n]", " ", match.group(0))

    return re.sub(r"/\*.*?\*/|//[^\n]*", keep_lines, text, flags=re.S)


def owner(parts):
    """Plugins may not include one another, so each plugin is an owner of its own."""
    return "/".join(parts[:2]) if parts[0] == "plugins" else parts[0]


def check_include(root, path, name, quoted):
    """The violation that `#include name` in path is, or None."""
    parts = path.relative_to(root).parts
    target = ("sdk",) if name.startswith("pavo/") else pathlib.PurePosixPath(name).parts
    if target[0] not in ALLOWED:
        if quoted and (path.parent / name).exists():
            return f'"{name}" is written from its own folder; write it from the repository root'
        return None
    if owner(target) == owner(parts) or target[0] in ALLOWED[parts[0]]:
        return None
    allowed = ", ".join(sorted(ALLOWED[parts[0]])) or "nothing else"
    return f'{owner(parts)} may not include "{name}"; besides itself it may include: {allowed}'


def scan(root):
    """(violations, warnings), each a list of "file:line: text"."""
    violations, warnings = [], []
    for folder in ALLOWED:
        for path in sorted((root / folder).rglob("*")):
            if not path.is_file() or path.suffix not in MEASURED:
                continue
            shown = path.relative_to(root)
            text = path.read_text(encoding="utf-8", errors="replace")
            lines = text.count("\n")
            if lines > LINES_MAX:
                violations.append(f"{shown}:{lines}: {lines} lines, the limit is {LINES_MAX}")
            elif lines > LINES_WARN:
                warnings.append(f"{shown}:{lines}: {lines} lines, look for a seam at {LINES_WARN}")
            if path.suffix not in SOURCES:
                continue
            for number, line in enumerate(strip_comments(text).splitlines(), 1):
                match = INCLUDE.match(line)
                if match:
                    name = match.group(1) or match.group(2)
                    problem = check_include(root, path, name, match.group(1) is not None)
                    if problem:
                        violations.append(f"{shown}:{number}: {problem}")
                if folder in ("kernels", "plugins") and "__CUDA_ARCH__" in line:
                    violations.append(
                        f"{shown}:{number}: __CUDA_ARCH__; put what differs into the Arch struct"
                    )
    return violations, warnings


class SelfTest(unittest.TestCase):
    """Every rule fires on a tree that breaks it, and only then."""

    def scan_tree(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return scan(root)

    def assert_violation(self, files, start, word):
        violations, _ = self.scan_tree(files)
        self.assertEqual(len(violations), 1, violations)
        self.assertTrue(violations[0].startswith(start), violations[0])
        self.assertIn(word, violations[0])

    def test_allowed_arrows_pass(self):
        tree = {
            "sdk/include/pavo/plugin.h": '#include <stdint.h>\n#include "pavo/quant.h"\n',
            "core/a.h": '#include <vector>\n#include "pavo/plugin.h"\n#include "core/b.h"\n',
            "llm/a.cpp": '#include "core/a.h"\n#include "llm/a.h"\n',
            "apps/cli/main.cpp": '#include "llm/a.h"\n#include "core/a.h"\n',
            "kernels/ops/a.cuh": '#include "kernels/common/b.cuh"\n#include "pavo/quant.h"\n',
            "plugins/cuda-sm60/arch.h": '#include "kernels/common/b.cuh"\n',
            "plugins/cpu/a.cpp": '#include "plugins/cpu/a.h"\n#include "hwy/highway.h"\n',
            "tests/a_test.cpp": '#include "apps/cli/a.h"\n#include "plugins/cpu/a.h"\n',
        }
        self.assertEqual(self.scan_tree(tree), ([], []))

    def test_every_forbidden_arrow_is_found(self):
        for source, allowed in ALLOWED.items():
            for target in set(ALLOWED) - allowed - {source}:
                with self.subTest(source=source, target=target):
                    files = {f"{source}/x/a.cpp": f'\n#include "{target}/y/a.h"\n'}
                    self.assert_violation(files, f"{source}/x/a.cpp:2: ", target)

    def test_angle_brackets_do_not_hide_an_arrow(self):
        self.assert_violation({"sdk/a.h": "#include <core/a.h>\n"}, "sdk/a.h:1: ", "core/a.h")

    def test_one_plugin_may_not_include_another(self):
        files = {"plugins/cpu/a.cpp": '#include "plugins/cuda-sm60/arch.h"\n'}
        self.assert_violation(files, "plugins/cpu/a.cpp:1: ", "cuda-sm60")

    def test_include_from_own_folder_is_found(self):
        files = {"core/a.cpp": '#include "b.h"\n', "core/b.h": ""}
        self.assert_violation(files, "core/a.cpp:1: ", "repository root")

    def test_comments_are_not_code(self):
        files = {
            "sdk/a.h": '// #include "core/a.h"\n/*\n#include "core/a.h"\n*/\n',
            "kernels/a.cuh": "// no __CUDA_ARCH__ here\n",
        }
        self.assertEqual(self.scan_tree(files), ([], []))

    def test_cuda_arch_is_found(self):
        files = {"plugins/cuda-sm60/a.cu": "/* a\n b */\n#if __CUDA_ARCH__ < 700\n#endif\n"}
        self.assert_violation(files, "plugins/cuda-sm60/a.cu:3: ", "__CUDA_ARCH__")

    def test_long_files(self):
        self.assertEqual(self.scan_tree({"core/a.cpp": "\n" * LINES_WARN}), ([], []))
        violations, warnings = self.scan_tree({"core/a.cpp": "\n" * LINES_MAX})
        self.assertEqual((len(violations), len(warnings)), (0, 1))
        self.assert_violation({"core/a.cpp": "\n" * (LINES_MAX + 1)}, "core/a.cpp:801: ", "801")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        unittest.main(argv=[sys.argv[0]])
    violations, warnings = scan(args.root.resolve())
    for line in warnings:
        print(f"warning: {line}")
    for line in violations:
        print(f"error: {line}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
