#!/bin/sh
# The built page goes into a release's tarball: building from that needs no Node.
set -eu
ninja -C "$MESON_BUILD_ROOT" web/page.html
cp "$MESON_BUILD_ROOT/web/page.html" "$MESON_DIST_ROOT/web/page.html"
