"""Follows docs/plugin-guide.md from the first word to the last: writes its files, runs its commands,
and looks for the output that it promises. HOME is a folder of its own.

Blocks of the guide: ```sh are commands; ```<language> <file> is a file, written where the commands stand;
```output is what the commands before it print, each line somewhere.

guide_test.py SOURCE_DIR BUILD_DIR
"""

import pathlib
import re
import shlex
import sys
import tempfile

from prefix import clean_environment, run

BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.M | re.S)
MOST_LINES = 150  # of all files of a plugin with one op


def blocks_of(guide):
    blocks = BLOCK.findall(guide.read_text())
    if guide.read_text().count("\n```") != 2 * len(blocks):
        sys.exit(f"{guide}: a block is neither sh, output, nor a file with its name")
    return blocks


def main():
    source_dir, build_dir = (pathlib.Path(word) for word in sys.argv[1:])
    guide = source_dir / "docs/plugin-guide.md"
    script, promises, lines = ["set -eu"], [[]], 0
    for language, name, text in blocks_of(guide):
        if language == "sh":
            # A mark before each block of commands, so that output is looked for after its own.
            script.append(f"echo '@@ {len(promises)}'")
            script.append(text)
            promises.append([])
        elif language == "output":
            promises[-1] += text.splitlines()
        else:
            script.append(f"printf %s {shlex.quote(text)} > {shlex.quote(name)}")
            lines += len(text.splitlines())
    if lines == 0 or lines > MOST_LINES:
        sys.exit(f"the plugin has {lines} lines, expected 1 to {MOST_LINES}")
    with tempfile.TemporaryDirectory() as folder:
        # The guide begins in the folder of the sources, with the build where its README puts it.
        start = pathlib.Path(folder) / "sources"
        (start / "build").mkdir(parents=True)
        (start / "build/cpu").symlink_to(build_dir)
        output = run(["bash", "-c", "\n".join(script)], cwd=start, env=clean_environment(folder))
    parts = re.split(r"^@@ \d+\n", output, flags=re.M)
    for found, expected in zip(parts, promises, strict=True):
        for line in expected:
            if line not in found:
                sys.exit(f"{found}\nthe guide promises '{line}'")
    print(f"{len(promises) - 1} blocks of commands passed; the plugin has {lines} lines")


if __name__ == "__main__":
    main()
