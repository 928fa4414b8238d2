"""Files of soak.py: sources that it writes, what a folder holds, and damage."""

from __future__ import annotations

import hashlib
import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp


@dataclass
class Source:
    """A file of rows, in one of several versions."""

    path: Path
    kind: str  # svmlight, csv, npz
    labels: str  # two, classes, numbers
    version: int = 0

    def write(self) -> None:
        rng = np.random.default_rng([self.version, len(self.path.name)])
        rows, features = int(rng.integers(1500, 3000)), 120
        X = sp.random_array((rows, features), density=0.08, rng=rng, format="csr", data_sampler=rng.standard_normal)
        score = X @ rng.standard_normal(features) + 0.3 * rng.standard_normal(rows)
        if self.labels == "two":
            y = np.where(score > 0, 1, -1)
        else:
            y = np.digitize(score, [-0.5, 0.5]) if self.labels == "classes" else score.round(3)
        if self.kind == "npz":
            sp.save_npz(self.path, sp.csr_matrix(X))
            np.save(self.path.with_suffix(".npy"), y)
        elif self.kind == "csv":
            words = np.array([f"w{j}" for j in range(50)])[rng.integers(0, 50, rows)]
            lines = [f"{w},{v:.3f},{label}" for w, v, label in zip(words, score + rng.standard_normal(rows), y, strict=True)]
            self.path.write_text("word,value,label\n" + "\n".join(lines) + "\n")
        else:
            entries = [
                " ".join(f"{j + 1}:{v:.4f}" for j, v in zip(X.indices[a:b], X.data[a:b], strict=True))
                for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)
            ]
            self.path.write_text("".join(f"{label} {row}\n" for label, row in zip(y, entries, strict=True)))

    def arguments(self) -> list[str]:
        more = {"csv": ["--label", "label"], "npz": ["--label", str(self.path.with_suffix(".npy"))], "svmlight": []}
        return [str(self.path), *more[self.kind]]


def digest(path: Path) -> str:
    """Of all files below."""
    sha = hashlib.sha256()
    for file in sorted([path, *path.rglob("*")] if path.is_dir() else [path]):
        if file.is_file():
            sha.update(f"{file.relative_to(path)}\0{file.stat().st_size}\0".encode() + file.read_bytes())
    return sha.hexdigest()


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def damage(chance: random.Random, path: Path) -> str:
    """Do something to one of the files below `path`; says what."""
    files = sorted(file for file in path.rglob("*") if file.is_file() and file.stat().st_size) if path.is_dir() else [path]
    if not files:
        return f"nothing to damage in {path}"
    file = chance.choice(files)
    content = bytearray(file.read_bytes())
    kind = chance.choice(["flip", "flip", "flip", "truncate", "append", "delete" if path.is_dir() else "flip"])
    place = chance.randrange(len(content))
    if kind == "flip":
        content[place] ^= 1 << chance.randrange(8)
    elif kind == "truncate":
        del content[place:]
    elif kind == "append":
        content += b"\0" * 4
    if kind == "delete":
        file.unlink()
    else:
        file.write_bytes(bytes(content))
    return f"{kind} at byte {place:,} of {file}"
