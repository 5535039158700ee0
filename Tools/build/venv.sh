# shellcheck shell=sh
# Virtual environments made from the built interpreter.  Sourced; needs
# common.sh and $PYTHON.

# make_venv DIRECTORY REQUIREMENTS: does nothing if the environment already
# holds exactly these requirements and its interpreter still runs.
make_venv() {
    venv_stamp=$1/.requirements
    if cmp -s "$2" "$venv_stamp" && [ "$1/bin/python" -ef "$PYTHON" ] &&
        "$1/bin/python" -c '' 2>/dev/null
    then
        return
    fi
    rm -rf "$1"
    "$PYTHON" -m venv "$1" ||
        die "$PYTHON cannot make a virtual environment in $1 (its messages" \
            "are above). If a module is missing, run \"./configure" \
            "--install-deps\" as root, then \"make clean\" and \"make\"."
    "$1/bin/python" -m pip install -q --disable-pip-version-check \
        -r "$2" ||
        die "pip could not install what $2 lists into $1 (its messages are" \
            "above). Check the network and pip's configuration, then try" \
            "again."
    cp "$2" "$venv_stamp"
}
