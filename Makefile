# Thin entrances over meson and ninja. Each target first installs what it lacks (tools/install-deps)
# and says so; with nothing missing that takes milliseconds.

WS ?= .
DESTDIR ?=
# Options for `meson setup`, read when build/ is made.
MESON_OPTIONS ?=

.DEFAULT_GOAL := build
.PHONY: build deps demo check check-long check-vm lint bench fuzz install clean run-claude up logs help

help:
	@sed -n 's/^#? //p' $(MAKEFILE_LIST)

#? make              build build/warden and its helpers
build: build/build.ninja
	@ninja -C build programs

build/build.ninja:
	@tools/install-deps build
	@meson setup build $(MESON_OPTIONS)

#? make demo         watch an agent work in a cell inside the lab, each claim checked
demo: build
	@tools/install-deps check
	@tools/demo

#? make check        all tests that a change must pass; ARGS are test/run's own (-k PATTERN, -v, ...)
check:
	@tools/install-deps build check
	@tools/install-agents || echo "make check: without them the tests of real agents are skipped"
	@test/run $(ARGS)

#? make check-long   the tests that take long: doc/TESTING.md lists them
check-long:
	@tools/install-deps build check bench fuzz vm
	@test/run --long $(ARGS)

#? make check-vm     the tests that want a machine of their own: systemd, cgroup v2, logins
check-vm:
	@tools/install-deps build check vm
	@test/run --only vm $(ARGS)

#? make lint         format, layers, sizes, analyzers, spelling
lint:
	@tools/install-deps build lint
	@tools/lint $(ARGS)

#? make bench        start-up and throughput beside bubblewrap, in one run
bench: build
	@tools/install-deps bench
	@bench/run $(ARGS)

#? make fuzz         a minute of libFuzzer for each parser; ARGS are tools/fuzz's own
fuzz:
	@tools/install-deps build fuzz
	@tools/fuzz $(ARGS)

#? make install      to DESTDIR/usr
install: build
	@DESTDIR='$(DESTDIR)' meson install -C build --no-rebuild

#? make deps         install what any target needs
deps:
	@tools/install-deps all

#? make clean        remove the build directories
clean:
	rm -rf build build-*

#? make run-claude WS=DIR | up | logs   what people of the Docker-based warden type
run-claude: build
	@build/warden run '$(WS)' claude

up logs: build
	@build/warden $@
