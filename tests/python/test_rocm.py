"""Proves that the hipRTC of ROCm's Python packages is taken where they are installed, and that variables come first."""

import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from support import ARCH, KernelTest

import kiln
from kiln import _rocm

TEXT = "kernel rocm_wheel dim n input x: f16[n, 64] output y: f16[n, 64] = x * 3"


class Rocm(KernelTest):
    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        package = Path(work.name) / "_rocm_sdk_core"
        (package / "lib").mkdir(parents=True)
        (package / "__init__.py").write_text("")
        for number in (6, 7):
            (package / "lib" / f"libhiprtc.so.{number}").write_text("no library")
        self.newest = str(package / "lib" / "libhiprtc.so.7")
        self.settings = {"KILN_CACHE_DIR": f"{work.name}/cache"}
        patch = mock.patch.object(sys, "path", [work.name, *sys.path])
        patch.start()
        self.addCleanup(patch.stop)

    def test_its_hiprtc_is_the_one_that_compiles(self):
        self.assertEqual(_rocm.settings(), {"KILN_HIPRTC_PATH": self.newest})
        with self.raises(RuntimeError, self.newest, "could not be loaded"):
            kiln.Jit(arch=ARCH, settings=self.settings).compile(TEXT)

    def test_a_variable_or_a_setting_comes_first(self):
        for name in ("KILN_HIPRTC_PATH", "ROCM_PATH", "HIP_PATH"):
            with mock.patch.dict(os.environ, {name: "/opt/elsewhere"}):
                self.assertEqual(_rocm.settings(), {})
        with self.raises(RuntimeError, "/nowhere/libhiprtc.so"):
            kiln.Jit(arch=ARCH, settings={**self.settings, "KILN_HIPRTC_PATH": "/nowhere/libhiprtc.so"}).compile(TEXT)


if __name__ == "__main__":
    unittest.main()
