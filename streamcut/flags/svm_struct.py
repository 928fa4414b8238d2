"""Programs built on svm_struct: SVM-perf, SVM-rank, SVM-hmm."""

from __future__ import annotations

from streamcut.flags.translation import Counts, Given, Translation


def svm_perf(text: str, counts: Counts) -> Translation:
    given = _struct("svm_perf", text, "-b", "--b", "--p")
    loss = {"1": "f1", "2": "", "3": "prbep", "4": "prec@k", "5": "rec@k", "10": "roc-area"}.get(given.text("-l", "2"))
    if loss is None:
        given.refuse(f"-l {given.text('-l', '')}", "supported losses are -l 1 to 5 and 10")
    given.check()
    done = Translation()
    if loss == "roc-area":
        done.options["--task"] = loss
    elif loss:
        done.options["--loss"] = loss
    if loss in ("prec@k", "rec@k"):
        positives = counts.needed("positives", "svm_perf's k is a fraction of the positive rows")
        part = given.number("--p", 0.0) or {"prec@k": 0.5, "rec@k": 2.0}[loss]
        done.options["--k"] = str(max(1, int(part * positives)))
    done.number("--C", 100 * given.number("-c", 0.01) / counts.needed("rows", "svm_perf's -c is divided by the number of rows"))
    if loss != "roc-area":
        done.number("--bias", given.number("-b", given.number("--b", 1.0)))
    done.number("--tol", given.number("-e", 0.1) / 100)  # its loss is in percent
    done.options["--tol-relative"] = "0"
    given.leave_out(done)
    done.in_files(given)
    return done


def svm_rank(text: str, counts: Counts) -> Translation:
    given = _struct("svm_rank", text)
    kind = given.text("-l", "1")
    if kind not in ("1", "2"):
        given.refuse(f"-l {kind}", "only swapped pairs, -l 1, or their fraction in each query, -l 2")
    given.check()
    why = "svm_rank's -c is divided by the number of queries"
    m, queries = counts.needed("rows", "C is per row here"), counts.needed("queries", why)
    done = Translation({"--task": "ranking"})
    epsilon = given.number("-e", 0.001)
    if kind == "1":
        share = counts.needed("pairs", "with -l 1 its loss is a number of pairs") / queries  # -e is in these units, too
    else:
        done.options["--normalisation"] = "queries"
        share = counts.needed("paired_queries", "queries without a pair have zero loss") / queries
        epsilon /= share
    done.number("--C", given.number("-c", 0.01) * share / m)
    done.number("--tol", epsilon)
    done.options["--tol-relative"] = "0"
    given.leave_out(done)
    done.in_files(given)
    return done


def svm_hmm(text: str, counts: Counts) -> Translation:
    given = _struct("svm_hmm", text, "--t", "--e", "--b")
    given.only("-l", "1", "only the number of wrong labels")
    given.only("--t", "1", "only first-order transitions")
    given.only("--e", "0", "only emissions of order 0")
    given.only("--b", "0", "there is no beam search here; the best sequence is found exactly")
    given.check()
    done = Translation({"--task": "sequence"})
    done.number("--C", given.number("-c", 0.01) / counts.needed("queries", "svm_hmm's -c is divided by the number of sequences"))
    done.number("--bias", 0.0)
    given.leave_out(done, "-e")
    done.in_files(given)
    return done


def _struct(tool: str, text: str, *own: str) -> Given:
    """Options of a program built on svm_struct: `own` in addition to the common ones."""
    given = Given(tool, text, {"-c", "-e", "-l", "-p", "-o", "-t", "-w", "-v", "-k", *own}, set())
    given.only("-p", "1", "only slack of norm 1")
    given.only("-o", "2", "only margin rescaling")
    given.only("-t", "0", "only the linear kernel")
    return given
