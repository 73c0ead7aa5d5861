# Short names for what Meson, Ninja and scripts/ do. `make help` lists them.

PREFIX = /usr/local
DESTDIR =
FUZZ_SECONDS = 30

all: ## build with gcc, optimised, into build/ (the default)
	@scripts/deps --check
	@test -e build/src/bin/holt || echo 'build/ is made anew, which takes a few minutes'
	@scripts/setup build --buildtype=release --prefix=$(PREFIX)
	@ninja --quiet -C build

demo: ## install what is missing, build, and show a real session
	@scripts/deps
	@$(MAKE) -s all
	@scripts/demo

test: ## the tests of each change: units, sanitizers, black box, escapes, layers, format
	@scripts/deps build test
	@scripts/test

test-all: ## these, clang, the kernel in a guest, conformance, bombs, all as root and as a user
	@scripts/deps build test agents
	@scripts/test --all

test-agents: all ## drive real agents from npm by a scripted model, also the large ones
	@scripts/deps test agents
	@HOLT_SOAK=whole /usr/bin/python3 -m pytest -q -rs -p no:cacheprovider \
		tests/blackbox/test_real_agents.py tests/blackbox/test_agent_login_real.py

soak: ## test-all, and what is repeated many times all the way
	@scripts/deps build test agents
	@HOLT_SOAK=full scripts/test --all

conformance: ## the official MCP suite, against our server and our client; counts last
	@scripts/deps --check
	@$(MAKE) -s all
	@tests/conformance/run

docs: all ## make the documentation as a site with search, build/site
	@scripts/deps docs
	@scripts/site

test-docs: all ## run every command and check every example of the documentation
	@scripts/deps test
	@/usr/bin/python3 -m pytest -q -p no:cacheprovider $(wildcard tests/blackbox/test_site.py \
		tests/blackbox/test_docs.py tests/blackbox/test_daily.py)

bench: ## measure beside the peers of the same run
	@scripts/deps bench
	@$(MAKE) -s all
	@bench/run
	@bench/rest/run

bench-code: all ## measure code mode beside node
	@bench/code/run

bench-coding: ## measure the coding tools beside server-filesystem and ripgrep
	@scripts/deps bench
	@$(MAKE) -s all
	@bench/coding/run

bench-conversations: all ## measure a hub with 200 conversations and 20 live agents
	@bench/conversations/run

bench-gate: all ## measure what policy, redaction and audit add to a call
	@ninja --quiet -C build bench/rest/load
	@bench/gate/run

bench-gateway: ## measure the gateway beside mcp-proxy and supergateway
	@scripts/deps bench
	@$(MAKE) -s all
	@ninja --quiet -C build bench/mcp/stdio examples/everything/everything
	@bench/gateway/run

bench-mcp: ## measure MCP servers and clients beside each other
	@scripts/deps bench
	@$(MAKE) -s all
	@bench/mcp/run
	@bench/mcp/instructions

bench-net: ## measure granted flows beside loopback, a veth pair, slirp4netns and srt
	@scripts/deps bench
	@$(MAKE) -s all
	@bench/net/run

bench-redact: ## measure redaction beside PCRE2 and sed
	@scripts/deps --check
	@bench/redact/run

install: ## install what `make` built to PREFIX, below DESTDIR
	@scripts/install "$(PREFIX)" $(if $(DESTDIR),"$(abspath $(DESTDIR))")

dist: ## a package for any Linux, static, in build/dist/; ARCH=arm64 for that
	@scripts/deps dist
	@scripts/dist $(ARCH)

deb: ## the Debian package, in build/deb/
	@scripts/deps dist
	@scripts/deb

dist-check: ## make both packages twice and compare; install, run and purge them in fresh roots
	@scripts/deps dist
	@scripts/dist-check

sdk: ## pack the SDKs for Python and TypeScript into build/sdk
	@scripts/npm-ci sdk/typescript
	@cd sdk/typescript && rm -rf dist && node_modules/.bin/tsc
	@rm -rf build/sdk && mkdir -p build/sdk/python
	@cd sdk/python && cp -r pyproject.toml README.md holt ../../build/sdk/python/
	@rm -rf build/sdk/python/holt/__pycache__
	@cd sdk/typescript && npm pack --silent --pack-destination ../../build/sdk

asan: ## build with ASan and UBSan into build/asan
	@scripts/deps --check
	@scripts/setup build/asan -Db_sanitize=address,undefined
	@ninja --quiet -C build/asan

clang: ## build with clang into build/clang
	@scripts/deps --check test
	@CC=clang scripts/setup build/clang
	@ninja --quiet -C build/clang

check: ## the quick checks: layers and format
	@scripts/check-layers
	@scripts/format --check

format: ## format the C files
	@scripts/format

fuzz: ## fuzz each target for FUZZ_SECONDS
	@scripts/deps --check test
	@scripts/fuzz $(FUZZ_SECONDS)

clean: ## remove what was built
	rm -rf build

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1	\2/p' Makefile | expand -t 20

.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*\#\#.*/\1/p' Makefile)
