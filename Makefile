# What can be done with Causeway: `make` lists it.

# Where `make demo` and `make docs` take the binary from: release, or dev to build it sooner.
PROFILE ?= release
# How long each load of the demo lasts.
DEMO_SECONDS ?= 3

profile_dir = $(if $(filter dev,$(PROFILE)),debug,$(PROFILE))
CAUSEWAY = $(CURDIR)/target/$(profile_dir)/causeway

.DEFAULT_GOAL := help
.PHONY: help build demo demo-clean test docs install clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build the binary: target/release/causeway (PROFILE=dev: target/debug/causeway)
	@mk/need cc:build-essential
	@. mk/rust && cargo build --locked --profile $(PROFILE) --package causeway

demo: build ## route packets between network namespaces, as root (DEMO_SECONDS=3 a load)
	@demo/run --binary $(CAUSEWAY) --seconds $(DEMO_SECONDS)

demo-clean: ## remove what a demo that was killed left behind
	@demo/run --clean

test: ## all that CI runs, as root
	@.ci/run

docs: ## write the element reference, docs/elements, from the code
	@$(MAKE) --no-print-directory build PROFILE=dev
	rm -rf docs/elements
	target/debug/causeway elements --markdown docs/elements

install: build ## install the binary, its manual page, completions and systemd unit below PREFIX=/usr/local
	install -D -m 755 $(CAUSEWAY) $(DESTDIR)$(PREFIX)/bin/causeway
	install -d $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	$(CAUSEWAY) man > $(DESTDIR)$(PREFIX)/share/man/man1/causeway.1
	$(CAUSEWAY) completions bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/causeway
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	sed 's|/usr/local|$(PREFIX)|' conf/systemd/causeway.service > $(DESTDIR)$(PREFIX)/lib/systemd/system/causeway.service

clean: ## remove what was built
	rm -rf target fuzz/target

PREFIX ?= /usr/local

include $(wildcard mk/*.mk)
