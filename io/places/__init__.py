"""Where files are, on disks and behind URLs: asked for, read, and written whole or not at all.

`remote.py` reads and writes objects of object stores, with `answers.py` for servers that are slow or gone; `outputs.py` puts a
file in its place once it is complete; `archives.py` reads arrays from files that strangers may have written. They import the
foundation. A new kind of place is a file here.
"""
