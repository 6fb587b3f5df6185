#!/usr/bin/env python3
"""Commands that run a model: run, bench."""

import json
import os
import pty
import re
import resource
import signal
import subprocess
import time

import harness
from harness import Case, pavo, tiny_model

GREEDY = ["--temp", "0", "--threads", "2"]


def run(*arguments, model=None, **options):
    return pavo("run", "-m", model or tiny_model(), *arguments, **options)


def limit_memory(size):
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


class Run(Case):
    def test_text_on_one_stream_the_rest_on_the_other(self):
        done = run("-p", "Once", "-n", "12", *GREEDY, "--timings")
        text = self.assert_ok(done)
        self.assertGreater(len(text.strip()), 5)
        self.assertTrue(text.endswith("\n"))
        for word in ("placement: ", "prompt: ", "generation: 12 tokens", "tokens/s", "first token"):
            self.assertIn(word, done.stderr)
            self.assertNotIn(word, text)

    def test_trace_tells_every_node_of_every_step(self):
        path = harness.FOLDER / "trace.json"
        self.assert_ok(run("-p", "Once", "-n", "3", *GREEDY, "--trace", path))
        events = [e for e in json.loads(path.read_text()) if e["ph"] == "X"]
        steps = [e for e in events if e["name"] == "step"]
        self.assertEqual(len(steps), 3)  # the prompt's gives the first token
        for step in steps:
            end = step["ts"] + step["dur"] + 0.01
            inside = [e for e in events if step["ts"] <= e["ts"] and e["ts"] + e["dur"] <= end]
            nodes = [e for e in inside if e["cat"] == "node"]
            self.assertEqual(len(nodes), 34 + (step is steps[0]))
            self.assertLessEqual(sum(e["dur"] for e in nodes), step["dur"])
            self.assertTrue(all(e["args"]["kernel"] for e in nodes))
            self.assertIn("blk.0.attn_q", [e["name"] for e in nodes])

    def test_trace_that_cannot_be_written(self):
        missing = harness.FOLDER / "missing" / "trace.json"
        done = run("-p", "Once", "-n", "1", *GREEDY, "--trace", missing)
        self.assert_fails(done, 1, missing, "No such file or directory")
        done = run("-p", "Once", "-n", "1", *GREEDY, "--trace", "/dev/full")
        self.assertEqual(done.returncode, 1)
        self.assertIn("could not be written to its end", done.stderr)

    def test_quiet(self):
        done = run("-p", "Once", "-n", "4", *GREEDY, "--quiet")
        self.assert_ok(done)
        self.assertEqual(done.stderr, "")

    def test_greedy_twice_is_the_same(self):
        first = self.assert_ok(run("-p", "Once", "-n", "40", *GREEDY))
        self.assertEqual(first, self.assert_ok(run("-p", "Once", "-n", "40", *GREEDY)))

    def test_same_seed_same_text_other_seed_other_text(self):
        options = ["-p", "Once", "-n", "40", "--temp", "1.5", "--top-k", "0", "--threads", "2"]
        texts = [self.assert_ok(run(*options, "--seed", seed)) for seed in (7, 7, 8)]
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])

    def test_a_random_seed_is_told(self):
        done = run("-p", "Once", "-n", "20", "--temp", "1.5")
        text = self.assert_ok(done)
        seed = done.stderr.split("seed: ")[1].split()[0]
        again = run("-p", "Once", "-n", "20", "--temp", "1.5", "--seed", seed)
        self.assertEqual(self.assert_ok(again), text)

    def test_prompt_from_file_and_standard_input(self):
        path = harness.FOLDER / "prompt.txt"
        path.write_text("Once upon")
        expected = self.assert_ok(run("-p", "Once upon", "-n", "8", *GREEDY))
        self.assertEqual(self.assert_ok(run("-f", path, "-n", "8", *GREEDY)), expected)
        done = run("-f", "-", "-n", "8", *GREEDY, stdin=b"Once upon")
        self.assertEqual(self.assert_ok(done), expected)

    def test_prompt_is_needed_and_only_once(self):
        self.assert_fails(run("-n", "1"), 2, "-p TEXT")
        self.assert_fails(run("-p", "a", "-f", "b"), 2, "--prompt")

    def test_empty_prompt(self):
        self.assert_fails(run("-p", ""), 2, "the prompt is empty")
        self.assert_fails(run("-f", "-"), 2, "the prompt is empty")

    def test_no_tokens_wanted(self):
        done = run("-p", "Once", "-n", "0", "--timings")
        self.assertEqual(self.assert_ok(done), "")
        self.assertIn("prompt: ", done.stderr)

    def test_batches_do_not_change_the_text(self):
        prompt = "all the men in the town are on the hill " * 6
        expected = self.assert_ok(run("-p", prompt, "-n", "16", *GREEDY, "--exact"))
        for batch in ("1", "7", "64"):
            done = run("-p", prompt, "-n", "16", *GREEDY, "--exact", "--batch", batch)
            self.assertEqual(self.assert_ok(done), expected)

    def test_prompt_longer_than_the_context(self):
        prompt = "the " * 600  # more than the 512 that the model knows
        self.assert_fails(run("-p", prompt), 2, "tokens, but the context holds 512", "-c")
        self.assert_fails(run("-p", "a b c d e f", "-c", "4"), 2, "the context holds 4")

    def test_generation_stops_at_the_full_context(self):
        done = run("-p", "Once", "-c", "24", *GREEDY)
        self.assert_ok(done)
        self.assertIn("the context of 24 tokens is full", done.stderr)

    def test_context_beyond_the_models_is_warned_about(self):
        done = run("-p", "Once", "-n", "4", "-c", "1024", *GREEDY)
        self.assertGreater(len(self.assert_ok(done)), 1)
        self.assertIn("warning: a context of 1024 tokens (--context) is beyond the 512", done.stderr)

    def test_backends_that_are_not_there(self):
        self.assert_fails(run("-p", "a", "--backend", "cuda-sm99"), 4, "cuda-sm99")
        self.assert_fails(run("-p", "a", "--device", "GPU-0"), 4, "GPU-0")
        self.assert_fails(run("-p", "a", "--place", "*=cuda-sm99"), 4, "cuda-sm99")

    def test_options_of_plugins_are_checked_by_them(self):
        self.assert_fails(run("-p", "a", "--plugin-option", "cpu.thread=2"), 2, "thread")
        self.assert_fails(run("-p", "a", "--plugin-option", "cpu.threads=x"), 2, "threads", "'x'")

    def test_a_refused_op_is_named_with_its_reason(self):
        done = run("-p", "a", "--plugin-option", "cpu.refuse=attention")
        self.assert_fails(done, 4, "no device runs attention", "blk.0", "refuse")

    def test_a_context_without_memory_for_it(self):
        # A sanitizer needs all addresses, and can limit memory itself.
        limits = "max_allocation_size_mb=4096:allocator_may_return_null=1"
        env = harness.environment(**harness.sanitizer_options(limits))
        limit = None if harness.sanitizer() else lambda: limit_memory(4 << 30)
        done = run("-p", "a", "-c", "134217728", env=env, preexec_fn=limit)
        self.assert_fails(done, 1, "bytes of host memory", "smaller context")

    def test_threads_that_cannot_be_had(self):
        if harness.sanitizer():
            self.skipTest("a sanitizer needs the addresses that the limit takes")
        expected = self.assert_ok(run("-p", "Once", "-n", "4", *GREEDY))
        stack = 1 << 47  # of every new thread: more than there are addresses
        done = run(
            "-p",
            "Once",
            "-n",
            "4",
            *GREEDY,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (stack, stack)),
        )
        self.assertEqual(self.assert_ok(done), expected)
        self.assertIn("the system gave only 1 of 2 threads", done.stderr)

    def test_kv_types(self):
        expected = self.assert_ok(run("-p", "Once", "-n", "8", *GREEDY, "--kv-type", "f32"))
        same = run("-p", "Once", "-n", "8", *GREEDY, "--kv-type", "f16,f16")
        self.assertEqual(self.assert_ok(same), expected)
        self.assert_ok(run("-p", "Once", "-n", "8", *GREEDY, "--kv-type", "q8_0,f16"))


