"""What tests/io/test_convert_cli.py and tests/inside/io/test_convert_cli.py share."""

import pytest
from reference.rows import make_rows, write_svmlight


@pytest.fixture
def text(tmp_path):
    return write_svmlight(tmp_path / "a.svm", make_rows(300, 1, groups=6))
