"""The world of soak.py: what there is, what may be done to it, and what must hold afterwards."""

from __future__ import annotations

import hashlib
import json
import math
import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from soak_files import Source, damage, digest, remove
from soak_process import KILLED, Accident, Outcome, ViolationError, accident, run, run_two

from streamcut.models.files import load_model

DAMAGED, NO_MEMORY, LOCKED = 5, 7, 10
DOCUMENTED = {0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 129, 130, 143}
WRITES_A_STORE = [
    f"{name}:{number}"
    for name in ("convert.open", "store.put_rename", "convert.journal", "convert.manifest", "convert.done")
    for number in (1, 2, 5)
]
WRITES_A_MODEL = [f"{name}:{n}" for name in ("model_tmp", "model_fsync", "model_rename") for n in (1,)]
TRAINS = ["train.shard:1", "train.shard:7", "train.shard:30", *WRITES_A_MODEL]
SMALL = ["--shard-nnz", "4000"]
LINEAR: dict[str, list[list[str]]] = {  # by the labels of a source
    "two": [
        ["--solver", "ocas", "--C", "0.1"],
        ["--solver", "cpa", "--C", "0.01", "--max-passes", "15"],
        ["--C", "1", "--set", "lanes=2", "--set", "row-cache=0"],
        ["--C", "0.1", "--set", "lanes=3", "--set", "row-cache=30%"],
        ["--loss", "logistic", "--C", "0.3", "--set", "lanes=1", "--set", "row-cache=0"],
        ["--loss", "squared-hinge", "--C", "0.1", "--l1", "3", "--set", "lanes=1", "--set", "row-cache=0"],
        ["--solver", "bsca", "--kernel", "rbf", "--gamma", "0.1", "--budget", "30"],
        ["--loss", "f1", "--C", "1", "--max-passes", "10"],
    ],
    "classes": [
        ["--C", "0.03", "--set", "lanes=2", "--set", "row-cache=0"],
        ["--loss", "softmax", "--C", "0.03", "--set", "lanes=1", "--set", "row-cache=0"],
        ["--strategy", "one-vs-rest", "--C", "0.03", "--set", "lanes=1", "--set", "row-cache=0"],
    ],
    "numbers": [
        ["--task", "regression", "--C", "0.1", "--set", "lanes=1", "--set", "row-cache=0"],
        ["--task", "regression", "--loss", "huber", "--C", "0.1", "--solver", "ocas", "--max-passes", "20"],
    ],
}


@dataclass
class Store:
    path: Path
    source: Source
    version: int
    digest: str  # of all its files
    backup: Path


