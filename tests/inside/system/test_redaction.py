"""No spelling of a secret in an address is shown."""

from __future__ import annotations

import pytest

from streamcut.errors import StreamcutError
from streamcut.foundation.redaction import redacted

SECRET = "hunter2SECRET"
SPELLINGS = [
    "https://{}@host/a.csv", "https://user:{}@host/a.csv", "https://:{}@host/a",
    "https://user:{}/x{}@host/a", "https://user:{} {}@host/a",
    "https://user:{}?{}@host/a", "https://user:{}#{}@host/a", "https://user:a@{}@host/a",
    "ftp://user:{}@host/a", "sftp://{}@host:22/a",
    "https://host/a?pwd={}", "https://host/a?pass={}", "https://host/a?password={}&page=2",
    "https://host/a?access={}", "https://host/a?code={}",
    "https://host/a?jwt={}", "https://host/a?X-Amz-Signature={}", "https://host/a?sv=2020&sig={}",
    "https://host/a?AWSAccessKeyId={}", "https://host/a?id={}",
    "https://host/a?p%61ss={}", "https://host/a?TOKEN={}", "https://host/a?page=2&amp;token={}",
    "https://host/a#token={}", "https://host/a#access_token={}&x=1",
    "https://host/a?{}", "https://host/a#{}", "https://host/a;jsessionid={}",
    "https://host/a?next=https://other/b&auth={}", "zip://a.csv::https://u:{}@host/a.zip",
    "s3://{}:{}@bucket/a", "abfss://box:{}@account.net/a", "https://host/a?q='{}'",
    "https://host/a?token={}", "https://u:{}@[::1]:9000/a",
]  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("around", ["{}", "{}: no such file", "cannot open '{}', nor", "({})", "a https://x/y and {}; try again"])
def test_no_spelling_of_a_secret_is_shown(spelling, around):
    said = around.format(spelling.format(SECRET, SECRET))
    assert "SECRET" not in redacted(said)
    assert "SECRET" not in str(StreamcutError(said))
    assert redacted(redacted(said)) == redacted(said)