class Streams(Case):
    def start(self, *arguments):
        model = tiny_model(context=65536)
        return subprocess.Popen(
            [harness.PAVO, "run", "-m", model, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=harness.environment(),
        )

    def test_interrupt_keeps_the_text_and_tells_the_timings(self):
        command = self.start("-p", "Once", *GREEDY, "-c", "60000", "--timings")
        first = command.stdout.read(20)
        command.send_signal(signal.SIGINT)
        rest, err = command.communicate(timeout=harness.TIMEOUT_S)
        self.assertEqual(command.returncode, 130, err)
        self.assertEqual(len(first), 20)
        self.assertTrue((first + rest).endswith(b"\n"))
        self.assertIn(b"generation: ", err)
        self.assertNotIn(b"error", err)

    def test_a_model_that_is_cut_in_use_is_named_and_no_plugin_blamed(self):
        model = harness.FOLDER / "cut-in-use.gguf"
        env = harness.environment(
            XDG_CACHE_HOME=str(harness.FOLDER / "cut-cache"),
            **harness.sanitizer_options("handle_sigbus=0"),  # it would report it itself
        )
        for _ in range(2):  # the second time a plugin is skipped, were it one's fault
            model.write_bytes(tiny_model(context=65536).read_bytes())
            command = subprocess.Popen(
                [harness.PAVO, "run", "-m", model, "-p", "Once", *GREEDY, "-c", "60000"],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=env,
            )
            self.assertEqual(len(command.stdout.read(10)), 10)
            os.truncate(model, 4096)
            _, err = command.communicate(timeout=harness.TIMEOUT_S)
            self.assertEqual(command.returncode, 1, err)
            self.assertIn(f"error: '{model}' cannot be read any more".encode(), err)
            self.assertNotIn(b"plugin", err)
        self.assert_ok(run("-p", "a", "-n", "1", env=env))

    def start_long_prompt(self, batch):
        path = harness.FOLDER / "long.txt"
        path.write_text("the hill " * 10000)
        command = self.start("-f", path, "--batch", str(batch), "-n", "5", "--timings")
        # These lines come when the model is ready; the prompt follows at once.
        self.assertIn(b"placement: ", command.stderr.readline())
        self.assertIn(b"seed: ", command.stderr.readline())
        time.sleep(0.3)
        command.send_signal(signal.SIGINT)
        return command

    def test_interrupt_in_a_long_prompt(self):
        command = self.start_long_prompt(batch=16)
        out, err = command.communicate(timeout=harness.TIMEOUT_S)
        self.assertEqual((command.returncode, out), (130, b""), err)
        self.assertLess(int(re.search(rb"(?m)^prompt: (\d+) tokens", err)[1]), 30000)
        self.assertNotIn(b"generation: ", err)

    def test_second_interrupt_ends_a_long_step_at_once(self):
        command = self.start_long_prompt(batch=65536)
        time.sleep(0.2)
        self.assertIsNone(command.poll(), "the one step was to take longer than this")
        command.send_signal(signal.SIGINT)
        command.communicate(timeout=harness.TIMEOUT_S)
        self.assertEqual(command.returncode, -signal.SIGINT)

    def test_progress_bar_on_a_terminal_only(self):
        path = harness.FOLDER / "long.txt"
        path.write_text("the hill " * 200)
        arguments = ["-m", tiny_model(context=4096), "-f", path, "--batch", "16", "-n", "1"]
        terminal, inner = pty.openpty()
        command = [harness.PAVO, "run", *map(str, arguments)]
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=inner,
            env=harness.environment(),
            timeout=harness.TIMEOUT_S,
        )
        os.close(inner)
        shown = os.read(terminal, 1 << 16)
        os.close(terminal)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"prompt [", shown)
        self.assertNotIn("prompt [", pavo("run", *arguments).stderr)

    def test_reader_that_goes_away_ends_the_run_quietly(self):
        command = self.start("-p", "Once", *GREEDY, "-c", "60000", "--quiet")
        self.assertEqual(len(command.stdout.read(10)), 10)
        command.stdout.close()
        self.assertEqual(command.stderr.read(), b"")
        self.assertEqual(command.wait(harness.TIMEOUT_S), 0)
        command.stderr.close()

    def test_text_comes_as_it_is_made(self):
        command = self.start("-p", "Once", *GREEDY, "-c", "60000")
        self.assertEqual(len(command.stdout.read(5)), 5)
        self.assertIsNone(command.poll())
        command.kill()
        command.communicate()


