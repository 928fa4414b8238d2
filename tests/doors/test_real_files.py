"""Tables as people have them: each is read with the right columns, or refused with the cause and a way on.

A row of a table here: the file, the options of `convert`, what it says (patterns), and its exit code.
"""

from __future__ import annotations

import gzip
import json
import os
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamcut

READ, USAGE, BAD = 0, 2, 3
rng = np.random.default_rng(7)
AGES, INCOMES = rng.integers(18, 80, 200), rng.normal(50, 9, 200).round(2)
HALF = (1 << 20) * 11 // 10  # bytes: more than types are guessed from


def rows(*columns, names="", between=",", y=True) -> str:
    """The rows of these columns below `names`, each with a label y before it."""
    listed = zip(*([[i % 2 for i in range(len(columns[0]))]] if y else []), *columns, strict=True)
    return (f"{names}\n" if names else "") + "".join(between.join(map(str, row)) + "\n" for row in listed)


def sometimes(word: str, every: int) -> list:
    return [word if i % every == every - 1 else age for i, age in enumerate(AGES)]


def long(begin: str, row: str, end: str) -> str:
    return begin + row * (HALF // len(row)) + end


def check(run, folder, name, content, options, patterns, code=READ):
    """`convert` ends so and says so; where it refuses, nothing is left behind. Returns what it said."""
    path = folder / name
    content = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(content, 1) if name.endswith(".gz") else content)
    before = sorted(os.listdir(folder))
    found, _, said = run("convert", path, folder / "out.zarr", *options.split())
    assert found == code, said
    assert "Traceback" not in said
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        assert re.search(pattern, said), said
    if code != READ:
        assert sorted(os.listdir(folder)) == before
    return said


NUMBERS = rows(INCOMES, AGES * 1.5, AGES - 0.25)
HIGGS = "1.0e+00,9.47e-01,1.55e+00\n" + rows(INCOMES, AGES - 30.5)
CRITEO = rows(AGES, [""] * 200, rng.integers(0, 9, 200), rng.choice(["68fd1e64", "80e26c9b", ""], 200), between="\t")
ADULT = rows(
    AGES,
    rng.choice([" State-gov", " Private"], 200),
    rng.integers(10**4, 10**5, 200),
    rng.choice([" <=50K", " >50K"], 200),
    y=False,
)
MUSHROOMS = rows(*(rng.choice(list("psxn"), 200) for _ in range(5)), y=False)
NAMES = r"the first line looks like a row \(.*write names above it, or convert with --no-header"


@pytest.mark.parametrize(
    ("name", "content", "label"),
    [
        ("higgs.csv", HIGGS, "0"),
        ("criteo.tsv", CRITEO, "0"),
        ("adult.csv", ADULT, "3"),
        ("mushrooms.csv", MUSHROOMS, "0"),
        ("marked.csv", "\ufeff" + HIGGS, "0"),
        ("one_row.csv", "1,0.5,2.5\n", "0"),
    ],
)
def test_a_first_line_of_data_is_refused_and_read_without_names(run, tmp_path, name, content, label):
    check(run, tmp_path, name, content, f"--label {label}", NAMES, BAD)
    count = content.count("\n")
    said = check(run, tmp_path, name, content, f"--label {label} --no-header", f"{count} rows|1 rows")
    assert f"labels: {label}" in said


@pytest.mark.parametrize(
    ("names", "note"),
    [
        ("y,1990,1991,1992", False),
        ("y,age,income,2.5", False),
        ("0,1,2,3", True),
        ("2001,2000,1999,1998", True),
        ("yes,a,b,c", False),
    ],
)
def test_names_that_are_numbers_are_names_where_they_count(run, tmp_path, names, note):
    said = check(run, tmp_path, "t.csv", f"{names}\n{NUMBERS}", f"--label {names.split(',')[0]}", "200 rows")
    assert ("if it is a row: --no-header" in said) == note


def test_a_model_of_columns_without_names_reads_such_files(run, tmp_path):
    check(run, tmp_path, "train.csv", HIGGS, "--label 0 --no-header", "201 rows")
    assert run("train", tmp_path / "out.zarr", "-o", tmp_path / "m.npz", "-q")[0] == 0
    (tmp_path / "test.csv").write_text(rows(INCOMES, AGES - 30.5))
    code, found, said = run("predict", tmp_path / "m.npz", tmp_path / "test.csv")
    assert (code, len(found.splitlines())) == (0, 200), said
    (tmp_path / "named.csv").write_text("0,1,2\n" + rows(INCOMES, AGES - 30.5))  # pandas writes such names
    assert run("predict", tmp_path / "m.npz", tmp_path / "named.csv")[:2] == (0, found)
    (tmp_path / "short.csv").write_text(rows(INCOMES, AGES - 30.5, y=False))
    code, _, said = run("predict", tmp_path / "m.npz", tmp_path / "short.csv")
    assert code == BAD
    assert "2 columns without names, but it takes 3" in said


