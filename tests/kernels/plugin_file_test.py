#!/usr/bin/env python3
"""Checks one built CUDA plugin: what it exports, needs, carries and says of itself, and its objects.

    plugin_file_test.py PLUGIN.so SM TOOLKIT (sass|ptx) OBJECT...
"""

import pathlib
import re
import subprocess
import sys

SIZE_LIMIT = {"sass": 60 << 20, "ptx": 12 << 20}  # of what is loaded; a release is stripped
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


def code_targets(cuobjdump, path):
    """(machine code, PTX): a list each of what the file carries, as sm_61."""
    listed = lambda flag, ext: re.findall(rf"(sm_\w+)\.{ext}", run(cuobjdump, flag, path))
    return listed("-lelf", "cubin"), listed("-lptx", "ptx")


def main():
    plugin, sm, toolkit, kind, *objects = sys.argv[1:]
    cuobjdump = str(pathlib.Path(toolkit) / "bin" / "cuobjdump")
    sass = [f"sm_{sm}"] if kind == "sass" else []

    symbols = [line.split()[-1] for line in run("nm", "-D", "--defined-only", plugin).splitlines()]
    expect("exported symbols", symbols, ["pavo_plugin_query"])

    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", plugin)))
    allowed = {"libstdc++.so.6", "libgcc_s.so.1", "libm.so.6", "libc.so.6", "ld-linux-x86-64.so.2"}
    expect("libraries beyond glibc and the C++ runtime", needed - allowed, set())

    for path in objects:
        expect(f"code of {path}", code_targets(cuobjdump, path), (sass, [f"sm_{sm}"]))
    expect("number of objects", len(objects) > 1, True)
    expect(
        "code of the plugin",
        code_targets(cuobjdump, plugin),
        (sass * len(objects), [f"sm_{sm}"] * len(objects)),
    )
    said = note(plugin)
    expect("note id", said.get("id"), f"cuda-sm{sm}")
    expect("note kind", said.get("kind"), "cuda")
    expect("note sass", said.get("sass"), f"sm_{sm}" if kind == "sass" else "")
    expect("note ptx", said.get("ptx"), f"compute_{sm}")

    size = sum(int(field) for field in run("size", plugin).splitlines()[-1].split()[:2])
    if size > SIZE_LIMIT[kind]:
        FAILURES.append(f"size: expected at most {SIZE_LIMIT[kind]} loaded bytes, got {size}")
    if FAILURES:
        print("\n".join(FAILURES))
        sys.exit(1)
    print(f"{plugin}: as it should be, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
