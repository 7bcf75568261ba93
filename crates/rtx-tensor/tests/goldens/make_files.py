"""Writes the small files that tests/files.rs reads. Needs NumPy; run it in this folder.

Values are formulas, so that the tests can recompute them: real[i, j, k] = i + 10 j + 100 k.
The safetensors files follow the format's description by hand, without its library.
"""

import json
import struct
from pathlib import Path

import numpy as np

files = Path("files")
files.mkdir(exist_ok=True)

i, j, k = np.meshgrid(np.arange(3), np.arange(4), np.arange(2), indexing="ij")
real = i + 10 * j + 100 * k
arrays = {
    "f32": (real + 0.5).astype(np.float32),
    "f64": real / 3.0,
    "i32": (-real).astype(np.int32),
    "i64": (real * 10**12).astype(np.int64),
    "bool": real % 3 == 0,
    "scalar": np.float64(2.5),
    "vector": np.arange(5, dtype=np.float32),
    "empty": np.zeros((0, 3)),
    "fortran": np.asfortranarray(real.astype(np.float32)),
    "big_endian": real.astype(">f8"),
}
np.savez(files / "stored.npz", **arrays)
np.savez_compressed(files / "deflated.npz", **arrays)
np.save(files / "fortran.npy", np.asfortranarray(real.astype(np.int32)))
np.save(files / "big_endian.npy", real.astype(">i8"))
np.save(files / "big_endian_fortran.npy", np.asfortranarray(real.astype(">f4")))
with open(files / "version2.npy", "wb") as out:
    np.lib.format.write_array(out, real.astype(np.float64), version=(2, 0))

np.save(files / "complex.npy", real + 1j)
np.savez(
    files / "mixed.npz",
    good=real.astype(np.float64),
    text=np.array("hello"),
    bytes=real.astype(np.uint8),
)


def safetensors(path, stored, metadata=None):
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, array) in stored.items():
        start = len(data)
        data += array.tobytes(order="C")
        offsets = [start, len(data)]
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": offsets}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


types = {"f32": "F32", "f64": "F64", "i32": "I32", "i64": "I64", "bool": "BOOL", "scalar": "F64"}
types |= {"vector": "F32", "empty": "F64"}
plain = {name: (dtype, arrays[name]) for name, dtype in types.items()}
safetensors(files / "plain.safetensors", plain, {"made by": "hand"})
half = {"good": ("F32", arrays["f32"]), "half": ("F16", arrays["f32"].astype(np.float16))}
safetensors(files / "half.safetensors", half)
