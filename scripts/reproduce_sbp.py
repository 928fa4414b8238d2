"""Figure 2 of "The Kernelized Stochastic Batch Perceptron" (Cotter, Shalev-Shwartz & Srebro, ICML 2012), and what it leaves open.

curves   test error against kernel evaluations of SBP, Pegasos, SDCA, the Perceptron and SMO, without bias: mean and standard
         deviation of the test error in percent over runs with different seeds. C = 1/(λn) and σ² are those of Table 2 of the
         paper; ν comes from SMO's optimum, as there.
batches  SBP on rows read from a store in every pass, in batches of 1, 8, 64 and 512: error at equal kernel evaluations, bytes
         read, time.
bias     SBP with an unregularised bias in a quarter of LIBSVM's time, as in the paper's section 5.
smo      SMO against LIBSVM: dual objective and time at the same tolerance and cache.

Times are processor time of one thread. Kernel evaluations are those of whole columns: a row that a step changes costs as many as
there are training rows, for all methods but SMO, which computes what it needs. --quick takes the first 3,000 training rows.
Writes PART.json, PART.md and, with --plot (needs matplotlib), figure2.svg to --out.
Data from STREAMCUT_DATA, default ../shared/data.
"""

import argparse
import json
import lzma
import os
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from streamcut.execution.feed import Feed
from streamcut.execution.kernel_columns import Responses, add_scores, squared_norms, take
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.runner import Runner
from streamcut.io.memory import MemoryDataset
from streamcut.kernels.kernel import Kernel
from streamcut.solvers import kernel_rounds
from streamcut.solvers.kernel_pegasos import KernelPegasos
from streamcut.solvers.kernel_perceptron import KernelPerceptron
from streamcut.solvers.kernel_rounds import Limits
from streamcut.solvers.kernel_sdca import KernelSDCA
from streamcut.solvers.progress import Progress, StoppingRule
from streamcut.solvers.sbp import StochasticBatchPerceptron
from streamcut.solvers.smo import SMO

DATA = Path(os.environ.get("STREAMCUT_DATA", Path(__file__).resolve().parent.parent.parent / "shared" / "data"))
TABLE_2 = {  # σ², C = 1/(λn), the paper's ν: without and with bias
    "reuters_moneyfx": ((0.5, 1.0, 6.34e-4), None),
    "a9a": ((10.0, 1.0, 1.10e-2), (100.0, 100.0, 5.79e-4)),
    "mnist": ((25.0, 1.0, 2.21e-4), (25.0, 1000.0, 6.42e-11)),
}
CACHE = 400 << 20
EXACT = 1e-3  # SMO's tolerance for the optimum
LIBSVM_SETS = {
    "a9a": (1.0, 0.05),
    "ijcnn1": (32.0, 2.0),
    "reuters_moneyfx": (1.0, 1.0),
    "mnist": (10.0, 0.02),
    "dna": (10.0, 0.01),
}
MOST_ROWS = {"ijcnn1": 20_000, "mnist": 10_000}  # in the comparison with LIBSVM, where all take it too long


class Problem:
    """Rows and classes ±1 of a data set, training and test; mnist is "8" against the rest, grey levels 0 to 1."""

    def __init__(self, name: str, rows: int | None, test_rows: int | None = None) -> None:
        self.name = name
        parts = {}
        for split, most in (("train", rows), ("test", test_rows)):
            with lzma.open(DATA / name / f"{split}.svm.xz") as file:
                X, y = load_svmlight_file(file, zero_based=False, dtype=np.float32)
            positive = 8 if name == "mnist" else y.max()
            X = X / np.float32(255) if name == "mnist" else X
            parts[split] = X[:most], np.where(y[:most] == positive, 1.0, -1.0)
        (X, self.y), (T, self.test_y) = parts["train"], parts["test"]
        d = max(X.shape[1], T.shape[1])
        for each in (X, T):
            each.resize(each.shape[0], d)
        self.X, self.test_X = sp.csr_array(X), sp.csr_array(T)
        self.data = MemoryDataset(self.X, self.y)
        self.chunk = (
            self.data.read(0) if len(self.data.manifest.shards) == 1 else MemoryDataset(X, self.y, shard_nnz=X.nnz).read(0)
        )
        self.test = MemoryDataset(self.test_X, self.test_y, shard_nnz=max(self.test_X.nnz, 1)).read(0)
        self._squares, self._test_squares = squared_norms(self.chunk), squared_norms(self.test)

    @property
    def m(self) -> int:
        return len(self.y)

    @property
    def d(self) -> int:
        return self.X.shape[1]

    def runner(self) -> Runner:
        shards = frozenset(range(len(self.data.manifest.shards)))
        return Runner(Feed(self.data, shards), plan_lanes(self.data.manifest.statistics, 1))

    def error(self, kernel: Kernel, rows: np.ndarray, coefficients: np.ndarray, intercept: float) -> float:
        """Test error of Σ coefficients_i k(x_i, ·) + intercept over training rows `rows`."""
        scores = np.full(len(self.test_y), intercept)
        (kept,) = np.nonzero(coefficients)
        others, squares = take(self.chunk, rows[kept]), self._squares[rows[kept]]
        add_scores(kernel, None, self.test, self._test_squares, others, squares, coefficients[kept], self.d, scores)
        return float(np.mean((scores > 0) != (self.test_y > 0)))

    def smo(self, kernel: Kernel, C: float, *, bias: bool, cache: int = CACHE) -> SMO:
        signs = self.y.astype(np.int8)
        return SMO(self.chunk, kernel, signs, np.full(self.m, C), dimension=self.d, bias=bias, cache_bytes=cache)


