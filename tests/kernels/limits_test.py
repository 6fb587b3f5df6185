#!/usr/bin/env python3
"""Every launch against what its kernel was compiled to and what the chip has.

    limits_test.py TESTS TOOLKIT PLUGIN.so ...

TESTS (pavo_kernels_tests) launches every variant on the fake runtime and writes the largest launch
of each kernel. Shared memory, static and dynamic together, threads against the launch bounds, and
registers of a block must fit the chip: the cards that tests run on allow more.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

import kernel_resources  # noqa: E402

# CUDA programming guide 12.4, technical specifications per compute capability.
SHARED_BYTES = {"60": 48 << 10, "61": 48 << 10, "70": 96 << 10}
REGISTERS = 64 << 10
WARP = 32
REGISTER_UNIT = 8  # a thread's registers are allotted in such units


def launches(tests):
    """Mangled name -> (threads, dynamic shared bytes)."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "launches"
        subprocess.run(
            [tests, "--gtest_filter=TablesTest.EveryVariantFitsTheChip", "--gtest_brief=1"],
            env={**os.environ, "PAVO_TEST_LAUNCHES_FILE": str(path)},
            check=True,
        )
        rows = [line.split() for line in path.read_text().splitlines()]
    return {name: (int(threads), int(shared)) for name, threads, shared in rows}


def max_threads(text):
    """Mangled name -> threads of the launch bounds, of the text of cuobjdump -elf."""
    found = {}
    name = None
    lines = text.splitlines()
    for i, line in enumerate(lines):
        section = re.fullmatch(r"\.nv\.info\.(\S+)", line)
        if section:
            name = section.group(1)
        if "EIATTR_MAX_THREADS" in line and name is not None:
            sizes = re.findall(r"0x[0-9a-f]+", lines[i + 2])
            found[name] = int(sizes[0], 16) * int(sizes[1], 16) * int(sizes[2], 16)
    return found


def round_up(value, unit):
    return (value + unit - 1) // unit * unit


def faults(usage, bounds, launch, shared_limit):
    """What is beyond a limit; (threads, dynamic shared) = launch, None: it was never launched."""
    if launch is None or launch[0] == 0:
        yield "is never launched by the tests: give tests/kernels/decoder.h a node that needs it"
        return
    threads, dynamic = launch
    if usage["SHARED"] + dynamic > shared_limit:
        yield f"uses {usage['SHARED']} + {dynamic} bytes of shared memory, the chip has {shared_limit}"
    if bounds is None:
        yield "has no launch bounds"
    elif threads > bounds:
        yield f"is launched with {threads} threads, its launch bounds are {bounds}"
    registers = round_up(usage["REG"], REGISTER_UNIT) * round_up(threads, WARP)
    if registers > REGISTERS:
        yield f"needs {registers} registers a block, the chip has {REGISTERS}"


def main():
    tests, toolkit, *plugins = sys.argv[1:]
    cuobjdump = str(pathlib.Path(toolkit) / "bin" / "cuobjdump")
    launched = launches(tests)
    failures = []
    kernels = 0
    for plugin in plugins:
        shared_limit = SHARED_BYTES[re.search(r"sm(\d\d)\.so$", plugin).group(1)]
        bounds = max_threads(kernel_resources.output(cuobjdump, "-elf", plugin))
        usage = kernel_resources.output(cuobjdump, "--dump-resource-usage", plugin)
        for name, numbers in kernel_resources.parse_usage(usage):
            kernels += 1
            for fault in faults(numbers, bounds.get(name), launched.get(name), shared_limit):
                failures.append(f"{kernel_resources.short_name(name)} {fault}")
    if failures or kernels == 0:
        print("\n".join(failures or ["no kernel found"]))
        sys.exit(1)
    print(f"limits: {kernels} kernels of {len(plugins)} plugins fit their chips")


if __name__ == "__main__":
    main()
