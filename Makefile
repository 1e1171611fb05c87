# The front door; meson does the work. `make help` lists the targets.
PREFIX ?= /usr/local
MESON ?= meson
BUILD ?= build
JOBS ?= $(shell nproc)

.PHONY: all help run test test-sanitizers test-platforms test-everyday test-agents bench soak lint fuzz install uninstall deb tarball release clean deps deps-test
all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j $(JOBS) $(NINJA_FLAGS)

help:
	@echo 'make           build build/cordon and the library'
	@echo 'make run       install what is missing, build, and show a sandboxed command and what it could not do'
	@echo 'make test      install what is missing, then the suite; as root it also runs as an ordinary user'
	@echo 'make test-sanitizers  the suite again, built with the address and undefined-behaviour sanitizers'
	@echo 'make test-platforms   the same on Linux 6.1 and 6.12 and on arm64, in emulated machines; builds for macOS and Windows, wine'
	@echo 'make test-everyday    installing and removing, in a fresh Debian; programs that people use every day, inside; links swapped for a minute'
	@echo 'make test-agents      coding agents and MCP clients from npm, offline, with a scripted model (docs/AGENTS.md)'
	@echo 'make lint      clang-tidy and cppcheck, following each function further than make test does'
	@echo 'make bench     side by side with other sandboxes and with none at all (docs/PERFORMANCE.md); writes bench/results/'
	@echo 'make soak      a long run: 100,000 commands in one session, 200 sessions with the daemon killed at random (SOAK_ARGS); links swapped under file tools (SOAK_ARGS)'
	@echo 'make fuzz      each fuzz target for a few seconds (FUZZ_SECONDS=10)'
	@echo 'make install   to PREFIX (default /usr/local), honours DESTDIR; needs no root where PREFIX is yours'
	@echo 'make uninstall removes that again, with the same PREFIX and DESTDIR'
	@echo 'make deb       Debian packages, in build/deb'
	@echo 'make tarball   an archive with the static program, in build/tarball'
	@echo 'make release   archives for macOS and Windows, and packages for npm, in build/release'
	@echo 'make clean     remove the build directories'

$(BUILD)/build.ninja:
	@command -v $(MESON) >/dev/null && command -v ninja >/dev/null || \
		{ echo 'cordon: meson or ninja is missing; "make deps" installs what the build needs' >&2; exit 1; }
	@$(MESON) setup $(BUILD) -Dtests=$(if $(shell pkg-config --exists cmocka 2>/dev/null && echo yes),true,false) >/dev/null || \
		{ echo 'cordon: meson setup failed, see $(BUILD)/meson-logs/meson-log.txt; "make deps" installs what the build needs' >&2; exit 1; }

deps:
	@packaging/apt-install build
deps-test:
	@packaging/apt-install build test

run: deps
	@$(MAKE) --no-print-directory all NINJA_FLAGS=--quiet
	@CORDON=$(BUILD)/cordon packaging/demo.sh

test: deps-test
	@tests/run
test-sanitizers: deps-test
	@tests/run build asan asan-unit asan-user
test-platforms: deps-test
	@packaging/apt-install platforms
	@tests/run build vm arm64 other-systems
test-everyday: deps-test
	@packaging/apt-install deb everyday
	@tests/everyday/node-packages
	@tests/run build race install everyday everyday-root threads
test-agents: deps-test
	@packaging/apt-install agents
	@tests/run build agents

lint:
	@packaging/apt-install build test
	@tools/lint --deep

bench: deps-test
	@packaging/apt-install bench
	@$(MAKE) --no-print-directory all
	@BUILD=$(BUILD) bench/run

soak: deps-test
	@$(MAKE) --no-print-directory all
	@CORDON_RACE_S=30 $(BUILD)/tests/unit/test-files-race
	@BUILD=$(BUILD) bench/soak $(SOAK_ARGS)

FUZZ_SECONDS ?= 10
fuzz: deps-test
	@tools/fuzz $(FUZZ_SECONDS)

install: $(BUILD)/build.ninja
	@$(MESON) configure $(BUILD) -Dprefix=$(abspath $(PREFIX))
	@ninja -C $(BUILD) -j $(JOBS)
	@$(MESON) install -C $(BUILD) --no-rebuild --strip

uninstall: $(BUILD)/build.ninja
	@$(MESON) configure $(BUILD) -Dprefix=$(abspath $(PREFIX))
	@ninja -C $(BUILD) build.ninja >/dev/null
	@packaging/uninstall $(BUILD)

deb:
	@packaging/apt-install build deb
	@packaging/deb/build $(BUILD)/deb

tarball: deps
	@$(MESON) configure $(BUILD) -Dprefix=/usr/local
	@$(MAKE) --no-print-directory all
	@packaging/tarball/build $(BUILD)

release: deps
	@packaging/apt-install platforms
	@$(MAKE) --no-print-directory all
	@tools/cross
	@packaging/release/build $(BUILD)

clean:
	rm -rf build build-clang build-clang-asan build-arm64 build-fuzz build-threads
