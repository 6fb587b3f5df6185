"""Runs the built `pavo` on a tiny model that the tools make; shared by the tests of this folder.

Arguments: the program, then the maker of models. What is left goes to unittest.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PAVO = None
MAKER = None

_folder = tempfile.TemporaryDirectory(prefix="pavo-apps-")
FOLDER = pathlib.Path(_folder.name)
TIMEOUT_S = 120  # of one command: generous, the sanitizers are slow


def environment(**extra):
    """The caller's, without settings of Pavo and with empty homes."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("PAVO_")}
    env["XDG_CONFIG_HOME"] = str(FOLDER / "config")
    env["XDG_CACHE_HOME"] = str(FOLDER / "cache")
    env.update(extra)
    return env


def pavo(*arguments, stdin=b"", env=None, **options):
    """Runs the program to its end; text of both streams decoded."""
    done = subprocess.run(
        [PAVO, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        env=env or environment(),
        timeout=TIMEOUT_S,
        **options,
    )
    done.stdout = done.stdout.decode("utf-8", "surrogateescape")
    done.stderr = done.stderr.decode("utf-8", "surrogateescape")
    return done


def sanitizer():
    """Which of the sanitizers that take addresses and signals for themselves: ASAN, TSAN or None."""
    program = pathlib.Path(PAVO).read_bytes()
    names = (name for name in ("ASAN", "TSAN") if f"__{name}_init".lower().encode() in program)
    return next(names, None)


def sanitizer_options(options):
    """For environment(): what the caller's has, and these."""
    variable = f"{sanitizer()}_OPTIONS"
    before = os.environ.get(variable)
    return {variable: f"{before}:{options}" if before else options} if sanitizer() else {}


def tiny_model(context=512, kind="f16"):
    path = FOLDER / f"tiny-{context}-{kind}.gguf"
    if not path.exists():
        subprocess.run(
            [sys.executable, MAKER, str(path), "--context", str(context), "--type", kind],
            check=True,
        )
    return path


class Case(unittest.TestCase):
    def assert_fails(self, done, code, *words):
        """Failed with this code, said so on standard error alone, with these words."""
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertIn("error: ", done.stderr)
        for word in words:
            self.assertIn(str(word), done.stderr)

    def assert_ok(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def json_of(self, done):
        return json.loads(self.assert_ok(done))


def main():
    global PAVO, MAKER
    PAVO, MAKER = sys.argv[1:3]
    unittest.main(module="__main__", argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
