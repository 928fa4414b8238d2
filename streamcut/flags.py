"""Options of other SVM programs, said in ours: the same problem, or a refusal that names what we cannot say.

Ours is F(w) = ½‖w‖² + C Σ_i u_i max(0, 1 − y_i⟨w, x_i⟩) with C per row and a regularised constant feature `bias`. With m rows:

    LIBLINEAR -s 3 -c C, -s 4; LIBSVM -c C; LinearSVC(loss="hinge", C=C)   C
    svm_perf -c c     (½‖w‖² + c · loss in percent)                        100·c / m
    svm_rank -c c     (½‖w‖² + c · mean over queries of their losses)      c·P / (N·m) for P pairs in N queries, with -l 2
                                                                           c·Q / (N·m) for Q queries with pairs
    svm_hmm -c c      (½‖w‖² + c · mean over sequences of their losses)    c / N for N sequences
    VW --l2 λ, SGDClassifier(alpha=λ)   (λ/2‖w‖² + mean loss)              1 / (λ·m)
"""

from __future__ import annotations

import ast
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from streamcut.errors import UsageError
from streamcut.suggestions import unknown


@dataclass
class Translation:
    """`options` for `streamcut train`, by name in the order of writing, and `notes` on what differs or has no counterpart."""

    options: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def text(self) -> str:
        """The options as they are typed."""
        return " ".join(part for name, value in self.options.items() for part in (name, value) if part)

    def number(self, name: str, value: float) -> None:
        self.options[name] = f"{value:g}" if float(f"{value:g}") == value else repr(value)


@dataclass(frozen=True)
class Counts:
    """What there is in the data: pairs are of rows of one query whose labels differ. None: not said."""

    rows: int | None = None
    positives: int | None = None
    queries: int | None = None
    pairs: int | None = None
    paired_queries: int | None = None

    def __post_init__(self) -> None:
        for name, count in vars(self).items():
            if count is not None and count < 1:
                raise UsageError(f"{_option(name)}: {count} is not a number of {name.replace('_', ' ')}; it must be at least 1")

    def needed(self, name: str, why: str) -> int:
        """The count, or UsageError."""
        count = getattr(self, name)
        if count is None:
            raise UsageError(f"{why}: say how many there are with {_option(name)}")
        return count


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def translate(tool: str, text: str, **counts: int | None) -> Translation:
    """The problem that `text` gives `tool` (one of TOOLS), in our options; `counts` are those of Counts, where C needs them.

    Raises UsageError naming every option that is unknown here, or that asks for another problem.
    """
    if tool not in TOOLS:
        raise UsageError(f"--from: {unknown(tool, TOOLS)}")
    return TOOLS[tool](text, Counts(**counts))


_OF_LIBLINEAR = {"0": "logistic", "1": "squared-hinge", "2": "squared-hinge", "3": "hinge", "4": None, "7": "logistic"}
_OF_VW = ("hinge", "logistic")
_OF_SGD = {"hinge": "hinge", "squared_hinge": "squared-hinge", "log_loss": "logistic"}


def _loss(done: Translation, loss: str | None) -> None:
    if loss is not None and loss != "hinge":  # the default
        done.options["--loss"] = loss


def _liblinear(text: str, counts: Counts) -> Translation:
    given = _Given("LIBLINEAR", text, values={"-s", "-c", "-B", "-e", "-n"}, switches={"-q"}, class_weights=True)
    kind = given.text("-s", "1")
    if kind not in _OF_LIBLINEAR:
        given.refuse(f"-s {kind}", f"problems solved here are -s {', '.join(_OF_LIBLINEAR)}")
    C, bias = given.number("-c", 1.0), given.number("-B", -1.0)
    weights = given.class_weights()
    if kind == "4" and weights:
        given.refuse("-w", "there are no class weights among several classes")
    given.check()
    done = Translation({"--task": "multiclass"} if kind == "4" else {})
    _loss(done, _OF_LIBLINEAR.get(kind))
    _class_weights(done, C, weights)
    done.number("--bias", max(bias, 0.0))  # below 0: no bias feature
    if "-n" in given.found:
        done.options["--workers"] = given.text("-n", "")
    given.leave_out(done, "-e")
    return done