def test_a_file_to_predict_without_names_is_refused(run, tmp_path):
    check(run, tmp_path, "train.csv", "y,a,b\n" + rows(INCOMES, AGES - 30.5), "--label y", "200 rows")
    assert run("train", tmp_path / "out.zarr", "-o", tmp_path / "m.npz", "-q")[0] == 0
    (tmp_path / "test.csv").write_text(rows(INCOMES, AGES - 30.5))
    code, _, said = run("predict", tmp_path / "m.npz", tmp_path / "test.csv")
    assert code == BAD
    assert re.search(NAMES, said), said


NUMERIC = r"x +numeric"
ODD = r"'x' are numbers, but that of row \d+ \(0-based\) is '{}'; say --missing {} if .*--numeric x .*--categorical x"


@pytest.mark.parametrize("every", [3, 6, 40])
@pytest.mark.parametrize("word", ["?", "None", "NULL", "NA", "<NA>", "NaT", r"\N", "nan", ""])
def test_usual_spellings_of_a_missing_number_are_known(run, tmp_path, word, every):
    said = check(
        run, tmp_path, "t.csv", rows(sometimes(word, every), names="y,x"), "--label y", [NUMERIC, "200 rows, 2 features"]
    )
    assert "note" not in said


@pytest.mark.parametrize("every", [6, 40])
@pytest.mark.parametrize("word", ["unknown", "-", "n.a."])
def test_other_spellings_are_asked_for_and_given(run, tmp_path, word, every):
    content = rows(sometimes(word, every) if every == 40 else [word if i % 6 == 5 else i / 7 for i in range(200)], names="y,x")
    check(run, tmp_path, "t.csv", content, "--label y", ODD.format(re.escape(word), re.escape(word)), USAGE)
    check(run, tmp_path, "t.csv", content, f"--label y --missing={word}", [NUMERIC, "200 rows, 2 features"])
    check(run, tmp_path, "t.csv", content, f"--label y --missing=zero,{word} --force", [NUMERIC, "200 rows, 1 features"])


def test_spellings_of_missing_values_hold_for_all_columns_containers_and_predictions(run, tmp_path):
    kind, size = ["cod", "unknown", "eel", "cod"] * 50, [1.5, -999, 2.5, 4.0] * 50
    frame = pd.DataFrame({"y": ["a", "b", "unknown", "b"] * 50, "kind": kind, "size": size})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    features = {}
    for kind in ("csv", "parquet", "jsonl"):
        given = ("--label", "y", "--missing", "unknown,-999", "--missing-labels", "skip", "--dry-run", "--json")
        code, found, said = run("convert", tmp_path / f"t.{kind}", tmp_path / "o.zarr", *given)
        assert code == 0, said
        features[kind] = json.loads(found)["rows"]
    assert features["csv"] == features["parquet"] == features["jsonl"]
    assert features["csv"][1]["features"] == {"kind is missing": 1.0, "size is missing": 1.0}
    given = {"missing": "unknown,-999", "missing_labels": "skip"}
    streamcut.convert(tmp_path / "t.csv", tmp_path / "t.zarr", label="y", **given)
    model = streamcut.train(tmp_path / "t.zarr")
    one = [{"kind": "unknown", "size": -999}, {"kind": None, "size": None}]
    scores = streamcut.predict(model, one, answer="scores")
    assert scores[0] == scores[1] == streamcut.predict(model, tmp_path / "t.csv", answer="scores")[1]


def test_two_ways_to_take_missing_values_exclude_each_other(run, tmp_path):
    check(
        run, tmp_path, "t.csv", rows(AGES, names="y,x"), "--label y --missing own,zero", "--missing: own and zero exclude", USAGE
    )


EMPTY = r"no value of column x is in the first [\d,]+ rows.*--numeric x or --categorical x, or leave it out: --drop x"


