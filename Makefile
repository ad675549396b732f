# A few words for people who type make; the build itself is Meson's (meson.build).
# `make demo` and `make check` install what they need first; `make DEPS=no ...` never does.

DEPS ?= yes
BUILD = build
PREFIX ?= /usr/local
# What another make put into MAKEFLAGS must not reach ninja or meson.
unexport MAKEFLAGS MAKELEVEL

all: deps-build $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet
	@ln -sfn src/cli/heapgauge $(BUILD)/heapgauge

$(BUILD)/build.ninja:
	meson setup $(BUILD) --prefix=$(PREFIX) -Dtests=disabled

deps-%:
	@scripts/install-deps $(DEPS) $(subst +, ,$*)

demo: deps-build+demo all
	@scripts/demo

check: deps-build+check+demo
	@scripts/check full

check-quick: deps-build+check
	@scripts/check quick

bench: deps-build+bench all
	@scripts/bench

# Names for addresses, on big binaries that are built first: hours the first time.
bench-symbol: deps-build+bench+symbol all
	@scripts/bench-symbol

# Each reader for FUZZ_SECONDS, or those named: make fuzz FUZZ=pprof
FUZZ ?= $(patsubst fuzz/fuzz_%.c,%,$(wildcard fuzz/fuzz_*.c))
FUZZ_SECONDS ?= 60
fuzz: deps-build+fuzz
	@set -e; for name in $(FUZZ); do fuzz/run.sh $$name $(FUZZ_SECONDS); done

# make install PREFIX=/usr DESTDIR=/somewhere
install: all
	@meson configure $(BUILD) --prefix=$(PREFIX) && ninja -C $(BUILD) --quiet
	meson install -C $(BUILD) --no-rebuild

clean:
	rm -rf $(BUILD) build-check-gcc build-check-clang build-check-tools build-fuzz demo

.PHONY: all demo check check-quick bench bench-symbol fuzz install clean
