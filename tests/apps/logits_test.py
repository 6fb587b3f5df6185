#!/usr/bin/env python3
"""The command logits, and files that commands write."""

import json
import os
import resource
import signal
import struct
import subprocess
import time

import harness
from harness import Case, pavo, tiny_model
from run_test import GREEDY, run


def read_safetensors(path):
    """{name: (dtype, shape, data)}"""
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    body = data[8 + size :]
    return {
        name: (t["dtype"], t["shape"], body[t["data_offsets"][0] : t["data_offsets"][1]])
        for name, t in header.items()
    }


class Logits(Case):
    def logits(self, ids, *options):
        tokens = harness.FOLDER / "ids.json"
        tokens.write_text(json.dumps(ids))
        out = harness.FOLDER / "logits.safetensors"
        done = pavo("logits", "-m", tiny_model(), "--tokens", tokens, "--out", out, *options)
        self.assertEqual(self.assert_ok(done), "")
        dtype, shape, data = read_safetensors(out)["logits"]
        self.assertEqual(dtype, "F32")
        self.assertEqual(shape[0], len(ids))
        values = struct.unpack(f"<{shape[0] * shape[1]}f", data)
        return [values[i * shape[1] : (i + 1) * shape[1]] for i in range(shape[0])]

    def test_every_row_is_there_and_batches_agree(self):
        ids = [3 + i * 7 % 300 for i in range(70)]
        whole = self.logits(ids, "--exact")
        cut = self.logits(ids, "--exact", "--batch", "16")
        self.assertEqual(set(map(len, whole)), {len(cut[0])})
        for a, b in zip(whole, cut):
            norm = sum(x * x for x in a) ** 0.5
            error = sum((x - y) ** 2 for x, y in zip(a, b)) ** 0.5
            self.assertLess(error, 5e-5 * norm)  # the budget of f32 arithmetic

    def test_greedy_text_is_the_argmax_of_the_logits(self):
        prompt = b"Once upon the"
        ids = self.json_of(pavo("tokenize", "-m", tiny_model(), stdin=prompt))
        text = self.assert_ok(run("-p", prompt.decode(), "-n", "1", *GREEDY, "--exact"))
        row = self.logits(ids, "--exact")[-1]
        best = max(range(len(row)), key=row.__getitem__)
        token = pavo("tokenize", "-m", tiny_model(), stdin=text.rstrip("\n").encode())
        self.assertEqual(self.json_of(token), [best])

    def test_bad_token_files(self):
        out = harness.FOLDER / "never.safetensors"
        path = harness.FOLDER / "bad.json"
        for text, word in (
            ("", "no valid JSON"),
            ("{}", "object"),
            ("[]", "an empty one"),
            ("[1, 100000]", "100000 at index 1"),
            ("[-1]", "-1 at index 0"),
            ('["a"]', '"a" at index 0'),
            ("[1.5]", "1.5 at index 0"),
        ):
            path.write_text(text)
            done = pavo("logits", "-m", tiny_model(), "--tokens", path, "--out", out)
            self.assert_fails(done, 3, path, word)
            self.assertFalse(out.exists())

    def start(self, out, **options):
        path = harness.FOLDER / "two.json"
        path.write_text("[5, 6]")
        return subprocess.Popen(
            [harness.PAVO, "logits", "-m", tiny_model(), "--tokens", path, "--out", out],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=harness.environment(),
            **options,
        )

    def test_files_that_are_read_are_not_written(self):
        model = harness.FOLDER / "own.gguf"
        model.write_bytes(tiny_model().read_bytes())
        linked = harness.FOLDER / "linked.gguf"
        os.link(model, linked)
        ids = harness.FOLDER / "own.json"
        ids.write_text("[5]")
        hub = harness.FOLDER / "hub"
        hub.mkdir()
        weights = hub / "model.safetensors"
        weights.write_bytes(b"weights")
        files = {path: path.read_bytes() for path in (model, ids, weights)}
        logits = ("logits", "-m", model, "--tokens", ids, "--out")
        for command, out in (
            (["run", "-m", model, "-p", "a", "--trace", linked], "--trace"),
            (["run", "-m", model, "-f", ids, "--trace", ids], "--trace"),
            (["bench", "-m", model, "--trace", model], "--trace"),
            ([*logits, linked], "--out"),
            ([*logits, ids], "--out"),
            ([*logits, harness.FOLDER / "new", "--trace", ids], "--trace"),
            ([*logits, harness.FOLDER / "both", "--trace", harness.FOLDER / "both"], "--out"),
            (["logits", "-m", hub, "--tokens", ids, "--out", weights], "--out"),
        ):
            with self.subTest(command=command):
                self.assert_fails(pavo(*command), 2, out, "give another name")
        for path, content in files.items():
            self.assertEqual(path.read_bytes(), content)

    def test_links_stay_links(self):
        rows = self.logits([5, 6])
        size = len(rows) * len(rows[0]) * 4
        link = harness.FOLDER / "link"
        for target in ("/proc/self/fd/1", harness.FOLDER / "named-by-a-link"):
            link.symlink_to(target)
            command = self.start(link)
            out, err = command.communicate(timeout=harness.TIMEOUT_S)
            self.assertEqual(command.returncode, 0, err)
            self.assertTrue(link.is_symlink())
            self.assertEqual(len((out or link.read_bytes()).split(b"}}", 1)[1].lstrip(b" ")), size)
            link.unlink()

    def test_a_file_that_may_not_grow_is_a_failure(self):
        out = harness.FOLDER / "small.safetensors"
        command = self.start(
            out, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        )
        _, err = command.communicate(timeout=harness.TIMEOUT_S)
        self.assertEqual(command.returncode, 1, err)
        self.assertIn(b"File too large", err)
        self.assertEqual(list(harness.FOLDER.glob("small*")), [])

    def test_interrupt_while_a_pipe_has_no_reader(self):
        pipe = harness.FOLDER / "pipe"
        os.mkfifo(pipe)
        command = self.start(pipe)
        self.assertIn(b"placement: ", command.stderr.readline())
        time.sleep(0.5)
        command.send_signal(signal.SIGINT)
        command.communicate(timeout=harness.TIMEOUT_S)
        self.assertIn(command.returncode, (130, -signal.SIGINT))

    def test_a_result_that_cannot_be_written_is_a_failure(self):
        path = harness.FOLDER / "one.json"
        path.write_text("[5]")
        out = harness.FOLDER / "no-folder" / "x.safetensors"
        done = pavo("logits", "-m", tiny_model(), "--tokens", path, "--out", out, "--quiet")
        self.assert_fails(done, 1, out)


if __name__ == "__main__":
    harness.main()
