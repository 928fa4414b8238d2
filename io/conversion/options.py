"""The options of `convert`, checked once at the border."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamcut.errors import NotFoundError, UsageError
from streamcut.foundation.opened import read_file
from streamcut.foundation.systems import memory as memory_of_machine
from streamcut.foundation.units import parse_size
from streamcut.io.formats.registry import ASKED, FORMATS, kinds_with
from streamcut.io.recipe.table import LABELS_AS, MISSING_LABELS, TEXT_WEIGHTS, Spelling, missing_in
from streamcut.io.stores.spec import BACKENDS
from streamcut.options.option import Check, at_least, default_of, expect_valid, flag, option, options_of

_NAMES = "Names, or a text with commas between them."
_BYTES = "A number: bytes."
_ROLES = ("categorical", "numeric", "standardise", "text", "text_weights", "time", "cross", "drop", "id", "ngrams", "missing",
          "min_count", "stop_words", "header")  # fmt: skip
# Options of one format, which the command line has as --set NAME=VALUE.
CONVERT_SETTINGS = ("index_column", "value_column", "max_line_bytes", "wide_index", "label_weights", "multilabel")
BY_RECIPE = (*_ROLES, "labels_as", "hash_bits", "label_map", "multilabel", "label_weights", "qid", "weights")


@dataclass(frozen=True, slots=True)
class ConvertOptions:
    """Every option of `convert`. Options of some formats only are listed in the formats' records (streamcut.io.formats).

    Raises UsageError for values out of range and for options that exclude each other.
    """

    # fmt: off
    format: str = option("auto", "Format of INPUTS; auto: found by name and content.", choices=("auto", *ASKED))
    labels: str | None = option(None, flag="label", help=
        "Labels: a column, a comparison ('delay>15'), a file with one a line or a .npy file (npz, mtx), or none.",
        metavar="FILE|COLUMN")
    qid: str | None = option(None, "Query ids, given like --label; svmlight has them in the rows.", metavar="FILE|COLUMN")
    weights: str | None = option(None, "Row weights, given like --label.", metavar="FILE|COLUMN")
    categorical: str | Sequence[str] = option((), "Tables: columns whose values are categories.",
        metavar="A,B", kind="names", python=_NAMES)
    numeric: str | Sequence[str] = option((), "Columns of numbers; :bin16: categories by quantiles.",
        metavar="A,B:bin16", kind="names",
        python=_NAMES)
    text: str | Sequence[str] = option((), "Columns of texts, which become words.", metavar="A,B", kind="names", python=_NAMES)
    ngrams: str | None = option(None, "Texts: sequences of this many words, or characters.  [default: 1,1]",
        metavar="1,2|chars:3,5")
    standardise: bool = option(True, "Columns of numbers get mean 0 and deviation 1 (but for :bin), and missing values "
        "the mean; reads the data once more.")
    text_weights: str = option("auto", "Texts: counts of words, or tfidf (1 + ln count, times the word's rarity, rows scaled to "
        "length 1; reads the data once more). auto: counts where words are hashed, else tfidf.",
        choices=("auto", *TEXT_WEIGHTS))
    min_count: int = option(1, "Texts: leave out words that occur in fewer rows than this. Reads the data twice.", metavar="N",
        check=at_least(1))
    # after checking a tuple of words or None
    stop_words: Any = option(None, "Texts: leave out these words: english, or a file with one a line. Reads the data twice.",
        python="The words, too.", metavar="english|FILE")
    time: str | Sequence[str] = option((), "Parts of a time as categories; once for each column.",
        metavar="A:hour,weekday", kind="texts")
    cross: str | Sequence[str] = option((), "Pairs of categories as categories.", metavar="A*B", kind="names", python=_NAMES)
    drop: str | Sequence[str] = option((), "Columns to leave out; '*': all not named elsewhere.",
        metavar="A,B", kind="names", python=_NAMES)
    id: str | Sequence[str] = option((), "Columns that name a row; they make no features.",
        metavar="A", kind="names", python=_NAMES)
    header: bool = option(True, "CSV: the first line names the columns; without, they are 0, 1 and so on.")
    missing: str = option("own", "A missing value gets a feature of its own (own), none (zero), or is an error; other words are "
        "spellings of it: '?,unknown'.", metavar="own|zero|error|A,B")
    labels_as: str = option("auto",
        "Labels of tables. auto refuses words among numbers, and 1/0 in one file with 1/-1 in the next.", choices=LABELS_AS)
    missing_labels: str = option("error", "Rows without a label: stop, or leave them out.", choices=MISSING_LABELS)
    max_categories: int = option(250_000, "Most categories and words without --hash-bits.", metavar="N", check=at_least(1))
    # after checking a Recipe or None
    recipe: Any = option(None, "Make features as a model, a store or a recipe.json says.", python="A Recipe, too.",
        metavar="PATH")
    layer: str | None = option(None, "AnnData: this layer instead of X.", metavar="NAME")
    index_column: str = option("indices", "Parquet: lists of feature numbers.", metavar="COLUMN")
    value_column: str = option("values", "Parquet: lists of values; '' if all are 1.", metavar="COLUMN")
    index_base: int | str | None = option(None,
        "The first feature's number: svmlight 1, parquet 0. auto reads the data twice and needs --n-features.",
        choices=(None, 0, 1, "auto"))
    n_features: int | None = option(None, "Refuse features beyond N; the store has N, seen or not.", metavar="N",
        check=at_least(1))
    # after checking a tuple or None
    feature_names: Any = option(None,
        f"Names of the features, one a line ({', '.join(name for name in kinds_with('feature_names') if name in ASKED)}).",
        python="A file, or the names.", metavar="FILE")
    wide_index: bool = option(False, "Accept features above 2147483647, which are otherwise refused as typing errors.")
    # after checking bytes or None
    max_line_bytes: Any = option(None, "svmlight: refuse longer lines: such a file is no text.  [default: 268MB]", python=_BYTES,
        metavar="SIZE")
    hash_bits: int | None = option(None, "Hash feature names, numbers or categories into 2^B features.", metavar="B",
        check=Check("is outside 1 … 31", lambda value: 1 <= value <= 31))
    dtype: str | None = option(None, "Type of the values. Default: float32 for text, as they are for tables.",
        choices=(None, "float32", "float64"))
    duplicates: str = option("error", "What to do with a feature that occurs twice in a row.", choices=("error", "sum", "last"))
    # after checking {word: label} or None
    label_map: Any = option(None, "Numbers for labels that are words.", python="A mapping, too.",
        metavar="A=1,B=2|FILE")
    multilabel: float | None = option(None, "Labels are sets such as 1,3: with LABEL +1, without it -1.", metavar="LABEL",
        check=Check("is no label; give the number that stands in the sets", math.isfinite))
    label_weights: bool = option(False, "Labels may be label:weight.")
    keep_zeros: bool = option(False, "Store entries whose value is 0.")
    on_error: str = option("raise", "A malformed line: stop, or leave it out; the first 20 are shown, and kept in the manifest.",
        choices=("raise", "skip"))
    max_errors: int | None = option(None, "With --on-error skip, stop after N lines.  [default: 1000]", metavar="N",
        check=at_least(0))
    backend: str = option("zarr", "File format of the shards.", choices=BACKENDS)
    shard_nnz: int | None = option(None, "Entries of a shard.  [default: 2097152, less where --memory is short]", metavar="N",
        check=at_least(1))
    shuffle: int | None = option(None, "Put the rows (or the groups of equal qid) in random order.", metavar="SEED",
        check=at_least(0))
    split: float | None = option(None, "Put about this share of the rows into OUTPUT, and the others elsewhere.", metavar="SHARE",
        check=Check("is not between 0 and 1; 0.9 keeps 90 % of the rows and puts 10 % elsewhere", lambda value: 0 < value < 1))
    split_output: str | os.PathLike | None = option(None, "Where the others go.  [default: OUTPUT with -test before its suffix]",
        metavar="PATH")
    split_seed: int = option(0, "Random seed of the split.", flag="seed", metavar="SEED", check=at_least(0))
    group_by_qid: bool = option(False, "Bring the rows of each qid together, in ascending order of qid.")
    # after checking bytes or None
    memory: Any = option(None, "Memory limit of the process: 2GB, 500MiB, 50%.  [default: 1GB]", python=_BYTES,
        metavar="SIZE")
    threads: int = option(2, "Threads that parse and write.", flag="workers", metavar="N", check=at_least(1))
    scratch: str | os.PathLike | None = option(None, "Folder for sorted runs.  [default: OUTPUT, for URLs TMPDIR]",
        metavar="DIR")
    resume: bool = option(False, "Continue an interrupted conversion.")
    force: bool = option(False, "Replace OUTPUT once the new store is complete.")
    # fmt: on

    def __post_init__(self) -> None:
        expect_valid(self, flags=True)
        if self.hash_bits is not None and self.n_features is not None:
            raise UsageError("--hash-bits decides the number of features; leave --n-features out")
        if self.hash_bits is not None and self.text_weights == "tfidf":
            raise UsageError("--text-weights=tfidf counts words by a dictionary; leave --hash-bits out")
        object.__setattr__(self, "stop_words", _stop_words(self.stop_words))
        if self.chooses_words and self.hash_bits is not None:
            raise UsageError("--min-count and --stop-words need the words, which hashing does not keep; leave --hash-bits out")
        if self.stop_words and (self.ngrams or "").startswith("chars:"):
            raise UsageError("--stop-words: characters are not words; leave it out, or chars: of --ngrams")
        if self.max_errors is not None and self.on_error != "skip":
            raise UsageError("--max-errors needs --on-error=skip")
        if self.split is None and self.split_output is not None:
            raise UsageError("--split-output needs --split")
        object.__setattr__(self, "label_map", _label_map(self.label_map))
        missing_in(self.missing)
        if self.recipe is not None:
            from streamcut.io.opening import recipe_from  # NumPy, not needed for help and usage errors

            object.__setattr__(self, "recipe", recipe_from(self.recipe))
        for name in BY_RECIPE:
            if self.recipe is not None and self._differs(name):
                raise UsageError(f"{_flag(name)}: the recipe sets it already; leave it out")
        object.__setattr__(self, "memory", _bytes(self.memory))
        if isinstance(self.max_line_bytes, str):
            object.__setattr__(self, "max_line_bytes", parse_size(self.max_line_bytes, option="--max-line-bytes"))
        for name, value in {"memory": self.memory, "max_line_bytes": self.max_line_bytes}.items():
            if value is not None and value < 1:
                raise UsageError(f"{_flag(name)}: {value} bytes is not above 0; write for example 2GB")
        object.__setattr__(self, "feature_names", _feature_names(self.feature_names))
        if self.feature_names is not None:
            if self.hash_bits is not None or self.recipe is not None:
                raise UsageError("--feature-names: features that are hashed, or made by a recipe, have no names of their own")
            if self.n_features not in (None, len(self.feature_names)):
                raise UsageError(f"--feature-names: {len(self.feature_names):,} names for {self.n_features:,} features")
            object.__setattr__(self, "n_features", len(self.feature_names))

    def _differs(self, name: str) -> bool:
        """Whether an option is not at its default."""
        return getattr(self, name) != default_of(self, name)

    @property
    def spelling(self) -> Spelling:
        """How values of tables are written."""
        if self.recipe is not None and self.recipe.table is not None:
            return self.recipe.table.spelling
        return Spelling(self.header, missing_in(self.missing)[1])

    @property
    def sorting(self) -> bool:
        return self.shuffle is not None or self.group_by_qid

    @property
    def weighs_words(self) -> bool:
        """Whether texts have tf-idf weights."""
        return self.text_weights == "tfidf" or (self.text_weights == "auto" and self.hash_bits is None)

    @property
    def chooses_words(self) -> bool:
        """Whether some words of texts make no features."""
        return self.min_count > 1 or bool(self.stop_words)

    def side_files(self, kind: str) -> list[str]:
        """Separate files with labels, query ids and weights, for inputs of format `kind`, which cannot hold them."""
        labels = self.labels if self.labels_in_file(kind) else None
        return [path for path in (labels, self.qid, self.weights) if path is not None and FORMATS[kind].labels == "file"]

    def labels_in_file(self, kind: str) -> bool:
        """Whether --label names a separate file for inputs of format `kind`; "none": there are no labels."""
        return FORMATS[kind].labels == "file" and self.labels is not None and (self.labels != "none" or os.path.exists("none"))

    def require_meaning(self, kind: str) -> None:
        """Raise UsageError for an option that inputs of format `kind` cannot have, or for a required one that is missing."""
        form = FORMATS[kind]
        for name in options_of(self):
            kinds = kinds_with(name)
            if kinds and kind not in kinds and self._differs(name):
                raise UsageError(f"{_flag(name)} does not apply to {kind} input; it is for {', '.join(kinds)}")
        if form.labels != "rows" and self.labels is None:
            what = "a file with one label per row" if form.labels == "file" else "the name of the column with the labels"
            raise UsageError(f"--label is needed for {kind} input: {what}, or none for rows that are to be scored only")


def spelled(options: Mapping[str, object]) -> dict[str, Any]:
    """`options` of `convert` as fields of ConvertOptions. Raises UsageError for one that is given by both of its names."""
    names = {declared.flag: name for name, declared in options_of(ConvertOptions).items() if declared.flag}
    if twice := next((spelling for spelling, name in names.items() if {spelling, name} <= options.keys()), None):
        raise UsageError(f"{twice} and {names[twice]} are one option; give {twice}")
    return {names.get(name, name): value for name, value in options.items()}


def _flag(name: str) -> str:
    return flag(name, options_of(ConvertOptions)[name])


def _bytes(memory: int | str | None) -> int | None:
    if memory is None or memory == "auto":
        return None
    if isinstance(memory, int):
        return memory
    return parse_size(memory, option="--memory", total=memory_of_machine()[0])


def _text(value: str | os.PathLike, option: str, instead: str = "") -> str:
    """The text of the file that an option names, or of which it may name something else instead."""
    try:
        return read_file(value).decode("utf-8-sig")
    except OSError as error:
        what = f"{value!r} is neither {instead} nor a readable file" if instead else f"{os.fspath(value)}: cannot be read"
        raise NotFoundError(f"{option}: {what} ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{option}: {os.fspath(value)}: not UTF-8 ({error})") from None


def _feature_names(value: str | os.PathLike | Iterable[object] | None) -> tuple[str, ...] | None:
    """Names from a file with one a line, or from a sequence of them."""
    if value is None:
        return None
    if not isinstance(value, str | os.PathLike):
        return tuple(str(name) for name in value)
    names = _text(value, "--feature-names").splitlines()
    if not names or not all(name.strip() for name in names):
        line = next((number for number, name in enumerate(names, start=1) if not name.strip()), 1)
        raise UsageError(f"--feature-names: {os.fspath(value)}:{line}: no name on this line; write one line per feature")
    return tuple(name.strip() for name in names)


def _stop_words(value: str | os.PathLike | Iterable[object] | None) -> tuple[str, ...] | None:
    """Stop words, sorted, in lower case: the English list, those of a file, or these words."""
    if value is None or value == ():
        return None
    if value == "english":
        from streamcut.io.tables.texts import ENGLISH

        return tuple(sorted(ENGLISH))
    if not isinstance(value, str | os.PathLike):
        return tuple(sorted({str(word).strip().lower() for word in value}))
    words = _text(value, "--stop-words", "english").split()
    if not words:
        raise UsageError(f"--stop-words: {os.fspath(value)}: no words in it")
    return tuple(sorted({word.lower() for word in words}))


def _label_map(value: Mapping[str, float] | str | None) -> dict[str, float] | None:
    """{word: label} from `a=1,b=2`, from a file with one such pair a line, or from a mapping."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        pairs = [[str(word), str(label)] for word, label in value.items()]
    else:
        lines = value.split(",") if "=" in value else _text(value, "--label-map", "word=number,…").splitlines()
        pairs = [line.rsplit("=", 1) for line in lines if "=" in value or line.strip()]
    labels: dict[str, float] = {}
    for pair in pairs:
        try:
            word, label = pair[0].strip(), float(pair[1])
        except (IndexError, ValueError):
            raise UsageError(f"--label-map: {'='.join(map(str, pair))!r} is not word=number") from None
        if not math.isfinite(label):
            raise UsageError(f"--label-map: {word!r} becomes {label}; labels are finite numbers")
        if word in labels:
            raise UsageError(f"--label-map: {word!r} is given twice")
        labels[word] = label
    if not labels:
        raise UsageError("--label-map: no pair word=number")
    return labels
