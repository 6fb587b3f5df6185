#!/usr/bin/env python3
"""Commands that run no model: usage, info, tokenize, config, doctor."""

import pathlib
import subprocess

import harness
from harness import Case, pavo, tiny_model

FIRST_BYTE = 3  # token of byte 0 in the tiny model, after the special ones


class Usage(Case):
    def test_no_command(self):
        self.assert_fails(pavo(), 2, "expected a command", "run", "doctor")

    def test_help_and_version_go_to_standard_output(self):
        for arguments in (["--help"], ["run", "--help"], ["bench", "--help"]):
            done = pavo(*arguments)
            self.assertIn("Usage", self.assert_ok(done))
            self.assertEqual(done.stderr, "")
        self.assertRegex(self.assert_ok(pavo("--version")), r"^pavo \d+\.\d+\.\d+\n$")

    def test_unknown_command_suggests_the_nearest(self):
        self.assert_fails(pavo("docter"), 2, "no command 'docter'", "did you mean 'doctor'?")
        self.assert_fails(pavo("xyzzy"), 2, "no command 'xyzzy'", "pavo --help")

    def test_unknown_option(self):
        self.assert_fails(pavo("info", "--jsn", "x"), 2, "--jsn", "pavo info --help")

    def test_missing_required_option(self):
        self.assert_fails(pavo("run", "-p", "x"), 2, "--model", "required")

    def test_values_are_checked(self):
        model = tiny_model()
        for option, value, word in (
            ("--temp", "hot", "expected a number from 0 to 100, got 'hot'"),
            ("--temp", "nan", "expected a number from 0 to 100, got 'nan'"),
            ("--temp", "-1", "--temp"),
            ("--top-p", "1.5", "expected a number from 0 to 1"),
            ("--top-k", "-2", "--top-k"),
            ("-n", "-2", "-2"),
            ("-n", "many", "many"),
            ("-c", "-5", "expected integer 0..134217728, got '-5'"),
            ("--kv-type", "q4_k", "expected K or K,V"),
            ("--fallback", "never", "expected one of allow, warn, error, got 'never'"),
            ("--place", "nonsense", "expected PATTERN=DEVICE"),
            ("--threads", "x", "--threads: threads: expected integer"),
            ("--attention", "fast", "auto"),
            ("--batch", "0", "--batch"),
            ("--seed", "9223372036854775808", "got '9223372036854775808'"),
            ("--seed", "-2", "expected an integer from -1 to"),
        ):
            with self.subTest(option=option, value=value):
                self.assert_fails(pavo("run", "-m", model, "-p", "a", option, value), 2, word)

    def test_verbose_excludes_quiet(self):
        self.assert_fails(pavo("doctor", "--verbose", "--quiet"), 2, "--quiet")


class Files(Case):
    """Every command meets unusable files with exit code 3 and their name."""

    def commands(self, model):
        ids = harness.FOLDER / "ids.json"
        ids.write_text("[1]")
        yield ["info", model]
        yield ["tokenize", "-m", model]
        yield ["run", "-m", model, "-p", "a"]
        yield ["bench", "-m", model]
        yield ["logits", "-m", model, "--tokens", ids, "--out", harness.FOLDER / "never"]

    def test_unusable_models(self):
        cut = harness.FOLDER / "cut.gguf"
        cut.write_bytes(tiny_model().read_bytes()[:5000])
        noise = harness.FOLDER / "noise.gguf"
        noise.write_bytes(b"no model at all" * 100)
        empty = harness.FOLDER / "empty.gguf"
        empty.write_bytes(b"")
        for path in (harness.FOLDER / "none.gguf", harness.FOLDER, cut, noise, empty, "/dev/null"):
            for command in self.commands(path):
                with self.subTest(command=command[0], path=path):
                    self.assert_fails(pavo(*command), 3, path)
        self.assertFalse((harness.FOLDER / "never").exists())

    def test_unusable_text_files(self):
        for path in (harness.FOLDER / "none.txt", harness.FOLDER, "/dev/zero"):
            self.assert_fails(pavo("tokenize", "-m", tiny_model(), "-f", path), 3, path)
            done = pavo("run", "-m", tiny_model(), "-f", path)
            self.assert_fails(done, 3, path)
        self.assertIn("expected at most 268435456 bytes", done.stderr)

    def test_a_missing_model_is_named_once(self):
        path = harness.FOLDER / "none.gguf"
        done = pavo("run", "-m", path, "-p", "a")
        self.assertEqual(
            done.stderr,
            f"error: '{path}': No such file or directory; "
            "expected a GGUF file, or a Hub directory\n",
        )


