"""What the tests of the installation share: a fresh prefix, and commands that must succeed."""

import os
import subprocess
import sys


def run(words, **options):
    """Runs a command and returns what it printed; ends the test with that if it fails."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{done.stdout[:8000]}\nexit code {done.returncode}, expected 0: {words}")
    return done.stdout


def clean_environment(home):
    """Nothing of the user's: no settings, caches or plugins."""
    dropped = ("PAVO_", "XDG_", "DESTDIR", "CMAKE_", "CXX", "CC", "LD_LIBRARY_PATH")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(dropped) or k.startswith("CCACHE")}
    return kept | {"HOME": str(home)}