@pytest.mark.parametrize("nothing", ["", "NA", "?"])
@pytest.mark.parametrize("options", ["", "--numeric x", "--drop x"])
def test_a_column_whose_values_come_late_is_asked_for(run, tmp_path, nothing, options):
    content = long("y,a,x\n", f"0,word,{nothing}\n1,other,{nothing}\n", "1,word,2.5\n0,word,-1\n")
    said = check(run, tmp_path, "t.csv.gz", content, f"--label y {options}", "" if options else EMPTY, READ if options else USAGE)
    assert bool(re.search(NUMERIC, said)) == (options == "--numeric x")


def test_a_column_empty_to_the_end_of_a_small_file_is_no_error(run, tmp_path):
    check(run, tmp_path, "t.csv", rows(AGES, [""] * 200, names="y,x,z"), "--label y", "'z' is constant")


LATE = r"row {} \(0-based\) is the first with the key 'x', too late to guess its type; .*--numeric x or --categorical x.*--drop x"


@pytest.mark.parametrize("options", ["", "--numeric x", "--drop x", "--drop x,pad"])
def test_a_key_that_first_occurs_late_is_asked_for(run, tmp_path, options):
    begin = '{"y": 0, "a": "v", "pad": 1}\n{"y": 1, "a": "w", "pad": 1}\n'
    content = long("", begin, '{"y": 0, "a": "v", "pad": "text"}\n' * ("pad" in options) + '{"y": 1, "a": "v", "x": 2.5}\n')
    late = LATE.format(content.count("\n") - 1)
    said = check(run, tmp_path, "t.jsonl.gz", content, f"--label y {options}", "" if options else late, READ if options else BAD)
    assert bool(re.search(NUMERIC, said)) == ("--numeric" in options)


def test_a_late_key_is_found_where_other_keys_that_are_not_read_change_their_type(run, tmp_path):
    row = '{"y": 0, "a": "v", "z": 1}\n{"y": 1, "a": "w", "z": 1}\n'
    content = long("", row, '{"y": 0, "a": "v", "z": "text"}\n{"y": 1, "a": "v", "x": [1]}\n')
    check(run, tmp_path, "t.jsonl.gz", content, "--label y --drop z", LATE.format(content.count("\n") - 1), BAD)


def test_a_column_that_no_row_of_a_file_has_is_refused(run, tmp_path):
    content = "".join(f'{{"y": {i % 2}, "a": {i / 4}}}\n' for i in range(200))
    check(run, tmp_path, "t.jsonl", content, "--label y --numeric b", "no column 'b'; it has y, a", USAGE)


def test_an_absent_key_is_a_missing_value(run, tmp_path):
    some = [{"y": i % 2, "a": "vw"[i % 3 == 0], "x": i % 7 + 0.5} for i in range(120)]
    lines = [json.dumps({name: value for name, value in row.items() if name != "x" or i % 5}) for i, row in enumerate(some)]
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    model = streamcut.train(tmp_path / "t.jsonl", label="y")
    given = streamcut.predict(model, [{"a": "v", "x": None}], answer="scores")
    np.testing.assert_array_equal(streamcut.predict(model, [{"a": "v"}], answer="scores"), given)
    np.testing.assert_array_equal(streamcut.predict(model, {"a": "v"}, answer="scores"), given)
    (tmp_path / "new.jsonl").write_text('{"a": "v", "other": 1}\n')
    np.testing.assert_array_equal(streamcut.predict(model, tmp_path / "new.jsonl", answer="scores"), given)
    (tmp_path / "typo.jsonl").write_text('{"a": "v", "X": 1}\n')
    with pytest.raises(streamcut.errors.BadInputError, match="no column 'x' \\(is 'X' meant"):
        streamcut.predict(model, tmp_path / "typo.jsonl")
    with pytest.raises(streamcut.errors.BadInputError, match="no column"):
        streamcut.predict(model, [{"other": "v"}])
    with pytest.raises(streamcut.errors.BadInputError, match="no column 'x'"):
        streamcut.predict(model, pd.DataFrame({"a": ["v"]}))


def test_a_file_of_several_may_lack_a_key_but_not_have_another(run, tmp_path):
    (tmp_path / "1.jsonl").write_text('{"y": 0, "a": "v", "x": 1}\n{"y": 1, "a": "w", "x": 2}\n')
    (tmp_path / "2.jsonl").write_text('{"y": 0, "a": "v"}\n')
    out = tmp_path / "o.zarr"
    code, _, said = run("convert", tmp_path / "1.jsonl", tmp_path / "2.jsonl", out, "--label", "y")
    assert code == 0, said
    assert "3 rows" in said
    code, _, said = run("convert", tmp_path / "2.jsonl", tmp_path / "1.jsonl", out, "--label", "y", "--force")
    assert code == BAD
    assert re.search(r"1\.jsonl has 'x', .*2\.jsonl does not .*--numeric x.*--drop x", said), said
    code, _, said = run("convert", tmp_path / "2.jsonl", tmp_path / "1.jsonl", out, "--label", "y", "--force", "--numeric", "x")
    assert code == 0, said