class Info(Case):
    def test_json(self):
        model = tiny_model(kind="q8_0")
        info = self.json_of(pavo("info", model, "--json", "--metadata", "--tensors"))
        self.assertEqual(info["architecture"], "llama")
        self.assertEqual(info["format"], "gguf v3")
        self.assertEqual(info["tensors"], 2 * 9 + 3)
        self.assertEqual(info["context_length"], 512)
        self.assertEqual(info["layers"], 2)
        self.assertTrue(info["runs_here"])
        # 7 matrices a layer, embedding and head; 2 norms a layer and the last one.
        counts = {name: share["tensors"] for name, share in info["types"].items()}
        self.assertEqual(counts, {"Q8_0": 16, "F32": 5})
        self.assertEqual(info["metadata"]["llama.block_count"], 2)
        self.assertEqual(info["metadata"]["general.name"], "tiny random q8_0")
        self.assertEqual(info["tensor_list"][0]["name"], "token_embd.weight")
        self.assertEqual(info["tensor_list"][0]["shape"], [info["vocabulary"], 128])

    def test_text(self):
        text = self.assert_ok(pavo("info", tiny_model()))
        self.assertRegex(text, r"(?m)^architecture +llama$")
        self.assertRegex(text, r"(?m)^type +F16: 16 tensors, ")

    def test_unknown_architecture_is_described_all_the_same(self):
        path = harness.FOLDER / "other.gguf"
        path.write_bytes(tiny_model().read_bytes().replace(b"llama", b"lxxma"))
        info = self.json_of(pavo("info", path, "--json"))
        self.assertFalse(info["runs_here"])
        self.assertIn("lxxma", info["reason"])
        self.assert_fails(pavo("run", "-m", path, "-p", "a"), 3, "lxxma")


class Tokenize(Case):
    def ids(self, text, *options):
        return self.json_of(pavo("tokenize", "-m", tiny_model(), *options, stdin=text))

    def test_bytes_and_merges(self):
        self.assertEqual(self.ids(b"xq"), [FIRST_BYTE + ord("x"), FIRST_BYTE + ord("q")])
        self.assertEqual(self.ids(b""), [])
        self.assertEqual(len(self.ids(b" the")), 1)
        self.assertEqual(len(self.ids(b"the")), 2)  # t + he: the first merge needs the space

    def test_file_and_standard_input_agree(self):
        path = harness.FOLDER / "text.txt"
        text = "The café is on the hill.\n\n  End".encode()
        path.write_bytes(text)
        from_file = self.json_of(pavo("tokenize", "-m", tiny_model(), "--file", path))
        self.assertEqual(from_file, self.ids(text))
        self.assertGreater(len(from_file), 5)

    def test_special_only_if_asked(self):
        self.assertEqual(self.ids(b"<|im_end|>", "--special"), [2])
        self.assertGreater(len(self.ids(b"<|im_end|>")), 1)
        self.assertEqual(self.ids(b"x", "--add-bos"), [1, FIRST_BYTE + ord("x")])

    def test_any_bytes(self):
        self.assertEqual(self.ids(b"\xff\xfe\x00"), [FIRST_BYTE + byte for byte in b"\xff\xfe\x00"])


