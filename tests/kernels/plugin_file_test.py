#!/usr/bin/env python3
"""Checks one built CUDA plugin as a file: what it exports, needs, carries and says of itself.

    plugin_file_test.py PLUGIN.so SM TOOLKIT (sass|ptx)
"""

import pathlib
import re
import subprocess
import sys

FAILURES = []


def run(*command):
    # cuobjdump ends with an error where there is nothing to list; what it prints is what counts.
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def expect(name, got, wanted):
    if got != wanted:
        FAILURES.append(f"{name}: expected {wanted!r}, got {got!r}")


def note(plugin):
    text = run("readelf", "-p", ".note.pavo", plugin)
    return dict(re.findall(r"(\w+)=([^\n\\]*)\\n", text))


def main():
    plugin, sm, toolkit, kind = sys.argv[1:5]
    cuobjdump = str(pathlib.Path(toolkit) / "bin" / "cuobjdump")
    targets = lambda flag, ext: set(re.findall(rf"sm_\d+(?=\.{ext})", run(cuobjdump, flag, plugin)))

    symbols = [line.split()[-1] for line in run("nm", "-D", "--defined-only", plugin).splitlines()]
    expect("exported symbols", symbols, ["pavo_plugin_query"])

    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", plugin)))
    allowed = {"libstdc++.so.6", "libgcc_s.so.1", "libm.so.6", "libc.so.6", "ld-linux-x86-64.so.2"}
    expect("libraries beyond glibc and the C++ runtime", needed - allowed, set())

    expect("machine code", targets("-lelf", "cubin"), {f"sm_{sm}"} if kind == "sass" else set())
    expect("PTX", targets("-lptx", "ptx"), {f"sm_{sm}"})
    said = note(plugin)
    expect("note id", said.get("id"), f"cuda-sm{sm}")
    expect("note kind", said.get("kind"), "cuda")
    expect("note sass", said.get("sass"), f"sm_{sm}" if kind == "sass" else "")
    expect("note ptx", said.get("ptx"), f"compute_{sm}")

    if FAILURES:
        print("\n".join(FAILURES))
        sys.exit(1)
    print(f"{plugin}: as it should be")


if __name__ == "__main__":
    main()
