"""Stores hold the rows that were written, in the types and shards of the format, and what they say of rows is checked."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.sparse as sp

import streamcut

N, D, NNZ = 400, 60, 500  # NNZ: entries of a shard
VALUES = {  # the values of a store, and the type that keeps them
    "ones": ([1.0], "all 1"),
    "int8": ([-128.0, 127.0, 1.0], "int8"),
    "above int8": ([128.0, 1.0], "float32"),
    "below int8": ([-129.0, 1.0], "float32"),
    "float32": ([0.5, 1.0 + 2.0**-23, 2.0**100], "float32"),
    "float64": ([1.0 + 2.0**-24, -0.5, 3.0], "float64"),
}
SOME = {"queries": {"qid"}, "weights": {"weight"}, "both": {"qid", "weight"}, "neither": set()}


def rows(kind: str, columns: str = "both") -> tuple[sp.csr_array, dict[str, np.ndarray]]:
    """X, with rows and columns without entries, and y, and maybe the queries and weights, whose sum depends on its order."""
    rng = np.random.default_rng(7)
    X = sp.random_array((N, D), density=0.1, format="csr", rng=rng).toarray() * (np.arange(N) % 5 > 0)[:, None]
    X[:, -3:], X[X != 0] = 0.0, rng.choice(VALUES[kind][0], np.count_nonzero(X[:, :-3]))
    X[300:340] = X[300:340, :1] * 0.0  # more rows than a shard may have of few entries
    y, qid = rng.choice([-1.0, 0.25, 2.0], N), np.repeat(np.arange(100) * 2**40, rng.multinomial(N - 100, [0.01] * 100) + 1)
    found = {"y": y, "qid": qid, "weight": rng.uniform(0, 1, N) * (np.arange(N) % 3 > 0)}
    return sp.csr_array(X), {name: found[name] for name in ("y", *sorted(SOME[columns]))}


def write(
    path: Path, X: sp.csr_array, columns: dict[str, np.ndarray], block: int = 37, features: int | None = D, **options
) -> None:
    with streamcut.create(path, features, **{"shard_nnz": NNZ, **options}) as out:
        for start in range(0, N, block):
            out.append(X[start : start + block], **{name: column[start : start + block] for name, column in columns.items()})


def shards(X: sp.csr_array, columns: dict[str, np.ndarray]) -> list[tuple[int, int]]:
    """(rows, entries) of each shard: as many whole groups as fit."""
    group = columns.get("qid", np.arange(N))
    found = [(0, 0)]
    for q in np.unique(group):
        more = np.sum(group == q), X[group == q].nnz
        n, nnz = (a + b for a, b in zip(found[-1], more, strict=True))
        if found[-1][0] and (nnz > NNZ or n > NNZ // 4):
            found.append(more)
        else:
            found[-1] = n, nnz
    return found


@pytest.mark.parametrize("backend", ["zarr", "hdf5"])
@pytest.mark.parametrize(("kind", "some"), [*((kind, "both") for kind in VALUES), *(("float64", some) for some in SOME)])
def test_a_store_is_its_rows_and_what_it_says_of_them_is_true(kind, some, backend, folder, command):
    X, columns = rows(kind, some)
    y, weight, squares = columns["y"], columns.get("weight"), X.power(2).sum(axis=1)
    write(folder / "s", X, columns, backend=backend, features=None if some == "neither" else D)
    data, parts = streamcut.open("s"), []
    for shard in range(len(data.manifest.shards)):
        chunk = data.read(shard)
        assert chunk.first_row == sum(part.shape[0] for part in parts)
        values = np.ones(chunk.nnz) if chunk.data is None else chunk.data.astype(np.float64)
        parts.append(sp.csr_array((values, chunk.indices, chunk.indptr), shape=(chunk.n_rows, D)))
        part = slice(chunk.first_row, chunk.first_row + chunk.n_rows)
        for name in ("y", "qid", "weight"):
            np.testing.assert_array_equal(getattr(chunk, name), None if name not in columns else columns[name][part])
    np.testing.assert_array_equal(sp.vstack(parts).toarray(), X.toarray())
    assert [(part.shape[0], part.nnz) for part in parts] == shards(X, columns)
    for shard, part in enumerate(parts):
        place = f"s/shards/{shard:06d}"
        if backend == "hdf5":
            with h5py.File(f"{place}.h5") as file:
                assert tuple(file.attrs["shape"]) == part.shape
        else:
            assert json.loads(Path(place, "zarr.json").read_bytes())["attributes"]["shape"] == list(part.shape)
    shown = json.loads(command("info s --json")[1])
    expected = {
        "rows": N,
        "features": D,
        "nnz": X.nnz,
        "density": X.nnz / (N * D),
        "longest_row": np.diff(X.indptr).max(),
        "labels": [[label, np.sum(y == label)] for label in np.unique(y)],
        "label_min": -1.0,
        "label_max": 2.0,
        "groups": 100 if "qid" in columns else None,
        "max_abs_value": abs(X).max(),
        "value_types": {VALUES[kind][1]: len(parts)},
        "shards": len(parts),
        "shard_nnz_max": max(part.nnz for part in parts),
        "bytes_on_disk": sum(file.stat().st_size for file in Path("s").rglob("*") if file.is_file()),
        "backend": backend,
    }
    assert {name: shown[name] for name in expected} == expected
    assert shown["max_squared_norm"] == pytest.approx(squares.max(), rel=1e-12)
    assert shown["weight_sum"] == (None if weight is None else pytest.approx(weight.sum(), rel=1e-12))
    with np.load("s/features.npz") as features:
        index = np.flatnonzero(abs(X).sum(axis=0))
        np.testing.assert_array_equal(features["index"], index)
        for name, of in {"nonzeros": X != 0, "total": X, "squares": X.power(2)}.items():
            np.testing.assert_allclose(features[name], of.sum(axis=0)[index], rtol=1e-9, atol=1e-9 * abs(of).sum())
        np.testing.assert_array_equal(features["largest"], abs(X).max(axis=0).toarray()[index])


@pytest.mark.parametrize("backend", ["zarr", "hdf5"])
def test_a_manifest_that_does_not_fit_the_rows_is_found(backend, folder, command):
    """Every number of the statistics and shards a little off, with a checksum to match."""
    write(folder / "s", *rows("int8"), backend=backend)
    path = folder / "s/manifest.json"
    sound = json.loads(path.read_bytes())

    def forged(record: dict) -> int:
        record = {name: value for name, value in record.items() if name != "sha256"}
        digest = hashlib.sha256(json.dumps(record, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
        path.write_text(json.dumps({**record, "sha256": digest}, sort_keys=True, separators=(",", ":")) + "\n")
        return command("info s --check --read-data")[0]

    assert forged(sound) == 0
    for name, value in sound["statistics"].items():
        if name == "n_features":  # may be more than occur
            assert forged({**sound, "statistics": {**sound["statistics"], name: D - 4}}) == 5
            continue
        for factor in (1 - 1e-12, 1 + 1e-12) if isinstance(value, float) else (0.5, 1.5):
            other = [[label, factor * n] for label, n in value] if isinstance(value, list) else factor * value
            other = int(other) if isinstance(value, int) else other
            assert forged({**sound, "statistics": {**sound["statistics"], name: other}}) == 5, (name, factor)
    first, *others = sound["shards"]
    for name, change in (("rows", 1), ("rows", -1), ("nnz", 1), ("nnz", -1)):
        assert forged({**sound, "shards": [{**first, name: first[name] + change}, *others]}) == 5, name
    assert forged({**sound, "shards": [{**first, "ones": not first["ones"]}, *others]}) == 5
    for array, fields in first["arrays"].items():
        for at in (1, 2) if backend == "hdf5" else (1, 2, 3, 4):
            wrong = [field + (k == at) if k else field for k, field in enumerate(fields)]
            forgery = {**sound, "shards": [{**first, "arrays": {**first["arrays"], array: wrong}}, *others]}
            assert forged(forgery) == 5, (array, at)
            if at == 2:  # also where the fingerprint is that of the wrong content
                lines = [
                    [s["rows"], s["nnz"], [[name, *a[:3]] for name, a in sorted(s["arrays"].items())]] for s in forgery["shards"]
                ]
                content = b"%d" % D + b"".join(json.dumps(line, separators=(",", ":")).encode() for line in lines)
                assert forged({**forgery, "fingerprint": hashlib.sha256(content).hexdigest()}) == 5, array
                assert "does not have the checksum" in command("info s --check --read-data")[1], array
    assert forged({**sound, "fingerprint": sound["fingerprint"][::-1]}) == 5
    assert "fingerprint" in command("info s --check")[1]


@pytest.mark.parametrize("backend", ["zarr", "hdf5"])
def test_a_store_is_not_overwritten_unasked_and_one_that_was_begun_is_gone_on_with(backend, folder, command):
    X, columns = rows("float64", "weights")
    write(folder / "s", X, columns, backend=backend)
    with pytest.raises(streamcut.errors.UsageError, match="exists"):
        write(folder / "s", X, columns, backend=backend)

    def interrupted() -> None:
        with streamcut.create("t", D, shard_nnz=NNZ, backend=backend, threads=1) as out:
            out.append(X, **columns)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    code, _, err = command("info t")
    assert (code, "never finished" in err) == (6, True)
    with pytest.raises(streamcut.errors.UsageError, match=r"begun differently.*shard_nnz was 500 and is 499"):
        write(folder / "t", X, columns, backend=backend, resume=True, shard_nnz=499)
    with streamcut.create("t", D, shard_nnz=NNZ, backend=backend, threads=1, resume=True) as out:
        assert 0 < out.n_rows < N
        out.append(X[out.n_rows :], **{name: column[out.n_rows :] for name, column in columns.items()})
    s, t = ({str(f.relative_to(p)): f.read_bytes() for f in Path(p).rglob("*") if f.is_file()} for p in "st")
    s.pop("manifest.json"), t.pop("manifest.json")
    assert s == t
    shard = {"zarr.json"} | {f"{a}/{f}" for a in ("data", "indices", "indptr", "weight", "y") for f in ("zarr.json", "c.0")}
    files = (
        {"features.npz", "recipe.json", "zarr.json", "shards/zarr.json"} if backend == "zarr" else {"features.npz", "recipe.json"}
    )
    for k in range(len(streamcut.open("s").manifest.shards)):
        files |= {f"shards/{k:06d}/{name}" for name in shard} if backend == "zarr" else {f"shards/{k:06d}.h5"}
    assert set(s) == files
