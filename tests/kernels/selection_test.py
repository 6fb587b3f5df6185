#!/usr/bin/env python3
"""`pavo` with the three real CUDA plugins and a driver library that only says it has devices.

    selection_test.py PAVO MAKER FAKE_DRIVER

The grid capability x driver x plugin, from the driver's answer to the text of `pavo doctor`: what
the real notes lead to, and that nothing fails late where the code would fit but there is no GPU.
"""

import json
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "apps"))

import harness  # noqa: E402

PLUGINS = ["cuda-sm60", "cuda-sm61", "cuda-sm70"]
DRIVER = None
LETTERS = {"exact": "E", "older minor": "O", "ptx": "P", "refused": "-"}
NEW, OLD_MINOR, OLD_MAJOR = 12090, 12000, 11080  # newer than every 12.x toolkit; older; too old


def card(capability, **extra):
    return {
        "name": f"Card {capability}",
        "capability": capability,
        "uuid": str(capability),
        "pci": f"0000:{capability % 100}:00.0",
        **extra,
    }


def environment(host, driver=None):
    return harness.environment(
        PAVO_CUDA_DRIVER=str(driver or DRIVER), PAVO_FAKE_CUDA=json.dumps(host)
    )


def prefix_of(capability):
    return f"GPU-{capability}"


class SelectionTest(harness.Case):
    def doctor(self, host, *options, driver=None):
        return self.json_of(
            harness.pavo("doctor", "--json", *options, env=environment(host, driver))
        )

    def grid(self, report):
        """Capability -> (one letter per plugin, owner or None); every refusal has a reason."""
        rows = {}
        for device in report["cuda_driver"]["devices"]:
            pairs = {pair["id"]: pair for pair in device["plugins"]}
            self.assertEqual(sorted(pairs), PLUGINS)
            self.assertTrue(all(pair["text"] for pair in pairs.values()))
            owners = [name for name, pair in pairs.items() if pair["chosen"]]
            self.assertLessEqual(len(owners), 1)
            letters = "".join(LETTERS[pairs[name]["match"]] for name in PLUGINS)
            rows[device["capability"]] = (letters, owners[0] if owners else None)
        return rows

    def expect_grid(self, driver_version, expected):
        devices = [card(int(capability.replace(".", ""))) for capability in expected]
        host = {"version": driver_version, "devices": devices}
        report = self.doctor(host, "--no-probe")
        self.assertEqual(self.grid(report), expected, f"driver {driver_version}")
        return report

    def test_the_notes_lead_to_the_right_plugin(self):
        full = {
            "5.2": ("---", None),
            "6.0": ("E--", "cuda-sm60"),
            "6.1": ("OE-", "cuda-sm61"),
            "6.2": ("OO-", "cuda-sm61"),
            "7.0": ("PPE", "cuda-sm70"),
            "7.2": ("PPO", "cuda-sm70"),
            "7.5": ("PPO", "cuda-sm70"),
            "8.6": ("PPP", "cuda-sm70"),
            "9.0": ("PPP", "cuda-sm70"),
        }
        self.expect_grid(NEW, full)
        self.expect_grid(13000, full)
        # Each card alone gets what it gets among others.
        for capability, row in full.items():
            self.expect_grid(NEW, {capability: row})

    def test_a_driver_older_than_the_toolkit_runs_machine_code_only(self):
        report = self.expect_grid(
            OLD_MINOR,
            {
                "6.0": ("E--", "cuda-sm60"),
                "6.1": ("OE-", "cuda-sm61"),
                "7.0": ("--E", "cuda-sm70"),
                "7.5": ("--O", "cuda-sm70"),
                "9.0": ("---", None),
            },
        )
        texts = [pair["text"] for pair in report["cuda_driver"]["devices"][-1]["plugins"]]
        for text in texts:
            self.assertIn("needs a driver", text)

    def test_a_driver_of_another_major_version_runs_nothing(self):
        cards = ("6.0", "6.1", "7.0", "9.0")
        report = self.expect_grid(OLD_MAJOR, {capability: ("---", None) for capability in cards})
        for device in report["cuda_driver"]["devices"]:
            for pair in device["plugins"]:
                self.assertIn("needs a driver for CUDA 12.0 or newer, found 11.8", pair["text"])

    def test_a_prohibited_card_is_left_alone(self):
        host = {"version": NEW, "devices": [card(61, mode=2), card(60)]}
        grid = self.grid(self.doctor(host, "--no-probe"))
        self.assertEqual(grid, {"6.0": ("E--", "cuda-sm60"), "6.1": ("---", None)})

    def test_a_driver_that_fails_half_way(self):
        broken = card(61, fails="cuDeviceGetUuid")
        report = self.doctor({"version": NEW, "devices": [broken, card(60), card(70)]}, "--no-probe")
        self.assertEqual(
            self.grid(report), {"6.0": ("E--", "cuda-sm60"), "7.0": ("PPE", "cuda-sm70")}
        )
        self.assertEqual(
            report["cuda_driver"]["problems"],
            ["device 0: cuDeviceGetUuid failed: CUDA_ERROR_UNKNOWN"],
        )
        for host, words in (
            ({"init": 999}, "cuInit failed"),
            ({"count": 999}, "cannot count its devices"),
            ({"devices": []}, "sees no device"),
        ):
            driver = self.doctor({"version": NEW, **host})["cuda_driver"]
            self.assertEqual(driver["devices"], [])
            self.assertIn(words, driver["absence"])

    def test_no_driver_at_all(self):
        report = self.doctor({}, driver="/nowhere/libcuda.so.1")
        self.assertFalse(report["cuda_driver"]["present"])
        self.assertIn("no NVIDIA driver", report["cuda_driver"]["absence"])
        states = {plugin["id"]: plugin for plugin in report["plugins"]}
        self.assertEqual(states["cpu"]["state"], "ready")
        for name in PLUGINS:  # it loads, and is asked what it is, without a driver
            self.assertEqual(states[name]["state"], "idle", states[name])
            self.assertIn("no NVIDIA driver", states[name]["reason"])


class NoGpuTest(harness.Case):
    """The driver promises cards that the plugins then do not find: said, and the CPU serves."""

    HOST = {"version": NEW, "devices": [card(60), card(61), card(70)]}

    def test_doctor_says_so_for_every_pair(self):
        done = harness.pavo("doctor", env=environment(self.HOST))
        text = self.assert_ok(done)
        self.assertIn("cpu 0.1.0: ready", text)
        for name in PLUGINS:
            line = f"{name} 0.1.0: idle, the code would fit, but the plugin does not list this device"
            self.assertIn(line, text)
        self.assertNotIn("* cuda", text)

    def test_a_run_goes_to_the_cpu_or_fails_at_once(self):
        model = harness.tiny_model()
        arguments = ("run", "-m", model, "-p", "a", "-n", 4, "--temp", 0)
        free = harness.pavo(*arguments, env=environment(self.HOST))
        cpu = harness.pavo(*arguments, "--backend", "cpu", env=environment(self.HOST))
        self.assertEqual(self.assert_ok(free), self.assert_ok(cpu))
        named = harness.pavo(*arguments, "--backend", "cuda-sm61", env=environment(self.HOST))
        self.assert_fails(named, 4, "cuda-sm61", "does not list this device")


if __name__ == "__main__":
    DRIVER = sys.argv.pop(3)
    harness.main()
