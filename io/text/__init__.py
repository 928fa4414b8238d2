"""svmlight text: finding and decompressing files, and parsing them strictly, in parallel, at memory speed.

`inputs.py` and `decompress.py` open files, `blocks.py` cuts them at line ends and parses blocks with the compiled `kernels.py`
and `number_kernels.py` for `svmlight.py`, `messages.py` explains errors. A new text format is a parser next to
`svmlight.py` and its record in streamcut.io.formats.
"""
