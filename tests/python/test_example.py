"""Proves that the example runs, that three kernels and one give the same, and that its figure is one."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

from support import DEVICE

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "python" / "fused_norm.py"


class Example(unittest.TestCase):
    def test_three_kernels_or_one(self):
        with tempfile.TemporaryDirectory() as work:
            figure = Path(work) / "figure.svg"
            command = [sys.executable, str(EXAMPLE), "--device", DEVICE, "--cols", "1024", "--output", str(figure)]
            told = subprocess.run(command, env=dict(os.environ), check=True, capture_output=True, text=True).stdout
            # Sums in another order may round an element of q to its neighbour, at most 8 away below 128.
            differs = re.search(r"h is the same, q differs by at most ([0-9.]+)", told)
            self.assertLessEqual(float(differs.group(1)), 8, told)
            bars = xml.parse(figure).getroot().findall("{http://www.w3.org/2000/svg}rect/{http://www.w3.org/2000/svg}title")
            self.assertGreater(len(bars), 10)
            moved = [int(bar.text.split()[-2]) for bar in bars if bar.text.endswith(" bytes")]
            self.assertEqual(len(moved), 4)
            self.assertLess(moved[3], sum(moved[:3]))


if __name__ == "__main__":
    unittest.main()
