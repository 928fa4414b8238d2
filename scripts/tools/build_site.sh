#!/usr/bin/env bash
# The site in build/site, from docs/ and the declarations of options; every link is checked, and that no page loads anything from
# elsewhere. PYTHON names the interpreter, which needs streamcut with its extra `dev`.
set -euo pipefail
cd "$(dirname "$0")/../.."
rm -rf build/package && mkdir -p build/package/streamcut  # io/ is imported as streamcut.io: one tree for what reads docstrings
ln -s "$PWD"/streamcut/* "$PWD/io" build/package/streamcut
NO_MKDOCS_2_WARNING=1 "${PYTHON:-python}" -P -m mkdocs build --strict --quiet
python=${PYTHON:-python}
"$python" -P - build/site <<'END'
import re
import sys
from pathlib import Path

pages = [*Path(sys.argv[1]).rglob("*.html"), *Path(sys.argv[1]).rglob("*.css")]
loads = re.compile(r"""(?:<(?:script|img|iframe|source)\b[^>]*\bsrc=|<link\b[^>]*\brel="?(?:stylesheet|preload|preconnect|icon)[^>]*\bhref=|url\(|@import )["']?https?://[^"') >]*""")
loaded = sorted({f"{page}: {load}" for page in pages for load in loads.findall(page.read_text("utf-8"))})
if loaded:
    raise SystemExit("loaded from elsewhere:\n" + "\n".join(loaded))
print(f"{len(pages)} pages in {sys.argv[1]}")
END
