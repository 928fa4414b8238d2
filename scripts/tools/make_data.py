#!/usr/bin/env python
"""Make synthetic sparse data of any size, in constant memory, straight into a store or an svmlight file.

    make_data.py OUT --kind text --rows 1000000 --features 50000

text     like tf-idf documents: row lengths Poisson(60), at least 3; columns drawn with probability ∝ 1/rank; values
         idf(column)·(1 + U[0, 1)); equal columns merged; rows scaled to length 1; label = sign of a planted linear score
         (Gaussian weights, 30 % nonzero) with noise of 0.1 standard deviations.
clicks   like a click log: one category from each of 12 fields of very unequal sizes, categories ∝ 1/rank, all values 1;
         the 3 % of rows with the highest noisy planted score are positive.
ranking  text rows in queries of 20 rows on average, relevance 0 … 4 by noisy planted score, queries of unequal difficulty.

Rows are drawn in blocks whose random numbers depend on the seed and the block's number alone: threads change nothing.
OUT ending in .svm is text (values rounded to six decimals), anything else a store.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np
from make_data_kernels import fill_click_rows, fill_text_rows, format_rows

from streamcut.foundation.chunk import Chunk

BLOCK_NNZ = 1 << 20
POSITIVES = 0.03
ROWS_PER_QUERY = 20
LEVELS = (0.6, 0.8, 0.92, 0.98)  # shares of rows below relevance 1, 2, 3, 4
DEFAULTS = {"text": (60, 0.1), "clicks": (12, 1.0), "ranking": (60, 0.5)}  # nonzeros a row, label noise
ROWS, PLANTED, PILOT = range(3)  # what random numbers are for; part of their seed


@dataclass(frozen=True)
class Recipe:
    """What fixes the data, whatever writes it. `nnz_per_row` is exact for clicks, the mean before merging for the others."""

    kind: str
    rows: int
    features: int
    nnz_per_row: int
    label_noise: float
    seed: int

    @property
    def block_rows(self) -> int:
        return max(1, BLOCK_NNZ // self.nnz_per_row)


class Source:
    """Draws blocks of rows. Safe from several threads."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        d = recipe.features
        planted = np.random.default_rng([recipe.seed, PLANTED])
        self.planted = planted.standard_normal(d) * (planted.random(d) < 0.3)
        if recipe.kind == "clicks":
            self.cumulative = _field_distribution(d, recipe.nnz_per_row)
        else:
            self.cumulative = np.cumsum(_one_over_rank(d))
            contained = -np.expm1(recipe.nnz_per_row * np.log1p(-_one_over_rank(d)))  # P(a row has the column)
            self.idf = 1.0 - np.log(contained)
        top = self.cumulative[-1]
        self.bins = d / top
        self.guide = np.searchsorted(self.cumulative, np.arange(d + 2) / self.bins, side="right").clip(max=d - 1)
        pilot = np.random.default_rng([recipe.seed, PILOT])
        _, scores = self._rows(pilot, min(20_000, recipe.block_rows))
        self.spread = scores.std()
        scores, _ = self._noisy(pilot, scores)
        shares = {"text": (), "clicks": (1 - POSITIVES,), "ranking": LEVELS}[recipe.kind]
        self.thresholds = np.quantile(scores, shares) if shares else np.zeros(1)

    def block(self, number: int) -> Chunk:
        """Rows number·block_rows onwards."""
        recipe = self.recipe
        first = number * recipe.block_rows
        rng = np.random.default_rng([recipe.seed, ROWS, number])
        rows, scores = self._rows(rng, recipe.block_rows)
        scores, query = self._noisy(rng, scores)
        level = np.searchsorted(self.thresholds, scores).astype(np.float64)
        y = level if recipe.kind == "ranking" else 2 * level - 1
        qid = None if query is None else first + 1 + query
        whole = Chunk(*rows, y, qid, first_row=first)
        return whole.rows(0, min(whole.n_rows, recipe.rows - first))

    def _noisy(self, rng: np.random.Generator, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Scores with noise, and for ranking, where queries shift them too, the first row of each row's query."""
        scores = scores + self.recipe.label_noise * self.spread * rng.standard_normal(len(scores))
        if self.recipe.kind != "ranking":
            return scores, None
        starts = rng.random(len(scores)) < 1 / ROWS_PER_QUERY
        starts[0] = True
        query = np.cumsum(starts) - 1
        shifts = self.spread * rng.standard_normal(query[-1] + 1)
        return scores + shifts[query], np.flatnonzero(starts)[query]

    def _rows(self, rng: np.random.Generator, n: int):
        """(indptr, indices, data) of n rows, and their planted scores."""
        scores = np.empty(n)
        if self.recipe.kind == "clicks":
            fields = self.recipe.nnz_per_row
            indices = np.empty(n * fields, np.int32)
            uniforms = rng.random((n, fields))
            fill_click_rows(uniforms, self.cumulative, self.guide, self.bins, self.planted, indices, scores)
            return (np.arange(n + 1) * fields, indices, None), scores
        lengths = np.maximum(rng.poisson(self.recipe.nnz_per_row, n), 3)
        total = int(lengths.sum())
        gaps = rng.standard_exponential(total + n)
        jitter = rng.random(total, dtype=np.float32)
        indptr, indices, data = np.zeros(n + 1, np.int64), np.empty(total, np.int32), np.empty(total, np.float32)
        tables = self.cumulative, self.guide, self.bins, self.idf, self.planted
        fill_text_rows(lengths, gaps, jitter, *tables, indptr, indices, data, scores)
        return (indptr, indices[: indptr[-1]], data[: indptr[-1]]), scores


def _one_over_rank(d: int) -> np.ndarray:
    p = 1.0 / np.arange(1, d + 1)
    return p / p.sum()


def _field_distribution(d: int, fields: int) -> np.ndarray:
    """Cumulative distribution over d categories; those of field f end at f + 1. Field sizes ∝ 1/rank², at least 2."""
    share = 1.0 / np.arange(1, fields + 1) ** 2
    sizes = np.maximum(2, (d * share / share.sum()).astype(np.int64))
    sizes[0] += d - sizes.sum()
    cumulative = np.concatenate([f + np.cumsum(_one_over_rank(size)) for f, size in enumerate(sizes)])
    cumulative[np.cumsum(sizes) - 1] = np.arange(1, fields + 1)  # exactly, whatever the sums were rounded to
    return cumulative


def ordered(work: Callable[[int], object], count: int, threads: int) -> Iterator:
    """work(0), work(1), … in order, a few ahead on `threads` threads."""
    with ThreadPoolExecutor(threads) as pool:
        ahead: deque = deque()
        for number in range(count):
            ahead.append(pool.submit(work, number))
            if len(ahead) > 2 * threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def text_of(block: Callable[[int], Chunk], signed: bool, number: int) -> tuple[int, memoryview]:
    """(nonzeros, svmlight lines) of one block."""
    chunk = block(number)
    none = np.empty(0, np.int64)
    room = np.empty(20 * chunk.nnz + 40 * chunk.n_rows, np.uint8)
    data = none if chunk.data is None else chunk.data
    qid = none if chunk.qid is None else chunk.qid
    return chunk.nnz, room[: format_rows(chunk.indptr, chunk.indices, data, chunk.y, signed, qid, room)].data


def write_text(source: Source, blocks: int, path: str, threads: int) -> int:
    nnz = 0
    with open(path + ".partial", "wb") as file:
        for count, lines in ordered(partial(text_of, source.block, source.recipe.kind != "ranking"), blocks, threads):
            nnz += count
            file.write(lines)
    os.replace(path + ".partial", path)
    return nnz


def write_store(source: Source, blocks: int, path: str, threads: int, backend: str, shard_nnz: int) -> int:
    from streamcut.io.stores.writer import StoreWriter

    recipe = {"make_data": asdict(source.recipe)}
    nnz = 0
    with StoreWriter(
        path, backend=backend, shard_nnz=shard_nnz, n_features=source.recipe.features, options=recipe, threads=threads
    ) as writer:
        for number, chunk in enumerate(ordered(source.block, blocks, threads)):
            nnz += chunk.nnz
            writer.append(chunk, {"block": number})
        writer.finish(recipe)
    return nnz


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", help="svmlight file (name ends in .svm) or store to make")
    parser.add_argument("--kind", choices=DEFAULTS, default="text")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=50_000)
    parser.add_argument("--nnz-per-row", type=int, help="mean entries a row; fields of clicks (default 60; clicks 12)")
    parser.add_argument("--label-noise", type=float, help="standard deviations of the planted score (0.1; clicks 1; ranking 0.5)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--backend", choices=["zarr", "hdf5"], default="zarr")
    parser.add_argument("--shard-nnz", type=int, default=4 << 20)
    options = parser.parse_args(arguments)
    nnz, noise = DEFAULTS[options.kind]
    options.nnz_per_row = nnz if options.nnz_per_row is None else options.nnz_per_row
    options.label_noise = noise if options.label_noise is None else options.label_noise
    if min(options.rows, options.nnz_per_row, options.threads) < 1 or options.label_noise < 0 or options.seed < 0:
        parser.error("--rows, --nnz-per-row and --threads must be at least 1, --label-noise and --seed at least 0")
    if not 4 * options.nnz_per_row <= options.features < 2**31:
        parser.error(f"--features must be at least {4 * options.nnz_per_row} (four times --nnz-per-row) and below 2³¹")
    if os.path.exists(options.out):
        parser.error(f"{options.out} exists; remove it or choose another name")
    return options


def main(arguments: list[str] | None = None) -> None:
    options = parse_arguments(arguments)
    names = Recipe.__dataclass_fields__
    recipe = Recipe(**{name: getattr(options, name) for name in names})
    source = Source(recipe)
    blocks = -(-recipe.rows // recipe.block_rows)
    started = time.monotonic()
    if options.out.endswith(".svm"):
        nnz = write_text(source, blocks, options.out, options.threads)
    else:
        nnz = write_store(source, blocks, options.out, options.threads, options.backend, options.shard_nnz)
    seconds = time.monotonic() - started
    rate = nnz / seconds / 1e6
    print(f"{options.out}: {recipe.rows:,} rows, {nnz:,} nonzeros in {seconds:.1f} s ({rate:.1f} M/s)", file=sys.stderr)


if __name__ == "__main__":
    main()
