#!/usr/bin/env python3
"""Compares the machine code of two builds kernel by kernel.

    sass_diff.py --toolkit DIR OLD.so NEW.so [--require-same]

Prints each kernel that differs, was added or went, with its instruction counts; exit 1 with
--require-same if there is one. Addresses and encodings are left out, so that a change in one kernel
does not show in its neighbours. Shows that a change meant for one chip leaves the others alone.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys


def parse_sass(text):
    """Mangled name -> list of instructions, of the text of cuobjdump -sass."""
    kernels = collections.OrderedDict()
    current = None
    for line in text.splitlines():
        function = re.match(r"\s*Function : (\S+)", line)
        if function:
            current = kernels.setdefault(function.group(1), [])
            continue
        instruction = re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(.*?;)", line)
        if instruction and current is not None:
            current.append(re.sub(r"\s+", " ", instruction.group(1)))
    return kernels


def load(toolkit, path):
    command = [str(toolkit / "bin" / "cuobjdump"), "-sass", str(path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    kernels = parse_sass(result.stdout)
    if not kernels:
        sys.exit(f"sass_diff: no machine code in {path}: {result.stderr.strip()}")
    return kernels


def compare(old, new):
    """[(word, name, old count, new count)] of everything that is not the same."""
    differences = []
    for name in sorted(set(old) | set(new)):
        if name not in new:
            differences.append(("gone", name, len(old[name]), 0))
        elif name not in old:
            differences.append(("added", name, 0, len(new[name])))
        elif old[name] != new[name]:
            differences.append(("changed", name, len(old[name]), len(new[name])))
    return differences


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--toolkit", type=pathlib.Path, required=True)
    parser.add_argument("--require-same", action="store_true")
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    arguments = parser.parse_args()

    old, new = load(arguments.toolkit, arguments.old), load(arguments.toolkit, arguments.new)
    differences = compare(old, new)
    names = "\n".join(name for _, name, _, _ in differences)
    readable = subprocess.run(
        ["c++filt"], input=names, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for (word, _, before, after), name in zip(differences, readable):
        print(f"{word:8} {before:6} -> {after:6}  {name.replace('pavo::cuda::', '')}")
    print(f"sass_diff: {len(set(old) | set(new))} kernels, {len(differences)} differ")
    sys.exit(1 if differences and arguments.require_same else 0)


if __name__ == "__main__":
    main()