LONG = rng.integers(10**9, 10**10, 200)
IDENTIFIER = r"column 'n': looks like an identifier; left out \({}--categorical n takes it\)"


@pytest.mark.parametrize(
    "values",
    [
        [f"{a}{b}" for a, b in zip(LONG, LONG, strict=True)],  # 20 digits
        [f"{a}{b % 10**8}" for a, b in zip(LONG, LONG, strict=True)],  # as many as int64 has
        [f"{a}{b}" if i % 9 else "" for i, (a, b) in enumerate(zip(LONG, LONG, strict=True))],
        [f"{10**19 + i % 4}" for i in range(200)],  # few
    ],
)
def test_numbers_of_too_many_digits_are_identifiers(run, tmp_path, values):
    content = rows(values, AGES, names="y,n,x")
    said = check(run, tmp_path, "t.csv", content, "--label y", [IDENTIFIER.format(""), "200 rows, 1 features"])
    assert not re.search("n +numeric", said)
    code, found, said = run(
        "convert", tmp_path / "t.csv", tmp_path / "o.zarr", "--label", "y", "--categorical", "n", "--dry-run", "--json"
    )
    assert code == 0, said
    assert f"n={values[1]}" in json.loads(found)["rows"][1]["features"]


def test_long_numbers_in_json_are_no_categories_as_they_lose_digits(run, tmp_path):
    content = "".join(f'{{"y": {i % 2}, "n": 1234567890123456{i:04d}, "x": {i / 4}}}\n' for i in range(200))
    check(run, tmp_path, "t.jsonl", content, "--label y", [IDENTIFIER.format(""), "1 features"])
    said = "column 'n' holds more digits than a number keeps; write its values as texts"
    check(run, tmp_path, "t.jsonl", content, "--label y --categorical n --force", said, BAD)


@pytest.mark.parametrize("values", [LONG.astype(float), [float(each) if i % 9 else None for i, each in enumerate(LONG)]])
def test_identifiers_that_became_floats_are_left_out(run, tmp_path, values):
    pq.write_table(pa.table({"y": [0, 1] * 100, "user_id": values, "x": AGES}), tmp_path / "f.parquet")
    code, _, said = run("convert", tmp_path / "f.parquet", tmp_path / "o.zarr", "--label", "y")
    assert code == 0, said
    assert "'user_id': looks like an identifier; left out (--numeric user_id or --categorical user_id takes it)" in said


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([f"{age:05d}" for age in AGES], r"'x': '000\d\d' is taken as a number, without the zeros before it \(--categorical x"),
        ([f"{age % 12:02d}" for age in AGES], r"'x': '0\d' is taken as a number"),
        ([f"{age % 4 / 10:.1%}" for age in AGES], r"'x': numbers such as '\d+.0%' have to be plain.*each is taken as a category"),
        ([f"${age % 4},000" for age in AGES], r"'x': numbers such as '\$\d,000' have to be plain"),
        ([f"({age % 4}.50)" if i % 5 else "NA" for i, age in enumerate(AGES)], r"'x': numbers such as '\(\d.50\)'"),
        ([f"€ {i}.25" for i in range(200)], r"'x': numbers such as '€ 0.25' have to be plain.*left out"),
    ],
)
def test_one_remark_for_a_guess_against_the_look(run, tmp_path, values, said):
    content = pd.DataFrame({"y": [0, 1] * 100, "x": values, "z": INCOMES}).to_csv(index=False)
    found = check(run, tmp_path, "t.csv", content, "--label y", said)
    assert found.count("column 'x'") == 1
    assert "column 'z'" not in found


def test_zero_alone_needs_no_remark(run, tmp_path):
    assert "note" not in check(run, tmp_path, "t.csv", rows([0, 0.5, 10, -0.25] * 50, names="y,x"), "--label y", NUMERIC)


