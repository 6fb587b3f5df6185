#!/usr/bin/env python3
"""What a user sees of plugins that crash, hang and fail while a model runs, and what runs on a
device whose memory the host cannot touch. PAVO_TEST_FAKES names the folder of the fake plugins."""

import os
import pathlib
import signal
import subprocess
import tempfile
import time

import harness
from harness import Case, pavo, tiny_model

FAKES = pathlib.Path(os.environ["PAVO_TEST_FAKES"])
GREEDY = ["-p", "Once", "-n", "20", "--temp", "0"]


def fake(name):
    return FAKES / name / f"{name}.so"


class Faults(Case):
    def setUp(self):
        self.cache = tempfile.TemporaryDirectory(prefix="pavo-cache-")
        self.addCleanup(self.cache.cleanup)

    def environment(self, **extra):
        return harness.environment(XDG_CACHE_HOME=self.cache.name, **extra)

    def run_mock(self, fault, *arguments, **variables):
        return pavo(
            *("run", "-m", tiny_model(), *GREEDY, "--plugin-path", fake("mock")),
            *("--backend", "mock", "--plugin-option", f"mock.fault={fault}", *arguments),
            env=self.environment(**variables),
        )

    def test_a_crash_is_named_tried_again_and_skipped_until_it_is_cleared(self):
        if harness.sanitizer():
            self.skipTest("it takes the signals that the crash guard would take")
        first = self.run_mock("submit@3=crash")
        self.assertEqual(first.returncode, -signal.SIGILL, first.stderr)
        self.assertIn("error: plugin mock crashed with SIGILL in submit; the next", first.stderr)
        second = self.run_mock("submit@3=crash")
        self.assertEqual(second.returncode, -signal.SIGILL)
        self.assertIn(
            "plugin mock: the last time it was used the program crashed with SIGILL in submit; "
            "it is tried again, once",
            second.stderr,
        )
        third = self.run_mock("submit@3=crash")
        self.assert_fails(third, 4, "and so it did before; skipped, until you replace the plugin")
        remedy = third.stderr.split("or run: ")[1].split("\n")[0]
        subprocess.run(remedy, shell=True, check=True)
        self.assert_ok(self.run_mock(""))

    def test_a_crash_in_a_thread_of_the_plugin_is_named(self):
        if harness.sanitizer():
            self.skipTest("it takes the signals that the crash guard would take")
        done = self.run_mock("submit@3=crash_late")
        self.assertEqual(done.returncode, -signal.SIGILL)
        self.assertIn("plugin mock crashed with SIGILL in a thread of its own", done.stderr)

    def test_a_run_that_goes_well_clears_a_strike(self):
        if harness.sanitizer():
            self.skipTest("it takes the signals that the crash guard would take")
        self.run_mock("submit@3=crash")
        self.assertIn("it is tried again", self.run_mock("").stderr)
        self.assertNotIn("it is tried again", self.run_mock("").stderr)

    def test_a_hang_is_ended_by_the_watchdog(self):
        for fault, call in (("submit@3=hang", "submit"), ("copy@5=hang_late", "timeline_wait")):
            done = self.run_mock(fault, PAVO_HANG_TIMEOUT_S="1")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(
                f"error: plugin mock did not come back within 1 s from {call} "
                "(the limit is the setting hang_timeout_s)",
                done.stderr,
            )
        self.assert_fails(self.run_mock(""), 4, "did not come back within 1 s", "skipped")

    def test_errors_end_the_run_with_a_message(self):
        for fault, words in (
            ("submit@3=error", "mock: submit: the mock was told to fail"),
            ("submit@3=fail", "mock: the mock was told that queued work fails"),
            ("submit@3=lost", "mock: the mock was told to lose its device"),
            ("submit@3=throw", "mock: submit threw an exception"),
            ("buffer_create@2=oom", "mock: buffer_create: the mock was told to have no memory"),
        ):
            done = self.run_mock(fault)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("error: " + words, done.stderr)
        self.assert_ok(self.run_mock(""))  # none of them was a strike

    def test_a_host_that_was_killed_while_loading_names_the_plugin_next_time(self):
        command = [harness.PAVO, "doctor", "--plugin-path", str(fake("HangInHost"))]
        crashes = pathlib.Path(self.cache.name) / "pavo" / "crashes"
        child = subprocess.Popen(
            command, env=self.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + harness.TIMEOUT_S
        while not list(crashes.glob("*.loading")) and time.monotonic() < deadline:
            time.sleep(0.01)
        child.kill()
        child.wait()
        done = pavo(
            *("run", "-m", tiny_model(), *GREEDY, "--plugin-path", fake("HangInHost")),
            *("--backend", "cpu"),
            env=self.environment(),
        )
        self.assert_ok(done)
        self.assertIn(
            "plugin fake-hanginhost: the last time it was used the program ended while loading it",
            done.stderr,
        )

    def test_bad_plugins_cost_a_line_each_and_nothing_else(self):
        names = ("TrapInConstructor", "ExitInConstructor", "old_major", "TwiceSameDevice")
        paths = [word for name in names for word in ("--plugin-path", fake(name))]
        done = pavo("run", "-m", tiny_model(), *GREEDY, *paths, env=self.environment())
        expected = pavo("run", "-m", tiny_model(), *GREEDY, env=self.environment())
        self.assertEqual(self.assert_ok(done), self.assert_ok(expected))
        warnings = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
        self.assertEqual(len(warnings), len(names), done.stderr)

    def test_a_plugin_in_the_current_directory_is_not_looked_at(self):
        with tempfile.TemporaryDirectory() as folder:
            target = pathlib.Path(folder) / "TrapInHost.so"
            target.write_bytes(fake("TrapInHost").read_bytes())
            done = pavo("doctor", env=self.environment(), cwd=folder)
            self.assertNotIn("TrapInHost", self.assert_ok(done))
            done = pavo("doctor", env=self.environment(PAVO_PLUGIN_PATH="."), cwd=folder)
            self.assertIn("plugins are never taken from the current", self.assert_ok(done))


class MockDevice(Case):
    """The same text wherever the nodes run: the mock computes with the CPU's reference kernels."""

    def text(self, *arguments):
        done = pavo("run", "-m", tiny_model(), *GREEDY, "--plugin-path", fake("mock"), *arguments)
        return self.assert_ok(done), done.stderr

    def test_whole_model(self):
        reference = ("--plugin-option", "cpu.reference=1", "--plugin-option", "cpu.threads=1")
        expected, _ = self.text("--backend", "cpu", *reference)
        self.assertGreater(len(expected.strip()), 5)
        for options, words in (
            ({}, "34 nodes on mock-0"),
            ({"latency_us": 300}, "34 nodes on mock-0"),
            ({"refuse": "attention"}, "2 nodes on cpu"),
            ({"refuse": "attention", "latency_us": 300}, "2 nodes on cpu"),
            ({"refuse": "matmul,glu"}, "nodes on cpu"),
            ({"refuse": "*"}, "34 nodes on cpu"),
            ({"only": "matmul,norm,kv_store"}, "nodes on cpu"),
            ({"refuse": "matmul:dim1.0>256"}, "1 nodes on cpu"),
        ):
            given = [w for k, v in options.items() for w in ("--plugin-option", f"mock.{k}={v}")]
            text, notes = self.text("--backend", "mock", *reference, *given)
            self.assertEqual(text, expected, options)
            self.assertIn(words, notes)


if __name__ == "__main__":
    harness.main()