class Config(Case):
    def test_sources_are_shown(self):
        path = harness.FOLDER / "settings.toml"
        path.write_text('kv_type = "q8_0"\ncontext = 100\n')
        env = harness.environment(PAVO_CONTEXT="200")
        text = self.assert_ok(
            pavo("config", "show", "--config", path, "--threads", "3", env=env)
        )
        self.assertRegex(text, rf"(?m)^kv_type +q8_0 +user file {path}:1$")
        self.assertRegex(text, r"(?m)^context +200 +PAVO_CONTEXT$")
        self.assertRegex(text, r"(?m)^threads +3 +--threads$")
        self.assertRegex(text, r"(?m)^plugin.cpu.threads +3 +--threads$")
        self.assertRegex(text, r"(?m)^fallback +warn +default$")

    def test_every_command_reads_the_user_file(self):
        folder = harness.FOLDER / "home"
        (folder / "pavo").mkdir(parents=True)
        (folder / "pavo" / "config.toml").write_text("devcies = []\n")
        env = harness.environment(XDG_CONFIG_HOME=str(folder))
        for command in (["config", "check"], ["doctor"], ["run", "-m", tiny_model(), "-p", "a"]):
            self.assert_fails(pavo(*command, env=env), 2, "devcies", "did you mean 'devices'?")

    def test_misspelt_variable_is_warned_about(self):
        done = pavo("config", "check", env=harness.environment(PAVO_KV_TYP="f16"))
        self.assert_ok(done)
        self.assertIn("did you mean PAVO_KV_TYPE?", done.stderr)

    def check(self, text, *arguments):
        path = harness.FOLDER / "checked.toml"
        path.write_text(text)
        return pavo("config", "check", path, *arguments), path

    def test_check_tells_every_fault_with_its_place(self):
        done, path = self.check('contxt = 1\n[backends]\ndeny = "cpu"\nalow = []\n')
        self.assertEqual(done.returncode, 2)
        self.assertEqual(
            done.stderr.splitlines(),
            [
                f"error: user file {path}:4:1: unknown setting 'backends.alow'; "
                "did you mean 'backends.allow'?",
                f"error: user file {path}:3:8: backends.deny: expected list of texts, got 'cpu'",
                f"error: user file {path}:1:1: unknown setting 'contxt'; "
                "did you mean 'context'?",
            ],
        )

    def test_check_has_plugins_check_their_options(self):
        text = '[plugin.cpu]\nthread = 1\nreference = "x"\n[plugin.ghost]\na = 1\n'
        done, path = self.check(text)
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"error: user file {path}:2: plugin cpu has no option 'thread'", done.stderr)
        self.assertIn("did you mean 'threads'?", done.stderr)
        self.assertIn(f"error: user file {path}:3: plugin cpu: option 'reference'", done.stderr)
        self.assertIn("note: options of plugin ghost", done.stderr)
        done, path = self.check("[plugin.cpu]\nthreads = -3\n")
        self.assert_fails(done, 2, f"user file {path}:2: ", "threads: expected 0..1024, got -3")
        self.assert_ok(self.check("[plugin.cpu]\nthreads = -3\n", "--no-plugins")[0])

    def test_check_of_a_file_leaves_other_sources_out(self):
        path = harness.FOLDER / "fine.toml"
        path.write_text("context = 5\n")
        env = harness.environment(PAVO_CONTEXT="many")
        text = self.assert_ok(pavo("config", "check", path, env=env))
        self.assertEqual(text, "no faults; 1 setting is not the default\n")
        self.assert_fails(pavo("config", "check", env=env), 2, "PAVO_CONTEXT", "got 'many'")
        self.assert_fails(pavo("config", "check", path.with_name("none")), 2, "cannot be read")

    def test_any_setting_can_be_set_for_one_run(self):
        settings = ("--set", "backends.deny=sm_61,cpu", "--set", "probe=no")
        lines = self.json_of(pavo("config", "show", "--json", *settings))
        shown = {line["key"]: (line["value"], line["source"]) for line in lines}
        self.assertEqual(shown["backends.deny"], ("sm_61, cpu", "--set"))
        self.assertEqual(shown["probe"], ("false", "--set"))
        done = pavo("config", "show", "--set", "prob=1")
        self.assert_fails(done, 2, "--set: unknown setting 'prob'", "'probe'")

    def test_reference_is_current(self):
        root = pathlib.Path(__file__).resolve().parents[2]
        self.assertEqual(
            self.assert_ok(pavo("config", "docs")),
            (root / "docs" / "config.md").read_text(),
            "docs/config.md is out of date; make it with: pavo config docs > docs/config.md",
        )


