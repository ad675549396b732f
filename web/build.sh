#!/bin/sh
# build.sh SOURCE WORK NODE NPM PAGE MODEL DEPFILE: the page and its arithmetic alone (build.mjs), built from a copy in WORK, so that
# the source may be read-only. What npm brings stays in WORK until the lock file changes. HEAPGAUGE_NODE_MODULES may name another
# build's WORK/node_modules: it is used when it was made from the same lock file.
set -eu
source=$1 work=$2 node=$3 npm=$4 page=$5 model=$6 depfile=$7

mkdir -p "$work"
rm -rf "$work/src"
cp -R "$source/src" "$work/"
for file in package.json package-lock.json tsconfig.json build.mjs; do
	cp "$source/$file" "$work/"
done
chmod -R u+w "$work/src" "$work"/*.*

# made_from_lock DIRECTORY : was that node_modules made from our lock file?
made_from_lock() {
	cmp -s "$1/.lock-of-heapgauge" "$source/package-lock.json"
}

if ! made_from_lock "$work/node_modules"; then
	rm -rf "$work/node_modules"
	shared=${HEAPGAUGE_NODE_MODULES:-}
	if [ -n "$shared" ] && made_from_lock "$shared"; then
		ln -s "$(cd "$shared" && pwd)" "$work/node_modules"
	else
		(cd "$work" && "$npm" ci --ignore-scripts --no-audit --no-fund --prefer-offline --loglevel=error) >"$work/npm.log" 2>&1 || {
			tail -n 20 "$work/npm.log" >&2
			echo "npm could not fetch what the web page is built with (see above): the first build needs the network," \
				"or configure with -Dweb=disabled for a program without the page" >&2
			rm -rf "$work/node_modules"
			exit 1
		}
		cp "$source/package-lock.json" "$work/node_modules/.lock-of-heapgauge"
	fi
fi

"$node" "$work/build.mjs" "$page.new" --model "$model.new"
mv "$page.new" "$page"
mv "$model.new" "$model"
{
	printf '%s:' "$page"
	find "$source/src" -type f | sed 's/[ #\\]/\\&/g' | tr '\n' ' ' | sed 's/^/ /'
	echo
} >"$depfile"
