"""Files of the package that need numpy alone, loaded without the package: the device has no more than PyTorch."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

_FOLDER = Path(__file__).parent.parent / "src" / "sameas" / "extraction" / "extractors" / "reader"


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"reader_{name}", _FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


packing = _load("packing")
decoding = _load("decoding")