@pytest.mark.parametrize("inches", range(6))
def test_quotes_inside_values_are_part_of_them(run, tmp_path, inches):
    words = ['8" pipe' if i < inches else "valve" for i in range(200)]
    check(run, tmp_path, "t.csv", rows(words, names="y,item"), "--label y", f"200 rows, {2 if inches else 1} features")


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_quote_that_is_never_closed_is_refused(run, tmp_path, end):
    content = rows(['"open' if i == 190 else "valve" for i in range(200)], names="y,item").rstrip("\n") + end
    check(run, tmp_path, "t.csv", content, "--label y", "a quote at the beginning of a value is never closed", BAD)


SEMICOLONS = rows([f"{value}".replace(".", ",") for value in INCOMES], names="y;x", between=";")


@pytest.mark.parametrize(
    ("content", "patterns", "code"),
    [
        (f"sep=;\n{SEMICOLONS}", ["200 rows", NUMERIC], READ),
        (f"\ufeffSEP=;\r\n{SEMICOLONS}", ["200 rows", NUMERIC], READ),
        (f"sep=|\n{rows(AGES, names='y|x', between='|')}", ["200 rows", NUMERIC], READ),
        (rows(AGES, names="y,x").encode("utf-16"), "text in UTF-16; convert it with: iconv -f UTF-16 -t UTF-8", BAD),
        (b"\xfe\xff" + rows(AGES, names="y,x").encode("utf-16-be"), "text in UTF-16", BAD),
        (rows(AGES, names="y,x").encode("utf-16-le"), "no text: it holds zero bytes", BAD),
        (rows(["Gruß"] * 200, names="y,x").encode("latin-1"), r"row 0 \(0-based\), column 'x': not UTF-8; .*iconv", BAD),
    ],
)
def test_texts_of_spreadsheets(run, tmp_path, content, patterns, code):
    check(run, tmp_path, "t.csv", content, "--label y", patterns, code)


UNNAMED = "column '{}': has no name; left out"


@pytest.mark.parametrize(("names", "name"), [(",y,x", ""), ("y, ,x", " "), ('y,x,""', "")])
def test_a_column_without_a_name_is_left_out(run, tmp_path, names, name):
    said = check(run, tmp_path, "t.csv", rows([i % 2 for i in range(200)], AGES, names=names), "--label y", UNNAMED.format(name))
    assert run("train", tmp_path / "out.zarr", "-o", tmp_path / "m.npz", "-q")[0] == 0, said
    assert run("predict", tmp_path / "m.npz", tmp_path / "t.csv")[0] == 0


def test_the_index_of_a_frame_that_occurs_again_is_left_out(run, tmp_path):
    frame = pd.DataFrame({"a": list("xyzw") * 50, "b": np.arange(200) % 7 + 0.5, "y": ["yes", "no"] * 100})
    frame = frame.sample(60, random_state=1, replace=True)
    check(run, tmp_path, "t.csv", frame.to_csv(), "--label y", [UNNAMED.format(""), "60 rows, 5 features"])
    assert run("train", tmp_path / "out.zarr", "-o", tmp_path / "m.npz", "-q")[0] == 0
    assert run("info", tmp_path / "out.zarr")[0] == 0


def test_the_same_for_a_frame_and_for_parquet(tmp_path):
    table = pa.table({"": [1, 2] * 60, "a": list("xy") * 60, "y": [0, 1, 1] * 40})
    pq.write_table(table, tmp_path / "t.parquet")
    for place, data in (("frame", table), ("parquet", tmp_path / "t.parquet")):
        with pytest.warns(UserWarning, match=UNNAMED.format("")):
            streamcut.convert(data, tmp_path / f"{place}.zarr", label="y")
        assert streamcut.train(tmp_path / f"{place}.zarr").n_features == 2


def test_labels_that_become_three_classes_are_said(run, tmp_path):
    (tmp_path / "1.svm").write_text("1 1:1\n0 2:1\n" * 20)
    (tmp_path / "2.svm").write_text("1 1:1\n-1 2:1\n" * 20)
    code, _, said = run("convert", tmp_path / "1.svm", tmp_path / "2.svm", tmp_path / "o.zarr")
    assert code == 0
    assert "note: labels are -1, 0 and 1: three classes; if 0 and -1 are one, make them the same in all inputs" in said
    code, _, said = run("convert", tmp_path / "1.svm", tmp_path / "p.zarr")
    assert "note" not in said
    assert "note" not in check(run, tmp_path, "3.svm", "1 1:1\n0 2:1\n-1 3:1\n", "", "labels -1: 1, 0: 1, 1: 1")
