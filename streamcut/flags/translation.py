"""What all translations share: the result, counts of the data, the options given, and refusals."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field
from typing import Any

from streamcut.errors import OtherProgramError


@dataclass
class Translation:
    """`options` for a command, by name in order, and `notes` on what differs or has no counterpart.

    command       of streamcut: "train", or "tune" where C is found by cross-validation
    data, model   the files that the command line named
    """

    options: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    command: str = "train"
    data: str | None = None
    model: str | None = None

    def text(self) -> str:
        """The text to type: the whole command if it named its data, else the options."""
        words = [part for name, value in self.options.items() for part in (name, value) if part]
        if self.data is not None:
            model = self.model or f"{os.path.basename(self.data)}.model"
            model = model if model.endswith(".npz") else f"{model}.npz"
            words = ["streamcut", self.command, self.data, "--output", model, *words]
        return shlex.join(words)

    def in_files(self, given: Given) -> None:
        """Take the files of a command line: the data, then the model."""
        self.data, self.model = (*given.files, None, None)[:2]

    def across_folds(self, folds: str, Cs: str | None = None) -> None:
        """Choose among values of C, or measure one, by cross-validation."""
        self.command = "tune"
        self.options |= {"--folds": folds, **({} if Cs is None else {"--C": Cs})}
        self.notes.append("options of `streamcut tune`: cross-validation, then a model of all rows")

    def number(self, name: str, value: float) -> None:
        self.options[name] = f"{value:g}" if float(f"{value:g}") == value else repr(value)


@dataclass(frozen=True)
class Counts:
    """Counts of the data; a pair is two rows of one query whose labels differ. None: not given."""

    rows: int | None = None
    positives: int | None = None
    queries: int | None = None
    pairs: int | None = None
    paired_queries: int | None = None
    classes: int | None = None
    features: int | None = None

    @property
    def several(self) -> bool:
        """Whether there are more than two classes."""
        return self.classes is not None and self.classes > 2

    def __post_init__(self) -> None:
        for name, count in vars(self).items():
            if count is not None and count < 1:
                what = name.replace("_", " ")
                raise OtherProgramError(f"{option_named(name)}: {count} is not a number of {what}; it must be at least 1")

    def needed(self, name: str, why: str) -> int:
        """The count, or UsageError."""
        count = getattr(self, name)
        if count is None:
            raise OtherProgramError(f"{why}: say how many there are with {option_named(name)}")
        return count


def option_named(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def take_loss(done: Translation, loss: str, task: str = "binary") -> None:
    """Set a row loss, unless it is the task's default."""
    if loss != ("squared" if task == "regression" else "hinge"):
        done.options["--loss"] = loss


def weigh_classes(done: Translation, C: float, weights: dict[float, float]) -> None:
    """--C, --positive-weight and --positive-label for C times the weight of each label (1 for labels that are not named)."""
    if len(weights) > 2 or any(weight <= 0 for weight in weights.values()):
        raise OtherProgramError(f"class weights {weights}: there must be two classes, and weights above 0")
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


def several_classes(done: Translation, loss: str, classes: int | None) -> None:
    """One class against the rest with this loss, as most programs do with more than two classes."""
    done.options |= {"--task": "multiclass", "--strategy": "one-vs-rest"}
    take_loss(done, loss, "multiclass")
    if classes is None:
        done.notes.append("each class against the rest; with two classes leave out --task and --strategy")


