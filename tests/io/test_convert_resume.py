"""A conversion that dies at any moment leaves nothing under a final name, and --resume ends with the same bytes."""

import kit.shared.convert_resume
import pytest
from kit.shared.convert_resume import finals

from streamcut import convert
from streamcut.errors import UsageError

text = kit.shared.convert_resume.text


pytestmark = [pytest.mark.smoke, pytest.mark.process]


def test_resume_of_what_is_complete_changes_nothing(text, tmp_path):
    convert(text, tmp_path / "a.zarr")
    before = finals(tmp_path)
    report = convert(text, tmp_path / "a.zarr", resume=True)
    assert report.complete_before == [str(tmp_path / "a.zarr")]
    assert report.rows == 0
    assert finals(tmp_path) == before
    with pytest.raises(UsageError, match="made from other data or with other options"):
        convert(text, tmp_path / "a.zarr", resume=True, keep_zeros=True)
