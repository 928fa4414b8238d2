"""Random lines of svmlight text, and whether both parsers agree on them."""

from __future__ import annotations

import random

ALPHABET = b"0123456789+-.eE: \t\n\r#qid,abx_\x00\xff"


VALID = b"""1 1:0.5 3:7e-3 20:-1.25 # doc
-1 qid:3 2:1 5:.5 4:3.
+1.5e0 qid:4 1:0 7:12345678901234567890123 8:1e-50

# comment
3:2 1:1 1:2
1,2 3:4\r
2"""


def random_line(generator: random.Random, qid: bool) -> bytes:
    tokens = [generator.choice([b"1", b"-1", b"1", b"-1", b"+1", b"2.5", b"1,2", b"ab", b"1:2"])]
    if qid:
        tokens.append(b"qid:%d" % generator.randrange(9))
    features = [generator.randrange(1, 13) for _ in range(generator.randrange(9))]
    if generator.random() < 0.7:
        features = sorted(set(features))
    values = [
        b"1",
        b"0",
        b"0.25",
        b"-7.",
        b"1e-60",
        b"3e38",
        b"0.1234567",
        b"12345678901234567890.5",
        b"9007199254740993.00000000000000000001",
    ]
    tokens += [b"%d:%s" % (index, generator.choice(values)) for index in features]
    line = bytearray(
        generator.choice([b" ", b" ", b"\t", b"  "]).join(tokens) + generator.choice([b"", b"", b" ", b"\r", b"# x", b"#\xff"])
    )
    if generator.random() < 0.3:
        at = generator.randrange(len(line) + 1)
        line[at : at + generator.randrange(3)] = bytes(generator.choices(ALPHABET.replace(b"\n", b""), k=generator.randrange(3)))
    return bytes(line)