class Refusals:
    """Collects everything that cannot be translated, for one message."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.refused: list[str] = []

    def refuse(self, what: str, why: str) -> None:
        self.refused.append(f"{what} ({why})")

    def check(self) -> None:
        if self.refused:
            raise OtherProgramError(f"{self.tool}: no counterpart here for {'; '.join(self.refused)}")


# Names with which a command line of each program may begin.
PROGRAMS = {
    "liblinear": ("train", "liblinear-train", "train_liblinear", "liblinear"),
    "libsvm": ("svm-train", "svmtrain", "libsvm-train", "libsvm"),
    **{name: (f"{name}_learn", f"{name}_learn_main", name) for name in ("svm_perf", "svm_rank", "svm_hmm")},
    "vw": ("vw",),
}


class Given(Refusals):
    """A command line: `values` take a word, `switches` none, -wLABEL one where the tool has class weights.

    files   the most file names allowed; the attribute `files` holds those found
    """

    def __init__(
        self,
        tool: str,
        text: str,
        values: set[str],
        switches: set[str],
        class_weights: bool = False,
        files: int = 2,
    ) -> None:
        super().__init__(tool)
        self.found: dict[str, str] = {}
        self.files: list[str] = []
        try:
            given = shlex.split(text)
        except ValueError as error:
            raise OtherProgramError(f"{tool}: {text!r}: {str(error).lower()}; close every quotation mark") from None
        if given and os.path.basename(given[0]).removesuffix(".exe") in PROGRAMS[tool.lower()]:
            del given[0]
        words = iter(given)
        for word in words:
            name, equals, value = word.partition("=")
            if name in switches and not equals:
                self.found[name] = ""
            elif name in values or (class_weights and name.startswith("-w") and len(name) > 2):
                taken = value if equals else next(words, None)
                if taken is None:
                    raise OtherProgramError(f"{tool}: {name} needs a value")
                self.found[name] = taken
            elif word.startswith("-"):
                self.refuse(word, "not known")
            elif len(self.files) < files:
                self.files.append(word)
            else:
                self.refuse(word, "too many files; only the data and the model are named")

    def text(self, name: str, default: str) -> str:
        return self.found.get(name, default)

    def only(self, name: str, wanted: str, why: str) -> None:
        """Refuse any value other than `wanted`, the default."""
        if self.text(name, wanted) != wanted:
            self.refuse(f"{name} {self.text(name, wanted)}", f"{why}: {name} {wanted}")

    def class_weights(self) -> dict[float, float]:
        """Weights by label, from -wLABEL."""
        return {self.parse(name, name[2:]): self.number(name, 1.0) for name in self.found if name.startswith("-w")}

    def leave_out(self, done: Translation, *more: str) -> None:
        """Set --quiet if requested; note options without meaning here: those of `more`, and the choice of an algorithm."""
        if "-q" in self.found or self.text("-v", "1") == "0":
            done.options["--quiet"] = ""
        if "-e" in more and "-e" in self.found:
            done.notes.append("-e bounds a violation, not the gap to the optimum: left out, see --tol and --tol-relative")
        dropped = [name for name in ("-w", "-k", "-h") if name in self.found]
        if dropped:
            done.notes.append(f"{', '.join(dropped)}: how {self.tool} solves the problem, not what it solves; left out")

    def number(self, name: str, default: float) -> float:
        return self.parse(name, self.found[name]) if name in self.found else default

    def parse(self, name: str, text: str) -> float:
        try:
            return float(text)
        except ValueError:
            raise OtherProgramError(f"{self.tool}: {name}: {text!r} is not a number") from None


class Keywords(Refusals):
    """Keyword arguments of a call; those never read are unknown."""

    def __init__(self, tool: str, found: dict[str, Any]) -> None:
        super().__init__(tool)
        self.found = found

    def take(self, name: str, default: Any) -> Any:
        return self.found.pop(name, default)

    def drop(self, *names: str) -> list[str]:
        """Mark `names` as known and without effect; returns those given."""
        return [name for name in names if self.found.pop(name, self) is not self]

    def only(self, name: str, default: Any, wanted: Any) -> None:
        value = self.take(name, default)
        if value != wanted:
            self.refuse(f"{name}={value!r}", f"only {wanted!r} is supported")

    def check(self) -> None:
        for name, value in self.found.items():
            self.refuse(f"{name}={value!r}", "not known")
        self.found = {}
        super().check()
