#!/usr/bin/env python3
"""Runs clang-tidy on every source of a build's compile_commands.json that lies in this repository.

A file that passed is not looked at again until it, a repository header it includes, its compile
command, a .clang-tidy or the version of clang-tidy changes. The record of passes lies in the user's
cache directory, as ccache's does, so that a fresh clone profits from it. The build must be up to
date: the headers of each source are those that the compiler reported to ninja.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def default_cache():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base) / "pavo" / "tidy"


def dependencies(build):
    """Object path -> repository files it was compiled from, as ninja recorded them."""
    text = subprocess.run(
        ["ninja", "-C", str(build), "-t", "deps"], check=True, capture_output=True, text=True
    ).stdout
    result = {}
    files = []
    for line in text.splitlines():
        if line.startswith("    "):
            path = pathlib.Path(os.path.normpath(build / line.strip()))
            if path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / "build"):
                files.append(path)
        elif ": #deps" in line:
            files = result[line.split(": #deps")[0]] = []
    return result


def object_of(entry):
    words = shlex.split(entry["command"])
    return words[words.index("-o") + 1]


def key_of(entry, files, salt):
    """Hash of all that decides the outcome; no path of this clone enters it."""
    digest = hashlib.sha256(salt)
    digest.update(entry["command"].replace(str(ROOT), ".").encode())
    for path in sorted(set(files) | {pathlib.Path(entry["file"])}):
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0")
        digest.update(path.read_bytes())
    return digest.hexdigest()


def run_one(build, source):
    done = subprocess.run(
        ["clang-tidy", "-p", str(build), "--quiet", source], capture_output=True, text=True
    )
    # stderr counts suppressed warnings of system headers; it matters only if the run failed.
    return done.returncode, done.stdout + (done.stderr if done.returncode else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "cpu")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--cache", type=pathlib.Path, default=default_cache())
    parser.add_argument("paths", nargs="*", help="only sources under these paths")
    args = parser.parse_args()
    build = args.build.resolve()

    only = [pathlib.Path(p).resolve() for p in args.paths]
    entries = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        ours = path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / "build")
        if ours and (not only or any(path.is_relative_to(p) for p in only)):
            entries[path] = entry
    if not entries:
        sys.exit(f"tidy: no source to check in {build}/compile_commands.json")

    version = subprocess.run(
        ["clang-tidy", "--version"], check=True, capture_output=True, text=True
    ).stdout
    salt = version.encode()
    for config in sorted([ROOT / ".clang-tidy", *ROOT.glob("[!.b]*/**/.clang-tidy")]):
        salt += str(config.relative_to(ROOT)).encode() + config.read_bytes()

    deps = dependencies(build)
    args.cache.mkdir(parents=True, exist_ok=True)
    todo = []
    for path, entry in sorted(entries.items()):
        files = deps.get(object_of(entry))
        # A source whose headers are unknown is checked each time.
        key = key_of(entry, files, salt) if files else None
        if key is None or not (args.cache / key).exists():
            todo.append((path, key))

    bad = []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        runs = {pool.submit(run_one, build, str(path)): (path, key) for path, key in todo}
        for run in concurrent.futures.as_completed(runs):
            path, key = runs[run]
            code, output = run.result()
            if code != 0:
                bad.append(path)
                print(output, flush=True)
            elif key is not None:
                (args.cache / key).touch()
    print(
        f"tidy: {len(entries)} sources, {len(entries) - len(todo)} unchanged since they passed, "
        f"{len(bad)} with findings"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
