"""The options of `streamcut train`, by groups, as its help shows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from streamcut.cli.parameters import Choice, Duration, Numbers, NumbersOrParts
from streamcut.config import CHOICES


def _option(name: str, help: str, **more: Any):  # noqa: A002 - click's word
    """`name` as an option; a default that is given is shown, and the choices are those of the configuration."""
    field = name.lstrip("-").replace("-", "_")
    if field in CHOICES and "type" not in more:
        more["type"] = Choice(CHOICES[field])
    if more.get("default") is not None:
        more.setdefault("show_default", True)
    return click.option(name, field, help=help, **more)


def _gamma(context: click.Context, parameter: click.Parameter, value: str) -> float | str:
    """`value` as a number, or "auto"."""
    try:
        return value if value == "auto" else float(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither a number nor auto") from None


GROUPS: dict[str, list[Callable]] = {
    "What is learnt": [
        _option(
            "--task",
            "What to learn; auto goes by the data: qid are ranked, real numbers are targets, more than two labels classes.",
            default="auto",
        ),
        _option(
            "--C",
            "Weight of the loss of one row, as in LIBLINEAR. Several (0.1,1,10) are trained in turn, each from "
            "where the last one ended; the best on --validation is kept.",
            type=Numbers(),
            default="1",
            metavar="NUMBER[,NUMBER…]",
        ),
        _option(
            "--l1",
            "Elastic net: λ of ½‖w‖² + λ‖w‖₁ + C·losses, for losses of single rows. The larger, the fewer weights are not 0. "
            "Several (50%,20%,5%) are trained one after the other from the largest on, as those of --C are. Per cents are of "
            "λmax, from which on all are 0; a pass finds it.",
            type=NumbersOrParts(),
            default="0",
            metavar="NUMBER|PART%[,…]",
        ),
        _option(
            "--scale",
            "Train on values divided by the largest of each feature (max-abs) or its standard deviation (std, not centred); "
            "the model takes values as they are.",
            default="none",
        ),
        _option("--bias", "Value of the constant feature of every row; 0 for none.", type=float, default=1.0),
        _option("--positive-weight", "Factor on C for rows of the positive label.", type=float, default=1.0),
        _option(
            "--positive-label",
            "The positive label (a number or a word), against all others. Default: the greater, or the last word, of two.",
            metavar="LABEL",
        ),
        _option(
            "--loss",
            "Loss of a row. Binary: hinge (the default), squared-hinge, logistic, or a bound on a measure of the whole data as "
            "in SVM-perf (f1, prbep, prec@k, rec@k, error). Classes: hinge (the default), softmax. Regression: squared (the "
            "default), huber, epsilon-insensitive, squared-epsilon-insensitive, quantile, poisson (counts of mean e^score); "
            "bsca, bsgd: epsilon-insensitive (the default), quantile.",
            default="auto",
        ),
        _option("--epsilon", "Losses insensitive to ε: residuals up to it cost nothing.", type=float, default=0.1),
        _option("--delta", "Huber's loss: where it becomes linear.", type=float, default=1.0),
        _option("--quantile", "Quantile loss: the part of the targets that should lie below.", type=float, default=0.5),
        _option("--k", "For prec@k and rec@k: a number of rows (100) or a part of them (10%).", metavar="ROWS"),
        _option("--strategy", "Multiclass: one joint problem for all classes, or one-vs-rest.", default="crammer-singer"),
        _option("--normalisation", "Ranking: average over all pairs, or over queries of each query's average.", default="pairs"),
        _option("--warm-start", "Start from this model instead of zero.", metavar="FILE"),
        _option("--validation", "Validation store to measure models on; kernel solvers do so during training.", metavar="DATA"),
        _option(
            "--choose-by",
            "Measure of `evaluate` that picks the best model on --validation. Default: the task's first.",
            metavar="MEASURE",
        ),
    ],
    "Solver": [
        _option(
            "--solver",
            "The algorithm. auto: newton for smooth losses of few features, bundle-dca for most other linear models.",
            default="auto",
        ),
        _option(
            "--cut",
            "Where OCAS takes its cuts: predicted needs one pass an iteration, exact (the paper) two.",
            default="predicted",
        ),
        _option(
            "--max-cuts",
            "Maximum number of cutting planes in memory, each as long as the weights. Default: grows as needed.",
            type=int,
        ),
        _option("--sweeps", "bundle-dca: maximum number of sweeps (epochs over cached rows) after a pass.", type=int, default=50),
        _option(
            "--seed",
            "Random seed of bundle-dca, of kernel solvers except smo, of --nystroem and --fourier.",
            type=int,
            default=0,
        ),
    ],
    "Kernels": [
        _option("--kernel", "rbf: exp(−γ‖x−x′‖²), poly: (γ⟨x,x′⟩ + coef0)^degree.", default="linear"),
        _option(
            "--gamma", "γ; auto: 1 / (features × variance of all values).", default="auto", callback=_gamma, metavar="NUMBER"
        ),
        _option("--degree", "Degree of the polynomial kernel.", type=int, default=3),
        _option("--coef0", "Constant term of the polynomial kernel.", type=float, default=0.0),
        _option(
            "--nystroem",
            "Linear solvers: approximate the kernel by features from this number of random rows.",
            type=int,
            metavar="ROWS",
        ),
        _option(
            "--landmarks", "nystroem: how rows are chosen; leverage prefers rows that others represent badly.", default="uniform"
        ),
        _option(
            "--fourier",
            "Linear solvers: approximate the rbf kernel by this number of random waves.",
            type=int,
            metavar="FEATURES",
        ),
        _option("--frequencies", "fourier: orthogonal frequencies approximate the kernel more closely.", default="independent"),
        _option("--budget", "bsca, bsgd: maximum number of support vectors (default 500).", type=int, metavar="VECTORS"),
        _option("--maintenance", "bsca, bsgd: how the budget is kept; auto: merge for rbf, else project.", default="auto"),
        _option("--merged", "bsca, bsgd: how many vectors merging makes one of; the more, the rarer it is.", type=int, default=2),
        _option(
            "--damping",
            "bsca: final part of an epoch in which steps shrink to 0; 0 is the paper's algorithm.",
            type=float,
            default=0.5,
        ),
        _option(
            "--progress-rows",
            "bsca: after each epoch, measure on this number of rows which part of a step's progress the budget costs.",
            type=int,
            metavar="ROWS",
        ),
        _option("--epochs", "Stochastic solvers: number of epochs (default 1).", type=float),
        _option("--nu", "One class: part of the rows outside (default 0.5). sbp: mean slack per row, in place of C.", type=float),
        _option("--batch", "sbp, sdca, pegasos, perceptron: rows drawn per step.", type=int, metavar="ROWS"),
        _option("--max-evaluations", "Stop after this number of kernel evaluations.", type=float, metavar="NUMBER"),
        _option(
            "--kernel-cache", "smo: memory for kernel columns; auto: what is left of --memory.", default="auto", metavar="SIZE"
        ),
        _option("--samples", "Sampled cuts: rows per cut.", type=int, metavar="ROWS"),
    ],
    "When to stop": [
        _option("--tol", "Stop when the gap, in units of mean loss, is at most this; 0: off.", type=float, default=1e-3),
        _option(
            "--tol-relative",
            "Stop when the gap is at most this part of the objective (of C·rows/1000 if greater); 0: off.",
            type=float,
            default=1e-2,
        ),
        _option("--target", "Stop as soon as the objective is at most this.", type=float),
        _option("--max-passes", "Stop after this number of passes over the data.", type=int),
        _option("--max-time", "Stop after this time, for example 90s, 10m, 2h.", type=Duration(), metavar="TIME"),
    ],
    "Memory and machines": [
        _option("--memory", "Peak memory of the process: 4GB, 512MiB, 50%, auto.", default="auto"),
        _option(
            "--row-cache",
            "bundle-dca: memory for the rows that matter most (2GB, 0, or 30% of the data); auto: 30% up to 128MiB, then 10%.",
            default="auto",
        ),
        _option(
            "--scratch",
            "Folder for what memory does not hold: the state of the rows, cuts of classes. On Dask, if all workers see it.",
            metavar="DIR",
        ),
        _option(
            "--workers",
            "Threads, or processes of a local cluster. Default: one per processor.",
            type=int,
        ),
        _option(
            "--lanes",
            "Fixed ranges of rows, each summed in order: the same number gives the same bits on any machine. Default of "
            "bundle-dca for losses of single rows on one machine, without --l1: one, which takes fewer passes; a second "
            "thread reads ahead of it.",
            type=int,
        ),
        _option(
            "--scheduler",
            "Where passes run: threads, this thread alone, a local Dask cluster, or that of an address or scheduler file.",
            default="threads",
            metavar="threads|sync|local-cluster|tcp://HOST:PORT|FILE.json",
        ),
        _option(
            "--deadline",
            "How long a Dask cluster may be without workers before training ends.",
            type=Duration(),
            default="2m",
            metavar="TIME",
        ),
        _option(
            "--silence",
            "How long a Dask worker may not be heard, on a busy machine for one, before others do its rows; it comes back when "
            "it is heard again.",
            type=Duration(),
            default="2m",
            metavar="TIME",
        ),
    ],
    "Checkpoints": [
        click.option(
            "--checkpoint", "folder", metavar="DIR", help="Folder or URL for checkpoints of this run; created if needed."
        ),
        click.option(
            "--checkpoint-every",
            "every",
            type=Duration(),
            default="10m",
            show_default=True,
            metavar="TIME",
            help="Longest time between two checkpoints.",
        ),
        click.option(
            "--checkpoint-iterations",
            "iterations",
            type=click.IntRange(1),
            help="Also after every N iterations.",
        ),
        click.option("--checkpoint-required", is_flag=True, help="End with an error when a checkpoint cannot be written."),
        click.option("--resume", is_flag=True, help="Go on from the newest checkpoint; the result is the same to the last bit."),
    ],
}


def train_options(command: Callable) -> Callable:
    """All of them, on a click command."""
    for group in reversed(GROUPS.values()):
        for option in reversed(group):
            command = option(command)
    return command


class GroupedCommand(click.Command):
    """Its help lists options by GROUPS, the others last."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        parameters = [p for p in self.get_params(ctx) if p.get_help_record(ctx) is not None]
        sizes = [len(group) for group in GROUPS.values()]
        options = [p for p in parameters if isinstance(p, click.Option)]
        first = next(i for i, p in enumerate(options) if p.name == "task")
        start = first
        for title, size in zip(GROUPS, sizes, strict=True):
            self._section(title, options[start : start + size], ctx, formatter)
            start += size
        self._section("Output", options[:first] + options[start:], ctx, formatter)

    @staticmethod
    def _section(title: str, options: list[click.Option], ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section(title):
            formatter.write_dl([record for p in options if (record := p.get_help_record(ctx)) is not None])
