#!/usr/bin/env python3
"""Every allocation of a short run fails in turn: the documented exit and message, nothing leaked.

    allocation_checks.py PAVO MODEL PLUGIN

MODEL should be tiny, since the program runs once for each allocation. Exit status 0 if all holds.
"""

import re
import subprocess
import sys

OUT_OF_MEMORY = r"(?m)^error: .*(device|pinned host) memory: expected \d+ bytes to be free"
LEAK = "in use; buffers must be destroyed before their device"
COUNT = r"fail_alloc_at: (\d+) allocations"
NEVER = 1 << 60


def run(pavo, model, plugin, number):
    command = [pavo, "run", "-m", model, "-p", "Once", "-n", "4", "--temp", "0", "-c", "128"]
    command += ["--backend", plugin, "--plugin-option", f"{plugin}.fail_alloc_at={number}"]
    done = subprocess.run(command, capture_output=True, check=False, timeout=300)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


def count_of(errors):
    """Of the device that did the work; another one may have been opened and not used."""
    return max((int(count) for count in re.findall(COUNT, errors)), default=None)


def faults(number, count, outcome, whole):
    """What is wrong with the run whose allocation `number` failed."""
    code, text, errors = outcome
    if LEAK in errors:
        yield "leaked: " + errors
    if number > count:
        if code != 0 or text != whole:
            yield f"expected the whole text, got exit {code}: {errors}"
        return
    if code != 1 or not re.search(OUT_OF_MEMORY, errors):
        yield f"expected exit 1 and the memory that was asked for, got exit {code}: {errors}"
    if not whole.startswith(text):
        yield f"expected no other text than that of a whole run, got {text!r}"
    if count_of(errors) is None:
        yield "the device was not closed"


def main():
    pavo, model, plugin = sys.argv[1:4]
    code, whole, errors = run(pavo, model, plugin, NEVER)
    count = count_of(errors)
    if code != 0 or not whole or not count or LEAK in errors:
        sys.exit(f"a run in which no allocation fails: exit {code}: {errors}")
    failures = []
    for number in range(1, count + 2):
        for fault in faults(number, count, run(pavo, model, plugin, number), whole):
            failures.append(f"allocation {number} of {count}: {fault[-600:]}")
    print("\n".join(failures))
    print(f"measured: {count} allocations failed in turn, {len(failures)} faults")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