def _libsvm(text: str, counts: Counts) -> Translation:
    values = {"-s", "-t", "-d", "-g", "-r", "-c", "-m", "-e", "-h", "-b"}
    given = _Given("LIBSVM", text, values=values, switches={"-q"}, class_weights=True)
    given.only("-s", "0", "only C-SVC")
    given.only("-b", "0", "probabilities come afterwards, see streamcut calibrate")
    kernel = {"0": "linear", "1": "poly", "2": "rbf"}.get(given.text("-t", "2"), "")
    if not kernel:
        given.refuse(f"-t {given.text('-t', '2')}", "kernels here are linear, polynomial and Gaussian")
    if kernel in ("poly", "rbf") and "-g" not in given.found:
        given.refuse("a default -g", "it is 1 / the number of features; give that")
    C, weights = given.number("-c", 1.0), given.class_weights()
    given.check()
    done = Translation({"--solver": "smo", "--kernel": kernel})
    if kernel != "linear":
        done.number("--gamma", given.number("-g", 0.0))
    if kernel == "poly":
        done.number("--degree", given.number("-d", 3.0))
        done.number("--coef0", given.number("-r", 0.0))
    _class_weights(done, C, weights)
    if "-m" in given.found:
        done.options["--kernel-cache"] = f"{given.number('-m', 0.0):g}MiB"
    given.leave_out(done, "-e", "-h")
    return done


def _svm_perf(text: str, counts: Counts) -> Translation:
    given = _struct("svm_perf", text, "-b", "--b", "--p")
    loss = {"1": "f1", "2": "", "3": "prbep", "4": "prec@k", "5": "rec@k", "10": "roc-area"}.get(given.text("-l", "2"))
    if loss is None:
        given.refuse(f"-l {given.text('-l', '')}", "losses here are -l 1 to 5 and 10")
    given.check()
    done = Translation()
    if loss == "roc-area":
        done.options["--task"] = loss
    elif loss:
        done.options["--loss"] = loss
    if loss in ("prec@k", "rec@k"):
        positives = counts.needed("positives", "svm_perf's k is a part of the positive rows")
        part = given.number("--p", 0.0) or {"prec@k": 0.5, "rec@k": 2.0}[loss]
        done.options["--k"] = str(max(1, int(part * positives)))
    done.number("--C", 100 * given.number("-c", 0.01) / counts.needed("rows", "svm_perf's -c is divided by the number of rows"))
    if loss != "roc-area":
        done.number("--bias", given.number("-b", given.number("--b", 1.0)))
    done.number("--tol", given.number("-e", 0.1) / 100)  # its loss is in percent
    done.options["--tol-relative"] = "0"
    given.leave_out(done)
    return done


def _svm_rank(text: str, counts: Counts) -> Translation:
    given = _struct("svm_rank", text)
    kind = given.text("-l", "1")
    if kind not in ("1", "2"):
        given.refuse(f"-l {kind}", "only swapped pairs, -l 1, or their part in each query, -l 2")
    given.check()
    why = "svm_rank's -c is divided by the number of queries"
    m, queries = counts.needed("rows", "C is per row here"), counts.needed("queries", why)
    done = Translation({"--task": "ranking"})
    epsilon = given.number("-e", 0.001)
    if kind == "1":
        share = counts.needed("pairs", "with -l 1 its loss is a number of pairs") / queries  # of which -e is a part, too
    else:
        done.options["--normalisation"] = "queries"
        share = counts.needed("paired_queries", "queries without a pair have no loss") / queries
        epsilon /= share
    done.number("--C", given.number("-c", 0.01) * share / m)
    done.number("--tol", epsilon)
    done.options["--tol-relative"] = "0"
    given.leave_out(done)
    return done


def _svm_hmm(text: str, counts: Counts) -> Translation:
    given = _struct("svm_hmm", text, "--t", "--e", "--b")
    given.only("-l", "1", "only the number of wrong labels")
    given.only("--t", "1", "only transitions of first order")
    given.only("--e", "0", "only emissions of order 0")
    given.only("--b", "0", "there is no beam here, the best sequence is found exactly")
    given.check()
    done = Translation({"--task": "sequence"})
    done.number("--C", given.number("-c", 0.01) / counts.needed("queries", "svm_hmm's -c is divided by the number of sequences"))
    done.number("--bias", 0.0)
    given.leave_out(done, "-e")
    return done


def _struct(tool: str, text: str, *own: str) -> _Given:
    """Options of a program built on svm_struct, `own` beside what all of them have."""
    given = _Given(tool, text, values={"-c", "-e", "-l", "-p", "-o", "-t", "-w", "-v", "-k", *own}, switches=set())
    given.only("-p", "1", "only slack of norm 1")
    given.only("-o", "2", "only margin rescaling")
    given.only("-t", "0", "only the linear kernel")
    return given