def gaussian(variance: float) -> Kernel:
    return Kernel("rbf", gamma=1.0 / (2.0 * variance))


def optimum(problem: Problem, kernel: Kernel, C: float, *, bias: bool) -> dict:
    """SMO's optimum: its ν, norm, mean hinge loss and test error, and its curve (evaluations, error) on the way."""
    state, curve, spent = problem.smo(kernel, C, bias=bias), [], 0.0

    def look() -> bool:
        nonlocal spent
        before = time.thread_time()
        if not curve or state.evaluations > 1.3 * curve[-1][0]:
            curve.append((state.evaluations, problem.error(kernel, np.arange(problem.m), state.alpha * problem.y, 0.0)))
        spent += time.thread_time() - before
        return False

    started = time.thread_time()
    state.solve(EXACT, look)
    seconds = time.thread_time() - started - spent
    value = state.certify()
    error = problem.error(kernel, np.arange(problem.m), state.alpha * problem.y, value.intercept)
    responses = state.gradient + 1.0 + problem.y * value.intercept
    hinge = float(np.maximum(0.0, 1.0 - responses).mean())
    norm = float(np.sqrt(state.alpha @ (state.gradient + 1.0)))
    curve.append((state.evaluations, error))
    return {
        "nu": hinge / norm,
        "norm": norm,
        "hinge": hinge,
        "error": error,
        "seconds": seconds,
        "dual": value.dual,
        "curve": curve,
    }


def made(method: str, problem: Problem, kernel: Kernel, seed: int, runner: Runner | None = None, **known):
    """A solver of this name on fresh responses."""
    random = np.random.default_rng(seed)
    own = Responses(runner or problem.runner(), kernel, 1.0, averaged=method == "sbp")
    if method == "sbp":
        own_options = {name: known[name] for name in ("nu", "batch", "bias") if name in known}
        return StochasticBatchPerceptron(own, random=random, **own_options)
    if method == "perceptron":
        return KernelPerceptron(own, random=random)
    return {"pegasos": KernelPegasos, "sdca": KernelSDCA}[method](own, C=known["C"], random=random)


def run(solver, problem: Problem, kernel: Kernel, limits: Limits, rule: StoppingRule | None = None) -> list[dict]:
    """The history, the test error in it."""

    def error(alpha: np.ndarray, intercept: float) -> float:
        rows = solver.responses.numbers
        return problem.error(kernel, rows, alpha * problem.y[rows], intercept)

    progress = Progress(rule or StoppingRule(None, None))
    return kernel_rounds.as_records(kernel_rounds.run(solver, progress, limits, error, patience=np.inf).history)