class Doctor(Case):
    def test_the_cpu_plugin_is_found_and_serves(self):
        report = self.json_of(pavo("doctor", "--json"))
        cpu = [plugin for plugin in report["plugins"] if plugin.get("id") == "cpu"]
        self.assertEqual(len(cpu), 1)
        self.assertEqual(cpu[0]["state"], "ready")
        self.assertEqual(cpu[0]["devices"][0]["id"], "cpu")
        self.assertEqual(cpu[0]["probe"]["outcome"], "ok")
        self.assertIn("threads", [option["key"] for option in cpu[0]["options"]])
        self.assertTrue(any(place["searched"] for place in report["places"]))
        self.assertIn("kv_type", [setting["key"] for setting in report["settings"]])

        self.assertEqual([backend["device"] for backend in report["backends"]["order"]], ["cpu"])
        self.assertEqual(report["backends"]["error"], "")

    def test_text(self):
        text = self.assert_ok(pavo("doctor"))
        self.assertIn("device cpu:", text)
        self.assertIn("option threads (integer, default '0'): threads that compute", text)
        self.assertIn("a run would use, in order:\n  cpu\n", text)
        self.assertIn("kv_type = f16  (default)", text)

    def test_what_a_run_would_use_follows_the_settings(self):
        report = self.json_of(pavo("doctor", "--json", "--backend", "sm_61"))
        self.assertEqual(report["backends"]["order"], [])
        self.assertIn("'sm_61' cannot serve here", report["backends"]["error"])
        text = self.assert_ok(pavo("doctor", env=harness.environment(PAVO_DEVICES="cpu,sm_60")))
        self.assertIn("nothing: device 'sm_60' cannot serve here", text)

    def test_the_plugin_checks_its_options(self):
        text = self.assert_ok(pavo("doctor", "--plugin-option", "cpu.threads=many"))
        self.assertIn("error: --plugin-option: plugin cpu: option 'threads': expected a number", text)
        self.assertIn("plugin.cpu.threads = many  (--plugin-option)", text)

    def test_refused_files_have_their_reason(self):
        folder = harness.FOLDER / "plugins"
        folder.mkdir()
        (folder / "broken.so").write_bytes(b"no library")
        report = self.json_of(pavo("doctor", "--json", "--plugin-path", folder))
        broken = [p for p in report["plugins"] if p["path"].endswith("broken.so")]
        self.assertEqual(broken[0]["state"], "rejected")
        self.assertNotEqual(broken[0]["reason"], "")

    def test_probing_can_be_left_out(self):
        report = self.json_of(pavo("doctor", "--json", "--no-probe"))
        self.assertNotIn("probe", report["plugins"][0])
        self.assertEqual(report["plugins"][0]["state"], "ready")

    def test_without_a_driver_there_are_no_cuda_devices(self):
        env = harness.environment(PAVO_CUDA_DRIVER="/no/such/library.so")
        report = self.json_of(pavo("doctor", "--json", env=env))
        self.assertFalse(report["cuda_driver"]["present"])
        self.assertNotEqual(report["cuda_driver"]["absence"], "")
        self.assertEqual(report["cuda_driver"]["devices"], [])

    def test_denied_plugin(self):
        env = harness.environment(PAVO_BACKENDS_DENY="cpu")
        self.assert_fails(
            pavo("run", "-m", tiny_model(), "-p", "a", env=env), 4, "cpu is rejected: denied"
        )

    def test_a_named_backend_that_cannot_serve_ends_with_what_there_is(self):
        run = ["run", "-m", tiny_model(), "-p", "a"]
        folder = harness.FOLDER / "named" / "pavo"
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text("[backends]\nrequire = ['sm_70']\n")
        for arguments, env in (
            (["--backend", "cuda-sm61"], {}),
            (["--device", "GPU-1"], {}),
            ([], {"PAVO_BACKEND": "sm_61"}),
            ([], {"PAVO_DEVICES": "cpu,sm_60"}),
            ([], {"XDG_CONFIG_HOME": str(folder.parent)}),
        ):
            done = pavo(*run, *arguments, env=harness.environment(**env))
            self.assert_fails(done, 4, "cannot serve here", "there are: cpu")


class Output(Case):
    def test_closed_pipe_is_no_error(self):
        command = subprocess.Popen(
            [harness.PAVO, "info", tiny_model(), "--tensors", "--metadata"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=harness.environment(),
        )
        command.stdout.close()
        self.assertEqual(command.stderr.read(), b"")
        self.assertEqual(command.wait(harness.TIMEOUT_S), 0)
        command.stderr.close()

    def test_full_disk_is_a_failure(self):
        for command in (
            ["doctor"],
            ["info", tiny_model()],
            ["config", "docs"],
            ["--version"],
            ["run", "--help"],
        ):
            with open("/dev/full", "wb") as full:
                done = subprocess.run(
                    [harness.PAVO, *command],
                    stdout=full,
                    stderr=subprocess.PIPE,
                    env=harness.environment(),
                    timeout=harness.TIMEOUT_S,
                )
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"No space left", done.stderr)


if __name__ == "__main__":
    harness.main()
