"""Where files are, on disks and behind URLs: looked up, read, and written whole or not at all.

`remote.py` reads and writes objects of object stores; `outputs.py` puts a file in its place once it is complete. They import
the foundation. A new kind of place is a file here.
"""
