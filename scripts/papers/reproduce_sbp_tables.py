"""What reproduce_sbp.py measures beside Figure 2: batches of streamed rows, SBP with a bias and SMO against LIBSVM."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from reproduce_sbp_tools import CACHE, EXACT, TABLE_2, Problem, gaussian, made, optimum, run
from sklearn.datasets import dump_svmlight_file

from streamcut.execution.feed import Feed
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.runner import Runner
from streamcut.io.conversion.convert import convert
from streamcut.io.opening import open_dataset
from streamcut.kernels.kernel import Kernel
from streamcut.papers import rounds
from streamcut.solvers.progress import Progress, StoppingRule

LIBSVM_SETS = {
    "a9a": (1.0, 0.05),
    "ijcnn1": (32.0, 2.0),
    "reuters_moneyfx": (1.0, 1.0),
    "mnist": (10.0, 0.02),
    "dna": (10.0, 0.01),
}
MOST_ROWS = {"ijcnn1": 20_000, "mnist": 10_000}  # in the comparison with LIBSVM, where all take it too long


def batches(options) -> Iterator[tuple[str, dict]]:
    """Batches of rows on a store that is read again in every pass."""
    for name in [name for name in TABLE_2 if options.data is None or name in options.data]:
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
            history = run(solver, problem, kernel, options.epochs_streamed * problem.m**2)
            entry["batches"][batch] = {**history[-1], "thread_seconds": time.thread_time() - started, "history": history}
            print(name, batch, history[-1]["error"], flush=True)
        yield name, entry


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


def with_bias(options) -> Iterator[tuple[str, dict]]:
    """SBP and SMO against LIBSVM, with a bias."""
    for name in [name for name in TABLE_2 if TABLE_2[name][1] is not None and (options.data is None or name in options.data)]:
        problem = Problem(name, options.rows, options.test_rows)
        variance, C, nu = TABLE_2[name][1]
        kernel = gaussian(variance)
        theirs = {} if options.seconds else libsvm(problem, kernel, C, CACHE)
        entry = {
            "rows": problem.m,
            "libsvm": {key: theirs[key] for key in ("seconds", "error") if key in theirs},
            "smo": None if options.seconds else optimum(problem, kernel, C, bias=True),
            "sbp": timed(
                made("sbp", problem, kernel, 0, nu=nu, bias=True), problem, kernel, options.seconds or theirs["seconds"]
            ),
        }
        print(name, {key: entry[key] for key in ("rows", "libsvm")}, entry["sbp"][-1], flush=True)
        yield name, entry


def timed(solver, problem: Problem, kernel: Kernel, seconds: float) -> list[tuple[float, int, float]]:
    """(seconds, kernel evaluations, test error) of a solver that runs for so many seconds; those of the error don't count."""
    started, looking = time.thread_time(), 0.0
    curve: list[tuple[float, int, float]] = []

    def spent() -> float:
        return time.thread_time() - started - looking

    def look(alpha: np.ndarray, intercept: float) -> float:
        nonlocal looking
        now, before = spent(), time.thread_time()
        rows = solver.responses.numbers
        curve.append((now, solver.responses.evaluations, problem.error(kernel, rows, alpha * problem.y[rows], intercept)))
        looking += time.thread_time() - before
        return curve[-1][-1]

    progress = Progress(StoppingRule(None, None), stop=lambda: spent() >= seconds)
    rounds.run(solver, progress, None, look, patience=np.inf)
    return curve


def with_bias_in_words(result: dict) -> str:
    lines = [
        "| data | rows | program | seconds | of LIBSVM's | kernel evaluations | test error |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, entry in result.items():
        start, whole = f"| {name} | {entry['rows']:,} |", entry["libsvm"].get("seconds", float("nan"))
        if entry["libsvm"]:
            lines.append(f"{start} LIBSVM | {whole:.1f} | 1 | | {100 * entry['libsvm']['error']:.2f} % |")
        if entry["smo"] is not None:
            best = entry["smo"]
            lines.append(
                f"{start} SMO | {best['seconds']:.1f} | {best['seconds'] / whole:.2f} | {best['curve'][-1][0]:,} | "
                f"{100 * best['error']:.2f} % |"
            )
        curve = entry["sbp"]
        for part in (0.03, 0.1, 0.25, 0.5, 1.0):
            seconds, evaluations, error = min(curve, key=lambda point: abs(point[0] - part * curve[-1][0]))
            lines.append(f"{start} SBP | {seconds:.1f} | {seconds / whole:.2f} | {evaluations:,} | {100 * error:.2f} % |")
    return "\n".join(lines) + "\n"


def against_libsvm(options) -> Iterator[tuple[str, dict]]:
    """SMO and LIBSVM: dual objective and time, same tolerance, same cache, with bias."""
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
        entry = {
            "rows": problem.m, "C": C, "gamma": gamma, "libsvm_seconds": theirs["seconds"], "seconds": seconds,
            "certified_seconds": certified, "libsvm_dual": dual, "dual": value.dual, "gap": value.gap / value.dual,
            "difference": (value.dual - dual) / dual, "evaluations": ours.evaluations, "steps": ours.steps,
        }  # fmt: skip
        print(name, entry, flush=True)
        yield name, entry


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
