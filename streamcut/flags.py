"""Options of other SVM programs, said in ours: the same problem, or a refusal that names what we cannot say.

Ours is F(w) = ½‖w‖² + C Σ_i u_i max(0, 1 − y_i⟨w, x_i⟩) with C per row and a regularised constant feature `bias`. With m rows:

    LIBLINEAR -s 3 -c C, LinearSVC(loss="hinge", C=C)            C
    svm_perf -c c     (½‖w‖² + c · mean loss in percent)         100·c / m
    VW --l2 λ, SGDClassifier(alpha=λ)   (λ/2‖w‖² + mean loss)    1 / (λ·m)
"""

from __future__ import annotations

import ast
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from streamcut.errors import UsageError


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


def translate(tool: str, text: str, *, rows: int | None = None) -> Translation:
    """The problem that `text` gives `tool` (one of TOOLS), in our options; `rows` is m, needed where C is not per row.

    Raises UsageError naming every option that is unknown here, or that asks for another problem.
    """
    if tool not in TOOLS:
        raise UsageError(f"--from: {tool!r} is not known; use one of {', '.join(TOOLS)}")
    if rows is not None and rows < 1:
        raise UsageError(f"--rows: {rows} is not a number of rows; it must be at least 1")
    return TOOLS[tool](text, rows)


def _liblinear(text: str, rows: int | None) -> Translation:
    given = _Given("LIBLINEAR", text, values={"-s", "-c", "-B", "-e", "-n"}, switches={"-q"}, class_weights=True)
    kind = given.text("-s", "1")
    if kind != "3":
        given.refuse(
            f"-s {kind}", "only -s 3 (hinge loss, L2-regularised) is the problem solved here; -s 1 is LIBLINEAR's default"
        )
    C, bias = given.number("-c", 1.0), given.number("-B", -1.0)
    given.check()
    weights = {given.parse(name, name[2:]): given.number(name, 1.0) for name in given.found if name.startswith("-w")}
    done = Translation()
    _class_weights(done, C, weights)
    done.number("--bias", max(bias, 0.0))  # below 0: no bias feature
    if "-n" in given.found:
        done.options["--workers"] = given.text("-n", "")
    if "-q" in given.found:
        done.options["--quiet"] = ""
    if "-e" in given.found:
        done.notes.append("-e bounds a violation of the dual, not the gap to the optimum: left out, see --tol and --tol-relative")
    return done


def _svm_perf(text: str, rows: int | None) -> Translation:
    given = _Given("svm_perf", text, values={"-c", "-e", "-l", "-b", "--b", "-p", "-o", "-t", "-w", "-v"}, switches=set())
    for name, wanted, why in (
        ("-l", "2", "only the error rate (-l 2) is the problem solved here"),
        ("-p", "1", "only slack of norm 1 (-p 1)"),
        ("-o", "2", "only margin rescaling (-o 2)"),
        ("-t", "0", "only the linear kernel (-t 0)"),
    ):
        if given.text(name, wanted) != wanted:
            given.refuse(f"{name} {given.text(name, wanted)}", why)
    given.check()
    done = Translation()
    done.number("--C", 100 * given.number("-c", 0.01) / _needed(rows, "svm_perf's -c is divided by the number of rows"))
    done.number("--bias", given.number("-b", given.number("--b", 1.0)))
    done.number("--tol", given.number("-e", 0.1) / 100)  # its loss is in percent
    done.options["--tol-relative"] = "0"
    if "-w" in given.found:
        done.notes.append("-w chooses among algorithms for the same problem: left out")
    if given.text("-v", "1") == "0":
        done.options["--quiet"] = ""
    return done


def _vw(text: str, rows: int | None) -> Translation:
    left_out = {"-b", "--bit_precision", "-l", "--learning_rate", "--power_t", "--initial_t", "--passes", "--cache_file"}
    idle = {"-c", "--cache", "-k", "--kill_cache", "--holdout_off", "--binary"}
    given = _Given("vw", text, values={"--loss_function", "--l2", *left_out}, switches={"--noconstant", "--quiet", *idle})
    loss = given.text("--loss_function", "squared")
    if loss != "hinge":
        given.refuse(f"--loss_function {loss}", "only the hinge loss is offered here; vw's default is squared")
    lam = given.number("--l2", 0.0)
    if lam <= 0:
        given.refuse(f"--l2 {lam:g}", "without L2 regularisation this is no SVM")
    given.check()
    done = Translation()
    done.number("--C", 1 / (lam * _needed(rows, "vw's --l2 is per row")))
    done.number("--bias", 0.0 if "--noconstant" in given.found else 1.0)
    if "--quiet" in given.found:
        done.options["--quiet"] = ""
    dropped = [name for name in given.found if name in left_out | idle]
    if dropped:
        done.notes.append(f"{', '.join(dropped)}: how vw goes about it, not what it solves; left out")
    done.notes.append("vw takes online steps towards this optimum; here it is solved to a certificate")
    return done


def _sklearn(text: str, rows: int | None) -> Translation:
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
        given.only("loss", "squared_hinge", "hinge")
        given.only("multi_class", "ovr", "ovr")
        C, bias = float(given.take("C", 1.0)), float(given.take("intercept_scaling", 1.0)) if intercept else 0.0
        dropped = given.drop("dual", "tol", "max_iter", "random_state", "verbose")
        given.check()
    else:
        given.only("loss", "hinge", "hinge")
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
        C = 1 / (lam * _needed(rows, "SGDClassifier's alpha is per row"))
    done = Translation()
    _class_weights(done, C, {float(label): float(weight) for label, weight in weights.items()})
    done.number("--bias", bias)
    if dropped:
        done.notes.append(f"{', '.join(dropped)}: how scikit-learn goes about it, not what it solves; left out")
    return done


TOOLS: dict[str, Callable[[str, int | None], Translation]] = {
    "liblinear": _liblinear,
    "svm_perf": _svm_perf,
    "vw": _vw,
    "sklearn": _sklearn,
}


def _needed(rows: int | None, why: str) -> int:
    if rows is None:
        raise UsageError(f"{why}: say how many there are with --rows (streamcut info shows it)")
    return rows


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