def _vw(text: str, counts: Counts) -> Translation:
    left_out = {"-b", "--bit_precision", "-l", "--learning_rate", "--power_t", "--initial_t", "--passes", "--cache_file"}
    idle = {"-c", "--cache", "-k", "--kill_cache", "--holdout_off", "--binary"}
    given = _Given("vw", text, values={"--loss_function", "--l2", *left_out}, switches={"--noconstant", "--quiet", *idle})
    loss = given.text("--loss_function", "squared")
    if loss not in _OF_VW:
        given.refuse(f"--loss_function {loss}", f"losses here are {', '.join(_OF_VW)}; vw's default is squared")
    lam = given.number("--l2", 0.0)
    if lam <= 0:
        given.refuse(f"--l2 {lam:g}", "without L2 regularisation there is nothing to certify")
    given.check()
    done = Translation()
    _loss(done, loss)
    done.number("--C", 1 / (lam * counts.needed("rows", "vw's --l2 is per row")))
    done.number("--bias", 0.0 if "--noconstant" in given.found else 1.0)
    if "--quiet" in given.found:
        done.options["--quiet"] = ""
    dropped = [name for name in given.found if name in left_out | idle]
    if dropped:
        done.notes.append(f"{', '.join(dropped)}: how vw goes about it, not what it solves; left out")
    done.notes.append("vw takes online steps towards this optimum; here it is solved to a certificate")
    return done


def _sklearn(text: str, counts: Counts) -> Translation:
    try:
        call = ast.parse(text.strip(), mode="eval").body
        assert isinstance(call, ast.Call)
        assert not call.args
        name = ast.unparse(call.func).split(".")[-1]
        found = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    except (SyntaxError, ValueError, AssertionError):
        raise UsageError(f'sklearn: {text!r} is not a call with named literals; write LinearSVC(loss="hinge", C=1)') from None
    if name not in ("LinearSVC", "SGDClassifier"):
        raise UsageError(f"sklearn: {name} has no counterpart here; LinearSVC and SGDClassifier have one")
    given = _Keywords(name, found)
    weights = given.take("class_weight", None) or {}
    if not isinstance(weights, dict):
        given.refuse(f"class_weight={weights!r}", "write the weights themselves, for example {1: 2.5}")
    given.only("penalty", "l2", "l2")
    intercept = given.take("fit_intercept", True)
    if name == "LinearSVC":
        loss = str(given.take("loss", "squared_hinge"))
        if loss == "log_loss" or loss not in _OF_SGD:
            given.refuse(f"loss={loss!r}", "LinearSVC has hinge and squared_hinge")
        given.only("multi_class", "ovr", "ovr")
        C, bias = float(given.take("C", 1.0)), float(given.take("intercept_scaling", 1.0)) if intercept else 0.0
        dropped = given.drop("dual", "tol", "max_iter", "random_state", "verbose")
        given.check()
    else:
        loss = str(given.take("loss", "hinge"))
        if loss not in _OF_SGD:
            given.refuse(f"loss={loss!r}", f"losses here are {', '.join(_OF_SGD)}")
        lam, bias = float(given.take("alpha", 1e-4)), 0.0
        if lam <= 0:
            given.refuse(f"alpha={lam:g}", "without regularisation this is no SVM")
        if intercept:
            given.refuse(
                "fit_intercept=True", "its intercept is not regularised, ours is; fit_intercept=False is the same problem"
            )
        dropped = given.drop(
            "tol", "max_iter", "random_state", "verbose", "shuffle", "learning_rate", "eta0", "power_t", "n_jobs"
        )
        dropped += given.drop("early_stopping", "validation_fraction", "n_iter_no_change", "l1_ratio", "epsilon")
        given.check()
        C = 1 / (lam * counts.needed("rows", "SGDClassifier's alpha is per row"))
    done = Translation()
    _loss(done, _OF_SGD[loss])
    _class_weights(done, C, {float(label): float(weight) for label, weight in weights.items()})
    done.number("--bias", bias)
    if dropped:
        done.notes.append(f"{', '.join(dropped)}: how scikit-learn goes about it, not what it solves; left out")
    return done


TOOLS: dict[str, Callable[[str, Counts], Translation]] = {
    "liblinear": _liblinear,
    "libsvm": _libsvm,
    "svm_perf": _svm_perf,
    "svm_rank": _svm_rank,
    "svm_hmm": _svm_hmm,
    "vw": _vw,
    "sklearn": _sklearn,
}


