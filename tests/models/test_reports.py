"""Reports: the page says what the model's JSON says, asks for nothing from outside, and its command trains the same model."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys

import kit.shared.reports
from kit.shared.reports import _Page

stores = kit.shared.reports.stores


def test_the_commands(stores, tmp_path, run):
    data, validation = stores
    model, page = tmp_path / "m.npz", tmp_path / "m.html"
    assert run("train", data, "--output", model, "--quiet")[0] == 0
    assert run("report", model, "-o", page, "--quiet")[0] == 0
    assert shlex.quote(data) in page.read_text()
    assert run("report", model, "-o", page)[0] == 2, "it exists"
    code, _, err = run("report", model, "-o", page, "--force", "--data", validation, "--plots", tmp_path / "plots")
    assert code == 0
    assert "plots written" in err
    files = sorted(path.name for path in (tmp_path / "plots").iterdir())
    assert {"roc.svg", "roc.png", "gap.svg", "sides.png", "traffic.png"} <= set(files)
    assert (tmp_path / "plots" / "roc.png").read_bytes().startswith(b"\x89PNG")
    assert run("report", model, "--plots", tmp_path / "plots")[0] == 2, "not empty"
    assert run("report", model)[0] == 2
    numbers = json.loads(_Page(page.read_text()).numbers)
    code, out, _ = run("evaluate", model, validation, "--json")
    assert numbers["measures"] == json.loads(out)


def test_without_matplotlib_it_says_what_to_install(stores, tmp_path):
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from streamcut.cli import main\n"
        f"main(['train', {stores[0]!r}, '-o', {str(tmp_path / 'm.npz')!r}, '--folds', '2', '--plot', 'm.svg'])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'streamcut[plots]'" in done.stderr
    assert not (tmp_path / "m.npz").exists(), "nothing was trained in vain"