def curves(options) -> dict:
    """Figure 2."""
    result = {}
    for name in options.data or TABLE_2:
        problem = Problem(name, options.rows, options.test_rows)
        variance, C, theirs = TABLE_2[name][0]
        kernel = gaussian(variance)
        best = optimum(problem, kernel, C, bias=False)
        entry = {"rows": problem.m, "test rows": len(problem.test_y), "nu of Table 2": theirs, "smo": best, "methods": {}}
        for method in ("sbp", "pegasos", "sdca", "perceptron"):
            started = time.thread_time()
            histories = [
                run(made(method, problem, kernel, seed, nu=best["nu"], C=C), problem, kernel, Limits(options.epochs))
                for seed in range(options.runs)
            ]
            least = min(history[-1]["evaluations"] for history in histories)
            grid = np.geomspace(problem.m, least, 30)
            errors = np.array([
                np.interp(np.log(grid), np.log([max(h["evaluations"], 1) for h in history]), [h["error"] for h in history])
                for history in histories
            ])  # fmt: skip
            entry["methods"][method] = {
                "evaluations": grid.tolist(),
                "mean": errors.mean(axis=0).tolist(),
                "spread": errors.std(axis=0).tolist(),
                "last": float(np.mean([history[-1]["error"] for history in histories])),
                "last_evaluations": float(np.mean([history[-1]["evaluations"] for history in histories])),
                "seconds_a_run": (time.thread_time() - started) / options.runs,
                "figures": {k: histories[0][-1][k] for k in ("norm", "mean_hinge") if k in histories[0][-1]},
            }
            print(name, method, entry["methods"][method]["last"], flush=True)
        result[name] = entry
    return result


def at(method: dict, evaluations: float) -> float:
    """Mean test error of a method at so many kernel evaluations; nan outside of what it did."""
    known = np.array(method["evaluations"])
    if not known[0] <= evaluations <= known[-1] * (1 + 1e-9):
        return float("nan")
    return float(np.interp(np.log(evaluations), np.log(known), method["mean"]))


def curves_in_words(result: dict) -> str:
    lines = []
    for name, entry in result.items():
        m, methods, best = entry["rows"], entry["methods"], entry["smo"]
        lines += [
            f"### {name}: {m:,} rows, {entry['test rows']:,} test rows",
            "",
            f"ν = {best['nu']:.3g} from SMO's optimum (Table 2, all rows: {entry['nu of Table 2']:.3g}); SMO: "
            f"{100 * best['error']:.2f} % after {best['curve'][-1][0]:,} evaluations.",
            "",
            "| kernel evaluations | " + " | ".join(methods) + " |",
            "|---" * (len(methods) + 1) + "|",
        ]
        for epochs in (0.03, 0.1, 0.3, 1, 3, 10, 30):
            values = [at(method, epochs * m * m) for method in methods.values()]
            if not np.isnan(values).all():
                shown = ["" if np.isnan(value) else f"{100 * value:.2f}" for value in values]
                lines.append(f"| {epochs:g} m² | " + " | ".join(shown) + " |")
        last = [
            f"{100 * v['last']:.2f} ± {100 * v['spread'][-1]:.2f} ({v['last_evaluations'] / m**2:.2g} m²)"
            for v in methods.values()
        ]
        lines += ["| end | " + " | ".join(last) + " |"]
        ahead = {
            rival: np.mean([
                at(methods["sbp"], x) <= y for x, y in zip(methods[rival]["evaluations"], methods[rival]["mean"], strict=True)
                if not np.isnan(at(methods["sbp"], x))
            ])
            for rival in ("pegasos", "sdca")
        }  # fmt: skip
        told = ", ".join(f"{rival} on {100 * share:.0f} %" for rival, share in ahead.items())
        lines += ["", f"SBP is at least as good as {told} of the (logarithmic) axis."]
        figures = methods["sbp"]["figures"]
        if figures:
            lines += [
                f"Norm and mean hinge loss of its last average: {figures['norm'] / best['norm']:.4f} and "
                f"{figures['mean_hinge'] / best['hinge']:.4f} of the optimum's.",
            ]
        lines.append("")
    return "\n".join(lines)


def batches(options) -> dict:
    """Batches of rows on a store that is read again in every pass."""
    from streamcut.io.conversion.convert import convert
    from streamcut.io.opening import open_dataset

    result = {}
    for name in options.data or TABLE_2:
        problem = Problem(name, options.rows, options.test_rows)
        variance, C, _ = TABLE_2[name][0]
        kernel = gaussian(variance)
        best = optimum(problem, kernel, C, bias=False)
        store = options.out / f"{name}.zarr"
        if not store.exists():
            dump_svmlight_file(problem.X, problem.y, str(options.out / f"{name}.svm"), zero_based=False)
            convert([str(options.out / f"{name}.svm")], str(store))
        entry = {"rows": problem.m, "smo": best["error"], "batches": {}}
        for batch in (1, 8, 64, 512):
            data = open_dataset(str(store))
            runner = Runner(Feed(data), plan_lanes(data.manifest.statistics, 1))
            solver = made("sbp", problem, kernel, 0, runner, nu=best["nu"], batch=batch)
            started = time.thread_time()
            history = run(solver, problem, kernel, Limits(evaluations=options.epochs_streamed * problem.m**2))
            entry["batches"][batch] = {**history[-1], "thread_seconds": time.thread_time() - started, "history": history}
            print(name, batch, history[-1]["error"], flush=True)
        result[name] = entry
    return result


