"""LIBLINEAR's train: two classes, several, regression, and one class."""

from __future__ import annotations

from streamcut.flags.translation import Counts, Given, Translation, several_classes, take_loss, weigh_classes

_PROBLEMS = {  # -s: (task, loss)
    "0": ("binary", "logistic"),
    "1": ("binary", "squared-hinge"),
    "2": ("binary", "squared-hinge"),
    "3": ("binary", "hinge"),
    "4": ("multiclass", "hinge"),
    "5": ("binary", "squared-hinge"),
    "6": ("binary", "logistic"),
    "7": ("binary", "logistic"),
    "11": ("regression", "squared-epsilon-insensitive"),
    "12": ("regression", "squared-epsilon-insensitive"),
    "13": ("regression", "epsilon-insensitive"),
    "21": ("one-class", "hinge"),
}

_MAY_BE_FREE = ("0", "2", "11")
_SEARCHED = "0.0001,0.001,0.01,0.1,1,10,100,1000"  # for -C, which doubles C from a small value
_SPARSE, _RIDGE = ("5", "6"), 100.0  # kinds with ‖w‖₁, and its factor relative to ½‖w‖²


def liblinear(text: str, counts: Counts) -> Translation:
    values = {"-s", "-c", "-B", "-e", "-n", "-m", "-p", "-v"}
    given = Given("LIBLINEAR", text, values, {"-q", "-C", "-R"}, class_weights=True)
    kind = given.text("-s", "1")
    if kind not in _PROBLEMS:
        given.refuse(f"-s {kind}", f"supported problems are -s {', '.join(_PROBLEMS)}")
    task, loss = _PROBLEMS.get(kind, ("binary", "hinge"))
    several = task == "binary" and counts.several
    C, bias = given.number("-c", 1.0), given.number("-B", -1.0)
    weights = given.class_weights()
    if (task == "multiclass" or several) and weights:
        given.refuse("-w", "class weights are not supported for several classes")
    if task == "regression" and weights:
        given.refuse("-w", "regression has no classes")
    if task == "one-class" and (weights or bias >= 0.0):
        given.refuse("-w" if weights else f"-B {bias:g}", "-s 21 has neither class weights nor a bias feature")
    free, search = "-R" in given.found, "-C" in given.found
    if free and (bias != 1.0 or several or kind not in _MAY_BE_FREE):
        given.refuse("-R", f"it frees the intercept of -B 1 with -s {', '.join(_MAY_BE_FREE)}")
    if search and (weights or task in ("multiclass", "one-class")):
        given.refuse("-C", "it needs one C for all rows")
    if "-v" in given.found and task == "one-class":
        given.refuse("-v", "rows without labels cannot be measured")
    if task != "regression" and "-p" in given.found:
        given.refuse("-p", "only -s 11, 12 and 13 have it")
    given.check()
    done = Translation({"--task": task} if task != "binary" else {})
    if task == "one-class":
        done.number("--nu", given.number("-n", 0.5))  # -c has no effect there
        given.leave_out(done, "-e")
        done.in_files(given)
        return done
    if task == "regression":
        done.number("--epsilon", given.number("-p", 0.1))
    if several:
        several_classes(done, loss, counts.classes)
    else:
        take_loss(done, loss, task)
    if kind in _SPARSE and not several:
        done.number("--l1-only", 1.0)
    elif kind in _SPARSE:
        C *= _RIDGE
        done.number("--l1", _RIDGE)
        done.notes.append(
            f"-s {kind} has ‖w‖₁ alone; here ½‖w‖² is added to {_RIDGE:g}·‖w‖₁, so the objective is {_RIDGE:g} times "
            "theirs plus ½‖w‖². Raise --l1 and --C by the same factor to make that part smaller"
        )
    weigh_classes(done, C, weights)
    if free:
        done.options["--intercept"] = "free"
    else:
        done.number("--bias", max(bias, 0.0))  # below 0: no bias feature
    if (threads := given.text("-m", given.text("-n", ""))) and task != "one-class":
        done.options["--workers"] = threads
    if search or "-v" in given.found:
        done.across_folds(given.text("-v", "5"), _SEARCHED if search else None)
    given.leave_out(done, "-e")
    done.in_files(given)
    return done