class World:
    """Sources, stores and models in a folder; `step` does one thing to them and looks at everything."""

    def __init__(self, folder: Path, seed: int, counts: Counter[str]) -> None:
        self.folder, self.chance, self.counts, self.number = folder, random.Random(seed), counts, 0
        self.log: list[str] = []
        self.work, self.reference = folder / "work", folder / "reference"
        for place in (self.work, self.reference, self.work / "mine"):
            place.mkdir(parents=True)
        (self.work / "notes.txt").write_text("not ours\n")
        (self.work / "mine" / "m.npz").write_bytes(b"not ours either")
        self.foreign = [self.work / "notes.txt", self.work / "mine" / "m.npz"]
        kinds = [("a.svm", "svmlight", "two"), ("b.csv", "csv", "two"), ("c.npz", "npz", "numbers")]
        kinds.append(("d.svm", "svmlight", "classes"))
        self.sources = [Source(self.work / name, kind, labels) for name, kind, labels in kinds]
        for source in self.sources:
            source.version = self.chance.randrange(1 << 20)
            source.write()
        self.before = {path: path.read_bytes() for path in self.foreign}
        self.stores: dict[Path, Store] = {}
        self.models: dict[Path, tuple[Any, ...]] = {}  # final names, and the bits that they must have
        self.scores: dict[tuple[Path, Path], bytes] = {}
        self.digests: dict[tuple[str, ...], str] = {}  # of undisturbed conversions
        self.bits: dict[tuple[str, ...], tuple[Any, ...]] = {}  # of undisturbed trainings
        self.bounds: dict[tuple[str, ...], tuple[float, float]] = {}  # of problems: (greatest bound, least objective)

    def step(self) -> None:
        """Do something. Raises ViolationError when something does not hold afterwards."""
        self.number += 1
        steps: list[tuple[int, Callable[[], None]]] = [(4, self._convert), (1, self._new_version)]
        if self.stores:
            steps += [
                (8, self._train),
                (2, self._damage_store),
                (1, self._budget),
                (1, self._two_trains),
                (1, self._two_converts),
            ]
        if self.models:
            steps += [(3, self._predict), (2, self._damage_model), (1, self._verify), (1, self._export)]
        weights, actions = zip(*steps, strict=True)
        action = self.chance.choices(actions, weights)[0]
        self.counts[f"step {action.__name__.strip('_')}"] += 1
        action()
        for path, content in self.before.items():
            self._must(path.exists() and path.read_bytes() == content, f"{path} is not ours, and was changed")

    def _must(self, holds: bool, what: str) -> None:
        if not holds:
            raise ViolationError(what)

    def _run(self, arguments: list[str], what: Accident | None = None) -> Outcome:
        """A command; counts, and looks at, how it ended."""
        self.log.append(f"{self.number}: streamcut {' '.join(arguments)}" + (f"   # {what}" if what else ""))
        outcome = run(arguments, what, self.work)
        self.counts[f"accident {what.kind if what else 'none'}"] += 1
        self.counts[f"exit {outcome.code}"] += 1
        self._sound(outcome, what)
        return outcome

    def _sound(self, outcome: Outcome, what: Accident | None) -> None:
        self._must("Traceback" not in outcome.err, f"a traceback:\n{outcome.err}")
        expected = DOCUMENTED | (KILLED if what is not None and what.kills else set())
        self._must(outcome.code in expected, f"exit code {outcome.code}:\n{outcome.err}")
        if what is None:
            self._must(outcome.code not in (129, 130, 143, 8), f"nothing happened, but exit code {outcome.code}:\n{outcome.err}")

    # sources and stores

    def _new_version(self) -> None:
        source = self.chance.choice(self.sources)
        source.version += 1
        source.write()

    def _undisturbed_store(self, source: Source, more: list[str]) -> tuple[str, Path]:
        """(digest, place) of the store that the source becomes when nothing happens."""
        key = (str(source.path), str(source.version), *more)
        place = self.reference / hashlib.sha256(repr(key).encode()).hexdigest()[:12]
        if key not in self.digests:
            outcome = self._run(["convert", *source.arguments(), str(place), *SMALL, *more, "-q"])
            self._must(outcome.code == 0, f"an undisturbed conversion ended with {outcome.code}: {outcome.err}")
            self.digests[key] = digest(place)
        return self.digests[key], place

    def _convert(self) -> None:
        source = self.chance.choice(self.sources)
        more = self.chance.choice([[], ["--shuffle", "3"], ["--backend", "hdf5"]])
        expected, clean = self._undisturbed_store(source, more)
        target = self.work / f"{source.path.stem}{'.h5' if more[:1] == ['--backend'] else '.zarr'}"
        command = ["convert", *source.arguments(), str(target), *SMALL, *more, "-q", "--force"]
        old = digest(target) if target.exists() else None
        what = accident(self.chance, WRITES_A_STORE, self.work if source.kind != "npz" else None, source.path)
        outcome = self._run(command, what)
        changed = what is not None and what.kind == "changed source"
        if changed:
            source.write()
        if outcome.code != 0 or changed:
            begun = target.is_dir() and not (target / "manifest.json").exists()  # which no reader takes for a store
            now = digest(target) if target.exists() and not begun else None
            whole = begun or now in (old, expected) or (changed and outcome.code == 0)
            self._must(whole, f"{target} is neither what it was nor what it should be after exit code {outcome.code}")
            again = [*command, "--resume"] if self.chance.random() < 0.7 and not changed else command
            outcome = self._run(again)
            self._must(outcome.code == 0, f"a second try ended with {outcome.code}: {outcome.err}")
        self._must(digest(target) == expected, f"{target} is not what an undisturbed conversion makes")
        self._must(not list(self.work.glob(f"*{target.name}.*")), f"left behind: {list(self.work.glob(f'*{target.name}.*'))}")
        self.stores[target] = Store(target, source, source.version, expected, clean)
        self.scores = {pair: bits for pair, bits in self.scores.items() if pair[1] != target}

    def _two_converts(self) -> None:
        store = self.chance.choice(list(self.stores.values()))
        target = self.work / "both.zarr"
        expected, _ = self._undisturbed_store(store.source, [])
        shutil.rmtree(target, ignore_errors=True)
        command = ["convert", *store.source.arguments(), str(target), *SMALL, "-q"]
        ends = run_two(command, command, self.work)
        self.log.append(f"{self.number}: twice at once: streamcut {' '.join(command)}")
        for end in ends:
            self._sound(end, None)
        codes = sorted(end.code for end in ends)
        self._must(codes in ([0, 2], [0, LOCKED]), f"two conversions at once ended with {codes}: {[end.err for end in ends]}")
        self._must(digest(target) == expected, f"{target} is not whole after two conversions at once")
        shutil.rmtree(target)

    def _damage_store(self) -> None:
        store = self.chance.choice(list(self.stores.values()))
        what = damage(self.chance, store.path)
        self.log.append(f"{self.number}: {what}")
        self.counts["accident damage"] += 1
        checked = self._run(["info", str(store.path), "--check", "--read-data"])
        task = self.chance.choice(LINEAR[store.source.labels])
        model = self.work / "damaged.npz"
        outcome = self._run(["train", str(store.path), "--output", str(model), *task, "-q", "--force"])
        if outcome.code == 0:
            same = bits_of(model) == self._undisturbed_model(store, task)
            self._must(same, f"{what}: training went on and came to another model (check ended with {checked.code})")
        else:
            self._must(outcome.code in (3, 4, 5, 6), f"{what}: training ended with {outcome.code}: {outcome.err}")
            self._must(checked.code != 0, f"{what}: training found it ({outcome.code}), check did not")
        model.unlink(missing_ok=True)
        remove(store.path)
        (shutil.copytree if store.backup.is_dir() else shutil.copy)(store.backup, store.path)

    # models

    def _undisturbed_model(self, store: Store, options: list[str]) -> tuple[Any, ...]:
        key = (store.digest, *options)
        if key not in self.bits:
            place = self.reference / "m.npz"
            command = ["train", str(store.backup), "--output", str(place), *options, "--workers", "1", "--json", "--force"]
            outcome = self._run(command)
            self._must(outcome.code == 0, f"undisturbed training ended with {outcome.code}: {outcome.err}")
            self.bits[key] = bits_of(place)
        self._bounds(key, self.bits[key])
        return self.bits[key]

    def _bounds(self, key: tuple[str, ...], bits: tuple[Any, ...]) -> None:
        """Certificates of one problem, of whatever solver, must not contradict each other."""
        primal, bound = bits[1:]
        if bound is None:
            return
        ignored = ("--solver", "--set", "--max-passes")
        words = [key[0], *(w for k, w in enumerate(key[1:]) if w not in ignored and (k == 0 or key[k] not in ignored))]
        problem = tuple(words)
        high, low = self.bounds.get(problem, (-math.inf, math.inf))
        self.bounds[problem] = high, low = max(high, bound), min(low, primal)
        self._must(high <= low, f"a bound of {high!r} above an objective of {low!r} for {problem}")

    def _train(self) -> None:
        store = self.chance.choice(list(self.stores.values()))
        options = self.chance.choice(LINEAR[store.source.labels])
        expected = self._undisturbed_model(store, options)
        number = self.chance.randrange(4)
        model, run_folder = self.work / f"m{number}.npz", self.work / f"run{number}"
        old = model.read_bytes() if model.exists() else None
        shutil.rmtree(run_folder, ignore_errors=True)
        command = ["train", str(store.path), "--output", str(model), *options, "-q", "--force", "--workers", self._workers()]
        if self.chance.random() < 0.08 and "bsca" not in options:
            command += ["--scheduler", "local-cluster"]
        checkpoints = self.chance.random() < 0.6
        if checkpoints:
            command += ["--checkpoint", str(run_folder), "--checkpoint-every", "0s"]
        outcome = self._run(command, accident(self.chance, TRAINS, self.work))
        if outcome.code != 0:
            now = model.read_bytes() if model.exists() else None
            if now != old:
                bits = bits_of(model)
                stopped = outcome.code in (129, 130, 143)
                self._must(stopped or bits == expected, f"{model} is neither what it was nor what it should be")
                self._bounds((store.digest, *options), bits)
            if checkpoints and run_folder.exists() and self.chance.random() < 0.3:
                self.log.append(f"{self.number}: {damage(self.chance, run_folder)}")
                self.counts["accident damage"] += 1
            outcome = self._run([*command, "--resume"] if checkpoints else command)
            if checkpoints and outcome.code in (3, 4, DAMAGED):  # damage that was found: from the start, then
                shutil.rmtree(run_folder, ignore_errors=True)
                outcome = self._run(command)
            self._must(outcome.code == 0, f"a second try ended with {outcome.code}: {outcome.err}")
        self._must(bits_of(model) == expected, f"{model} is not what undisturbed training makes")
        left = [path.name for path in self.work.glob(f".{model.name}*")]
        self._must(not left, f"left behind: {left}")
        self.models[model] = expected
        self.scores = {pair: bits for pair, bits in self.scores.items() if pair[0] != model}

    def _workers(self) -> str:
        return self.chance.choice(["1", "2"])

    def _two_trains(self) -> None:
        store = self.chance.choice(list(self.stores.values()))
        options = self.chance.choice(LINEAR[store.source.labels])
        expected = self._undisturbed_model(store, options)
        model = self.work / "both.npz"
        model.unlink(missing_ok=True)
        command = ["train", str(store.path), "--output", str(model), *options, "-q"]
        ends = run_two(command, command, self.work)
        self.log.append(f"{self.number}: twice at once: streamcut {' '.join(command)}")
        for end in ends:
            self._sound(end, None)
        codes = sorted(end.code for end in ends)
        self._must(codes in ([0, 2], [0, LOCKED]), f"two trainings to one model ended with {codes}")
        self._must(bits_of(model) == expected, f"{model} is not whole after two trainings at once")
        model.unlink()

    def _budget(self) -> None:
        store = self.chance.choice(list(self.stores.values()))
        options = self.chance.choice(LINEAR[store.source.labels])
        budget = self.chance.choice([100, 150, 180, 200, 250, 300, 500])
        model = self.work / "budget.npz"
        outcome = self._run(
            ["train", str(store.path), "--output", str(model), *options, "--force", "--json", "--memory", f"{budget}MB"]
        )
        self._must(outcome.code in (0, NO_MEMORY), f"--memory {budget}MB ended with {outcome.code}: {outcome.err}")
        if outcome.code == 0:
            result = json.loads(outcome.out.splitlines()[-1])
            self._must(result["peak"] <= budget * 10**6, f"a peak of {result['peak']:,} bytes where {budget} MB were allowed")
            self._must(bits_of(model) == self._undisturbed_model(store, options), "memory changed the model")
        model.unlink(missing_ok=True)

    def _predict(self) -> None:
        model = self.chance.choice(list(self.models))
        fitting = [store.path for store in self.stores.values() if self._fits(model, store)]
        if not fitting:
            return
        data, target = self.chance.choice(fitting), self.work / "scores.txt"
        old = target.read_bytes() if target.exists() else None
        command = ["predict", str(model), str(data), "--answer", "scores", "-o", str(target), "--force"]
        outcome = self._run(command, accident(self.chance, ["predict_rename:1", "train.shard:2"], self.work))
        if outcome.code != 0:
            now = target.read_bytes() if target.exists() else None
            self._must(now in (old, self.scores.get((model, data), now)), f"{target} is half-written")
            outcome = self._run(command)
            self._must(outcome.code == 0, f"a second try ended with {outcome.code}: {outcome.err}")
        scores = target.read_bytes()
        self._must(self.scores.setdefault((model, data), scores) == scores, f"{model} scores {data} otherwise than before")

    def _fits(self, model: Path, store: Store) -> bool:
        return self._run(["evaluate", str(model), str(store.path), "--json"]).code == 0

    def _damage_model(self) -> None:
        model = self.chance.choice(list(self.models))
        sound = model.read_bytes()
        what = damage(self.chance, model)
        self.log.append(f"{self.number}: {what}")
        self.counts["accident damage"] += 1
        outcome = self._run(["info", str(model)])
        if outcome.code == 0:
            self._must(bits_of(model) == self.models[model], f"{what}: it was read, with other weights")
        else:
            self._must(outcome.code in (3, 4, 5), f"{what}: exit code {outcome.code}: {outcome.err}")
        model.write_bytes(sound)

    def _verify(self) -> None:
        model = self.chance.choice(list(self.models))
        if self.models[model][2] is None:
            return
        stores = [store for store in self.stores.values() if store.path == Path(load_model(str(model)).parameters["data"])]
        outcome = self._run(["verify", str(model), "--json"])
        if stores and load_model(str(model)).fingerprint == fingerprint(stores[0].path):
            self._must(
                outcome.code in (0, 2, 9), f"an honest model is refuted: exit code {outcome.code}: {outcome.err}{outcome.out}"
            )

    def _export(self) -> None:
        model, target = self.chance.choice(list(self.models)), self.work / "exported.json"
        target.unlink(missing_ok=True)
        outcome = self._run(["export", str(model), str(target)], accident(self.chance, ["export_rename:1"], self.work))
        if target.exists():
            json.loads(target.read_text())
        self._must(outcome.code != 0 or target.exists(), "exported, but nothing is there")


def fingerprint(path: Path) -> str:
    from streamcut.io.opening import open_dataset

    return open_dataset(str(path)).manifest.fingerprint


def bits_of(path: Path) -> tuple[Any, ...]:
    """(scores of some rows, objective, lower bound) of a model: equal for equal models."""
    model = load_model(str(path))
    rows = np.random.default_rng(5).standard_normal((7, model.n_features))
    result = model.result()
    return model.decision_function(rows).tobytes(), result.get("primal"), result.get("lower_bound")
