"""ROCm as a Python package: rocm-sdk-core of the same environment has hipRTC in site-packages/_rocm_sdk_core/lib."""

import importlib.util
import os
from pathlib import Path


def settings():
    """The setting that names its hipRTC. Empty when there is none, or a variable says which ROCm it is."""
    if any(os.environ.get(name) for name in ("KILN_HIPRTC_PATH", "ROCM_PATH", "HIP_PATH")):
        return {}
    found = importlib.util.find_spec("_rocm_sdk_core")
    for folder in (found.submodule_search_locations or []) if found else []:
        for file in sorted(Path(folder, "lib").glob("libhiprtc.so.[67]"), reverse=True):
            return {"KILN_HIPRTC_PATH": str(file)}
    return {}
