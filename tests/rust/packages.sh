# Sourced by tests that build Rust programs: always all of them together, in one place (TARGET). Cargo settles a dependency's features by who
# is built at once, and others would mean another jemalloc, a minute and a half of compiling each.
export CARGO_TARGET_DIR=$TARGET CARGO_BUILD_JOBS=2
# Half the time for jemalloc.
export CFLAGS='-O1 -g0'
# And a third of what is left: its Makefile would also compile a library that nobody links with, not position independent, and look for what
# each file includes.
export MAKEFLAGS='STATIC_LIBS=lib/libjemalloc_pic.a CC_MM='
rust_packages=(-p heapgauge -p heapgauge-tests -p heapgauge-axum -p shop -p stacks --features heapgauge-tests/original)

# In bindings/rust.
rust_build() {
	{ cargo fetch -q --locked --offline || cargo fetch -q --locked; } &&
		cargo build -q --locked --offline --profile checked "${rust_packages[@]}"
}
