"""In a notebook: plain lines while training goes, an interrupt that costs nothing, answers that show themselves."""

from __future__ import annotations

import threading

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

SETUP = """
import numpy as np, streamcut

rng = np.random.default_rng(0)
data = streamcut.rows(rng.standard_normal((20000, 30)), np.where(rng.random(20000) < 0.5, 1.0, -1.0))
streamcut.train(data, max_passes=2).converged
"""
FOREVER = """
def begun(record):
    if record.iteration == 2:
        print("begun", flush=True)
model = streamcut.train(data, C=1e6, tol=1e-13, tol_relative=None, progress=True, on_iteration=begun)
model.stop_reason
"""


def test_an_interrupt_keeps_the_model(tmp_path):
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in (SETUP, FOREVER, "model.n_features")])
    interrupted = threading.Event()

    class Client(nbclient.NotebookClient):
        def process_message(self, message, cell, index):
            if "begun" in str(message.get("content", {}).get("text", "")) and not interrupted.is_set():
                interrupted.set()
                self.kc.control_channel.send(self.kc.session.msg("interrupt_request"))
            return super().process_message(message, cell, index)

    Client(book, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert interrupted.is_set()
    _, trained, after = book.cells
    printed = "".join(each.get("text", "") for each in trained.outputs)
    assert "primal" in printed
    assert "\x1b[" not in printed
    assert "the model is the best so far" in printed
    assert "interrupted" in str(trained.outputs[-1]["data"])
    assert after.outputs[0]["data"]["text/plain"] == "30"
