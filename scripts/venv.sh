# Sourced by the other scripts: find a Python, and make a virtual environment that is rebuilt only when it must be.

find_python() {  # prints the first Python ≥ 3.11 that can make virtual environments
    local candidate
    for candidate in python3.13 python3.12 python3.11 python3 python3.14; do
        if "$candidate" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "No Python 3.11 or newer with its venv module was found on PATH; install one (Debian: python3 and python3-venv)." >&2
    return 1
}

make_venv() {  # make_venv FOLDER PIP-ARGUMENTS…: as it is when pyproject.toml, the arguments and this folder did not change
    local folder=$1 python stamp
    shift
    stamp="$PWD $* $(cksum <pyproject.toml)"
    if [ "$(cat "$folder/stamp" 2>/dev/null)" = "$stamp" ]; then
        return
    fi
    python=$(find_python)
    echo "Making $folder with $("$python" --version); this takes a minute …"
    rm -rf "$folder"
    "$python" -m venv "$folder"
    "$folder/bin/python" -m pip install -qq --disable-pip-version-check "$@"
    echo "$stamp" >"$folder/stamp"
}
