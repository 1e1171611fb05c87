# The front door; meson does the work. `make help` lists the targets.
PREFIX ?= /usr/local
MESON ?= meson
BUILD ?= build
JOBS ?= $(shell nproc)

.PHONY: all help run test test-platforms test-everyday bench soak lint fuzz install uninstall deb tarball clean deps deps-test
all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j $(JOBS) $(NINJA_FLAGS)

help:
	@echo 'make           build build/cordon and the library'
	@echo 'make run       install what is missing, build, and show a sandboxed command and what it could not do'
	@echo 'make test      install what is missing, then the suite; as root it also runs as an ordinary user'
	@echo 'make test-platforms   the same on Linux 6.1 and 6.12 and on arm64, in emulated machines'
	@echo 'make test-everyday    installing and removing, in a fresh Debian; programs that people use every day, inside'
	@echo 'make lint      clang-tidy and cppcheck, following each function further than make test does'
	@echo 'make bench     side by side with other sandboxes and with none at all (docs/PERFORMANCE.md); writes bench/results/'
	@echo 'make soak      a long run: 100,000 commands in one session, 200 sessions with the daemon killed at random (SOAK_ARGS)'
	@echo 'make fuzz      each fuzz target for a few seconds (FUZZ_SECONDS=10)'
	@echo 'make install   to PREFIX (default /usr/local), honours DESTDIR; needs no root where PREFIX is yours'
	@echo 'make uninstall removes that again, with the same PREFIX and DESTDIR'
	@echo 'make deb       Debian packages, in build/deb'
	@echo 'make tarball   an archive with the static program, in build/tarball'
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
test-platforms: deps-test
	@tests/run build vm arm64
test-everyday: deps-test
	@packaging/apt-install deb everyday
	@tests/run build install everyday everyday-root

lint:
	@packaging/apt-install build test
	@tools/lint --deep

bench: deps-test
	@$(MAKE) --no-print-directory all
	@BUILD=$(BUILD) bench/run

soak: deps-test
	@$(MAKE) --no-print-directory all
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

clean:
	rm -rf build build-clang build-clang-asan build-arm64 build-fuzz
