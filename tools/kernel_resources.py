#!/usr/bin/env python3
"""Registers, stack and shared memory of every kernel in built CUDA plugins, and what is not allowed.

    kernel_resources.py --toolkit DIR [--allow FILE] [--table] PLUGIN.so ...

A stack frame, spilled or local memory, and more than 48 KB of static shared memory fail, unless a
line of the allow-list has the kernel:

    TOOLKIT  PLUGIN  KERNEL  STACK_BYTES  reason ...

TOOLKIT is a version such as 12.4, PLUGIN the file name without lib and .so, KERNEL a part of the
demangled name without spaces; * stands for any. An entry that no kernel needs any more fails too.
"""

import argparse
import pathlib
import re
import subprocess
import sys

STATIC_SHARED_LIMIT = 48 * 1024


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def toolkit_version(root):
    return re.search(r"release (\d+\.\d+)", output(str(root / "bin" / "nvcc"), "--version")).group(1)


def short_name(mangled):
    """pavo::cuda::norm_generic_kernel<...>(...) without namespaces, spaces and arguments."""
    name = output("c++filt", mangled).strip().replace("pavo::cuda::", "").replace("void ", "")
    depth = 0
    for i, letter in enumerate(name):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth == 0:
            name = name[:i]
            break
    return name.replace(" ", "")


def parse_usage(text):
    """[(mangled name, {"REG": 32, "STACK": 0, ...})] of cuobjdump --dump-resource-usage."""
    kernels = []
    pattern = r"Function (\S+?):\s*\n\s*(REG:.*)"
    for name, numbers in re.findall(pattern, text):
        values = {key: int(value) for key, value in re.findall(r"(\w+):(\d+)", numbers)}
        kernels.append((name, values))
    return kernels


def read_allowed(path):
    entries = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        fields = line.split(None, 4)
        if len(fields) != 5:
            sys.exit(f"{path}:{number}: expected TOOLKIT PLUGIN KERNEL STACK_BYTES reason")
        entries.append({"line": number, "match": fields[:3], "stack": int(fields[3]), "used": False})
    return entries


def allowed_stack(entries, toolkit, plugin, kernel):
    most = 0
    for entry in entries:
        wanted_toolkit, wanted_plugin, wanted_kernel = entry["match"]
        if (
            wanted_toolkit in ("*", toolkit)
            and wanted_plugin in ("*", plugin)
            and (wanted_kernel == "*" or wanted_kernel in kernel)
        ):
            entry["used"] = True
            most = max(most, entry["stack"])
    return most


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--toolkit", type=pathlib.Path, required=True)
    parser.add_argument("--allow", type=pathlib.Path)
    parser.add_argument("--table", action="store_true", help="print every kernel")
    parser.add_argument("plugins", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()

    toolkit = toolkit_version(arguments.toolkit)
    entries = read_allowed(arguments.allow) if arguments.allow else []
    failures = []
    for path in arguments.plugins:
        plugin = path.stem.removeprefix("lib")
        text = output(str(arguments.toolkit / "bin" / "cuobjdump"), "--dump-resource-usage", str(path))
        kernels = parse_usage(text)
        if not kernels:
            failures.append(f"{plugin}: no kernel found; was it built with machine code?")
        for mangled, numbers in kernels:
            kernel = short_name(mangled)
            if arguments.table:
                print(
                    f"{plugin:18} {numbers['REG']:4} registers {numbers['STACK']:5} stack "
                    f"{numbers['LOCAL']:5} local {numbers['SHARED']:6} shared  {kernel}"
                )
            stack = numbers["STACK"] + numbers["LOCAL"]
            if stack > 0 and stack > allowed_stack(entries, toolkit, plugin, kernel):
                failures.append(f"{plugin}: {kernel} has {stack} bytes of stack or local memory")
            if numbers["SHARED"] > STATIC_SHARED_LIMIT:
                failures.append(f"{plugin}: {kernel} has {numbers['SHARED']} bytes of static shared memory")
    for entry in entries:
        if not entry["used"] and entry["match"][0] in ("*", toolkit):
            failures.append(f"{arguments.allow}:{entry['line']}: no kernel needs this entry")
    if failures:
        print("\n".join(failures))
        sys.exit(1)
    print(f"kernel_resources: {len(arguments.plugins)} plugins, toolkit {toolkit}: as it should be")


if __name__ == "__main__":
    main()