def batches_in_words(result: dict) -> str:
    lines = []
    for name, entry in result.items():
        m = entry["rows"]
        lines += [
            f"### {name}: {m:,} rows, SMO {100 * entry['smo']:.2f} %",
            "",
            "| batch | error at 0.1 m² | 0.3 m² | at the end | evaluations | passes | read | seconds |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for batch, last in entry["batches"].items():
            history = last["history"]
            x = np.log([max(h["evaluations"], 1) for h in history])
            early = [100 * np.interp(np.log(part * m * m), x, [h["error"] for h in history]) for part in (0.1, 0.3)]
            lines.append(
                f"| {batch} | {early[0]:.2f} | {early[1]:.2f} | {100 * last['error']:.2f} | "
                f"{last['evaluations'] / m**2:.2f} m² | {last['passes']:,} | {last['bytes_read'] / 1e6:,.0f} MB | "
                f"{last['thread_seconds']:.1f} |"
            )
        lines.append("")
    return "\n".join(lines)


def libsvm(problem: Problem, kernel: Kernel, C: float, cache: int) -> dict:
    """LIBSVM: time without conversion, α, intercept, test error."""
    from libsvm.svm import libsvm as library
    from libsvm.svm import toPyModel
    from libsvm.svmutil import svm_parameter, svm_problem

    given = svm_problem(problem.y, sp.csr_matrix(problem.X, dtype=np.float64))
    parameters = svm_parameter(f"-t 2 -c {C} -g {kernel.gamma!r} -m {cache >> 20} -e {EXACT} -q")
    started = time.thread_time()
    model = library.svm_train(given, parameters)
    seconds = time.thread_time() - started
    model = toPyModel(model)
    alpha = np.zeros(problem.m)
    alpha[np.array(model.get_sv_indices()) - 1] = np.abs(np.array(model.get_sv_coef())[:, 0])
    intercept = -model.rho[0] * (1 if model.label[0] == 1 else -1)
    error = problem.error(kernel, np.arange(problem.m), alpha * problem.y, intercept)
    return {"seconds": seconds, "alpha": alpha, "error": error}


def with_bias(options) -> dict:
    """SBP in a quarter of LIBSVM's time."""
    result = {}
    for name in [name for name in options.data or TABLE_2 if TABLE_2[name][1] is not None]:
        problem = Problem(name, options.rows, options.test_rows)
        variance, C, nu = TABLE_2[name][1]
        kernel = gaussian(variance)
        theirs = None if options.seconds else libsvm(problem, kernel, C, CACHE)
        allowed = options.seconds or theirs["seconds"] / 4
        solver = made("sbp", problem, kernel, 0, nu=nu, bias=True)
        started = time.thread_time()
        rule = StoppingRule(None, None, max_time=allowed)
        fit = kernel_rounds.run(solver, Progress(rule), Limits())
        rows = solver.responses.numbers
        result[name] = {
            "rows": problem.m,
            "libsvm": None if theirs is None else {"seconds": theirs["seconds"], "error": theirs["error"]},
            "seconds": time.thread_time() - started,
            "error": problem.error(kernel, rows, fit.alpha * problem.y[rows], fit.intercept),
            "sbp": kernel_rounds.as_records(fit.history)[-1],
        }
        print(name, result[name], flush=True)
    return result


def with_bias_in_words(result: dict) -> str:
    lines = [
        "| data | rows | LIBSVM error | seconds | SBP error | seconds | kernel evaluations |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, entry in result.items():
        theirs, ours = entry["libsvm"], entry["sbp"]
        left = "| |" if theirs is None else f"{100 * theirs['error']:.2f} % | {theirs['seconds']:.1f} |"
        lines.append(
            f"| {name} | {entry['rows']:,} | {left} {100 * entry['error']:.2f} % | "
            f"{entry['seconds']:.1f} | {ours['evaluations']:,} |"
        )
    return "\n".join(lines) + "\n"


def against_libsvm(options) -> dict:
    """SMO and LIBSVM: dual objective and time, same tolerance, same cache, with bias."""
    result = {}
    for name in [name for name in LIBSVM_SETS if options.data is None or name in options.data]:
        C, gamma = LIBSVM_SETS[name]
        problem = Problem(name, min(options.rows or 10**9, MOST_ROWS.get(name, 10**9)), 1000)
        kernel, cache = Kernel("rbf", gamma=gamma), 100 << 20
        theirs = libsvm(problem, kernel, C, cache)
        problem.smo(kernel, C, bias=True, cache=cache).solve(1.0)  # compiles
        ours = problem.smo(kernel, C, bias=True, cache=cache)
        started = time.thread_time()
        ours.solve(EXACT)
        seconds = time.thread_time() - started
        value = ours.certify()
        certified = time.thread_time() - started
        other = problem.smo(kernel, C, bias=True, cache=8)
        other.alpha = theirs["alpha"]
        dual = other.certify().dual
        result[name] = {
            "rows": problem.m, "C": C, "gamma": gamma, "libsvm_seconds": theirs["seconds"], "seconds": seconds,
            "certified_seconds": certified, "libsvm_dual": dual, "dual": value.dual, "gap": value.gap / value.dual,
            "difference": (value.dual - dual) / dual, "evaluations": ours.evaluations, "steps": ours.steps,
        }  # fmt: skip
        print(name, result[name], flush=True)
    return result


def against_libsvm_in_words(result: dict) -> str:
    lines = [
        "| data | rows | C | γ | LIBSVM | SMO | SMO with certificate | time / LIBSVM's | dual − LIBSVM's, relative | gap |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, e in result.items():
        lines.append(
            f"| {name} | {e['rows']:,} | {e['C']:g} | {e['gamma']:g} | {e['libsvm_seconds']:.2f} s | {e['seconds']:.2f} s | "
            f"{e['certified_seconds']:.2f} s | {e['certified_seconds'] / e['libsvm_seconds']:.2f} | {e['difference']:.1e} | "
            f"{e['gap']:.1e} |"
        )
    return "\n".join(lines) + "\n"


def plot(result: dict, path: Path) -> None:
    """Figure 2: one panel a data set, mean and spread."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(result), figsize=(5 * len(result), 4), squeeze=False)
    for panel, (name, entry) in zip(panels[0], result.items(), strict=True):
        for method, values in entry["methods"].items():
            x, mean, spread = (np.array(values[key]) for key in ("evaluations", "mean", "spread"))
            (line,) = panel.plot(x, 100 * mean, label=method)
            panel.fill_between(x, 100 * (mean - spread), 100 * (mean + spread), color=line.get_color(), alpha=0.2)
        panel.plot(*zip(*[(x, 100 * y) for x, y in entry["smo"]["curve"]], strict=True), label="smo", color="black")
        low = min(min(values["mean"]) for values in entry["methods"].values())
        panel.set(title=name, xscale="log", xlabel="kernel evaluations", ylabel="test error, %", ylim=(90 * low, 400 * low))
        panel.legend()
    figure.tight_layout()
    figure.savefig(path)


PARTS = {
    "curves": (curves, curves_in_words),
    "batches": (batches, batches_in_words),
    "bias": (with_bias, with_bias_in_words),
    "smo": (against_libsvm, against_libsvm_in_words),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--data", type=lambda text: text.split(","), metavar="NAME,…")
    parser.add_argument("--rows", type=int, help="only the first so many training rows")
    parser.add_argument("--test-rows", type=int, help="only the first so many test rows")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--epochs", type=float, default=10.0)
    parser.add_argument("--epochs-streamed", type=float, default=1.0, help="kernel evaluations of `batches`, in m²")
    parser.add_argument("--seconds", type=float, help="of `bias`: so many for SBP, and no LIBSVM")
    parser.add_argument("--out", type=Path, default=Path("sbp"))
    parser.add_argument("--plot", action="store_true")
    parser.add_argument("--quick", action="store_true", help="3,000 rows, 3 runs, 5 epochs")
    options = parser.parse_args()
    if options.quick:
        options.rows, options.test_rows, options.runs, options.epochs = options.rows or 3000, options.test_rows or 2000, 3, 5.0
    options.out.mkdir(parents=True, exist_ok=True)
    for part in options.parts or PARTS:
        compute, in_words = PARTS[part]
        result = compute(options)
        text = in_words(result)
        (options.out / f"{part}.json").write_text(json.dumps(result, indent=1))
        (options.out / f"{part}.md").write_text(text)
        print(text)
        if part == "curves" and options.plot:
            plot(result, options.out / "figure2.svg")


if __name__ == "__main__":
    main()
