# shellcheck shell=sh
# Packages of node that make the page, and viewers for tests.  To be sourced
# with the repository's root as the current directory, after common.sh.

NODE_TOOLS=build/viewers

make_node_tools() {
    cmp -s Tools/test/package.json "$NODE_TOOLS/package.json" && return
    have npm || die "npm is missing: \"./configure --install-deps\" installs it."
    make_build
    rm -rf "$NODE_TOOLS" "$NODE_TOOLS.new"
    mkdir -p "$NODE_TOOLS.new"
    cp Tools/test/package.json "$NODE_TOOLS.new"
    npm install --prefix "$NODE_TOOLS.new" --silent --no-audit --no-fund \
        --no-package-lock ||
        die "npm could not install what Tools/test/package.json lists (its" \
            "messages are above). Check the network and npm's" \
            "configuration, then try again."
    mv "$NODE_TOOLS.new" "$NODE_TOOLS"
}
