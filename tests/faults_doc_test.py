#!/usr/bin/env python3
"""Every test that docs/faults.md names exists."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAME = re.compile(r"`(\w+)\.(\w+)`")
CPP = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)")


def defined():
    names = set()
    for path in (ROOT / "tests").rglob("*_test.*"):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".cpp":
            names.update(CPP.findall(text))
        elif path.suffix == ".py":
            for group in re.split(r"(?m)^class ", text)[1:]:
                suite = re.match(r"\w+", group).group(0)
                names.update((suite, test) for test in re.findall(r"def (test_\w+)", group))
    return names


def main():
    rows = [
        line
        for line in (ROOT / "docs" / "faults.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and not line.startswith("| A plugin that")
    ]
    known = defined()
    bad = [f"no test in: {row}" for row in rows if not NAME.search(row.split("|")[-2])]
    for row in rows:
        cell = row.split("|")[-2]
        bad += [f"no test {s}.{t}" for s, t in NAME.findall(cell) if (s, t) not in known]
    print("\n".join(bad) or f"{len(rows)} rows")
    return 1 if bad or len(rows) < 30 else 0


if __name__ == "__main__":
    sys.exit(main())