class Bench(Case):
    def bench(self, *arguments):
        return pavo("bench", "-m", tiny_model(), "-r", "3", *arguments)

    def test_json(self):
        report = self.json_of(self.bench("-p", "8,32", "-n", "4", "-d", "0,64", "--json"))
        tests = [(t["test"], t["tokens"], t["depth"]) for t in report["tests"]]
        one = [("prompt", 8), ("prompt", 32), ("generate", 4)]
        self.assertEqual(tests, [(*t, depth) for depth in (0, 64) for t in one])
        for test in report["tests"]:
            self.assertEqual(len(test["seconds"]), 3)
            median = sorted(test["seconds"])[1]
            self.assertAlmostEqual(test["tokens_per_second"] * median, test["tokens"], places=6)
            self.assertEqual(len(test["host_seconds"]), 3)
            for whole, steps, host in zip(
                test["seconds"], test["step_seconds"], test["host_seconds"]
            ):
                self.assertGreaterEqual(whole, steps)
                self.assertGreaterEqual(steps, host)
                self.assertGreater(host, 0)
            share = sum(test["host_seconds"]) / sum(test["step_seconds"])
            self.assertAlmostEqual(test["host_share"], share, places=9)
        self.assertGreater(report["peak_memory_bytes"], 1 << 20)
        self.assertGreater(report["launches_per_token"], 0)
        # One K/V head of 64 values, two layers, K and V, f16.
        self.assertEqual(report["kv_bytes_per_token"], 64 * 2 * 2 * 2)
        self.assertIn("first step", report["phases_ms"])

    def test_text(self):
        text = self.assert_ok(self.bench("-p", "8", "-n", "0"))
        self.assertRegex(text, r"(?m)^prompt +8 +0 +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+%$")
        self.assertNotIn("generate ", text)

    def test_sizes_must_fit(self):
        self.assert_fails(self.bench("-p", "600"), 2, "context holds 512")
        self.assert_fails(self.bench("-p", "0", "-n", "0"), 2, "at least one size")
        self.assert_fails(self.bench("-p", "x"), 2, "--prompt")


if __name__ == "__main__":
    harness.main()