def _class_weights(done: Translation, C: float, weights: dict[float, float]) -> None:
    """--C, --positive-weight and --positive-label for C times the weight of each label (1 for labels that are not named)."""
    if len(weights) > 2 or any(weight <= 0 for weight in weights.values()):
        raise UsageError(f"class weights {weights}: there are two classes here, and weights are above 0")
    if not weights:
        done.number("--C", C)
        return
    positive: float | None
    if len(weights) == 2:
        (_, low), (positive, high) = sorted(weights.items())
    else:
        ((label, weight),) = weights.items()
        # labels 0 and −1 are the negative one; which label is the other is not known, and need not be
        low, positive, high = (weight, None, 1.0) if label <= 0 else (1.0, label, weight)
    done.number("--C", C * low)
    done.number("--positive-weight", high / low)
    if positive is not None:
        done.number("--positive-label", positive)


class _Refusals:
    """Collects what cannot be translated, so that one message names all of it."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.refused: list[str] = []

    def refuse(self, what: str, why: str) -> None:
        self.refused.append(f"{what} ({why})")

    def check(self) -> None:
        if self.refused:
            raise UsageError(f"{self.tool}: no counterpart here for {'; '.join(self.refused)}")


class _Given(_Refusals):
    """Options of a command line: `values` take one, `switches` none, -wLABEL one where the tool has class weights."""

    def __init__(self, tool: str, text: str, values: set[str], switches: set[str], class_weights: bool = False) -> None:
        super().__init__(tool)
        self.found: dict[str, str] = {}
        try:
            words = iter(shlex.split(text))
        except ValueError as error:
            raise UsageError(f"{tool}: {text!r}: {str(error).lower()}; close every quotation mark") from None
        for word in words:
            name, equals, value = word.partition("=")
            if name in switches and not equals:
                self.found[name] = ""
            elif name in values or (class_weights and name.startswith("-w") and len(name) > 2):
                taken = value if equals else next(words, None)
                if taken is None:
                    raise UsageError(f"{tool}: {name} needs a value")
                self.found[name] = taken
            else:
                self.refuse(word, "not known" if word.startswith("-") else "not an option; leave file names out")

    def text(self, name: str, default: str) -> str:
        return self.found.get(name, default)

    def only(self, name: str, wanted: str, why: str) -> None:
        """Refuse another value than `wanted`, which is the default."""
        if self.text(name, wanted) != wanted:
            self.refuse(f"{name} {self.text(name, wanted)}", f"{why}: {name} {wanted}")

    def class_weights(self) -> dict[float, float]:
        """By label, of -wLABEL."""
        return {self.parse(name, name[2:]): self.number(name, 1.0) for name in self.found if name.startswith("-w")}

    def leave_out(self, done: Translation, *more: str) -> None:
        """Be quiet if that was asked for; note what has no meaning here: of `more`, and what chooses among algorithms."""
        if "-q" in self.found or self.text("-v", "1") == "0":
            done.options["--quiet"] = ""
        if "-e" in more and "-e" in self.found:
            done.notes.append("-e bounds a violation, not the gap to the optimum: left out, see --tol and --tol-relative")
        dropped = [name for name in ("-w", "-k", "-h") if name in self.found]
        if dropped:
            done.notes.append(f"{', '.join(dropped)}: how {self.tool} goes about it, not what it solves; left out")

    def number(self, name: str, default: float) -> float:
        return self.parse(name, self.found[name]) if name in self.found else default

    def parse(self, name: str, text: str) -> float:
        try:
            return float(text)
        except ValueError:
            raise UsageError(f"{self.tool}: {name}: {text!r} is not a number") from None


class _Keywords(_Refusals):
    """Keyword arguments of a call; what is never asked for is unknown."""

    def __init__(self, tool: str, found: dict[str, Any]) -> None:
        super().__init__(tool)
        self.found = found

    def take(self, name: str, default: Any) -> Any:
        return self.found.pop(name, default)

    def drop(self, *names: str) -> list[str]:
        """Those of `names` that are given, which are then known and have no effect."""
        return [name for name in names if self.found.pop(name, self) is not self]

    def only(self, name: str, default: str, wanted: str) -> None:
        value = self.take(name, default)
        if value != wanted:
            self.refuse(f"{name}={value!r}", f"only {wanted!r} is offered here")

    def check(self) -> None:
        for name, value in self.found.items():
            self.refuse(f"{name}={value!r}", "not known")
        self.found = {}
        super().check()
