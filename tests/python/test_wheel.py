"""Proves that the standard tools make a wheel of python/, and that what is in it is the package."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "python"


@unittest.skipUnless(importlib.util.find_spec("setuptools"), "python3 has no setuptools: ./dev test adds it, or install python3-setuptools")
class Wheel(unittest.TestCase):
    def test_a_wheel_is_built_and_imported(self):
        with tempfile.TemporaryDirectory() as work:
            tree, out = Path(work) / "python", Path(work) / "out"
            shutil.copytree(SOURCE, tree, ignore=shutil.ignore_patterns("__pycache__"))  # the tools leave files beside it
            build = "import sys, setuptools.build_meta as backend; print(backend.build_wheel(sys.argv[1]))"
            made = subprocess.run([sys.executable, "-c", build, str(out)], cwd=tree, check=True, capture_output=True, text=True)
            wheel = out / made.stdout.split()[-1]
            self.assertRegex(wheel.name, r"^kiln_gpu-[0-9.]+-py3-none-any\.whl$")
            packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("kiln/")}
            self.assertEqual(packed, {f"kiln/{file.name}" for file in (SOURCE / "kiln").iterdir() if file.suffix in (".py", ".pyi", ".json", ".typed")})
            zipfile.ZipFile(wheel).extractall(Path(work) / "site")
            check = "import kiln; print(kiln.__file__, kiln.__version__)"
            environment = {**os.environ, "PYTHONPATH": str(Path(work) / "site")}
            told = subprocess.run([sys.executable, "-c", check], env=environment, check=True, capture_output=True, text=True).stdout.split()
            self.assertTrue(told[0].startswith(work), told)
            self.assertIn(f'version = "{told[1]}"', (SOURCE / "pyproject.toml").read_text())


if __name__ == "__main__":
    unittest.main()
