# What needs more programs or more time than CI has, one after the other, since routers under load disturb each other.
NIGHTLY = metrics-check browser-check corpus daemons faults upgrades oracle mutants
.PHONY: nightly browser-check
nightly: ## all checks that need more programs or time than CI has, as root: some hours
	@for check in $(NIGHTLY); do $(MAKE) --no-print-directory $$check || exit 1; done

browser-check: ## open the page of results in Chromium, in light and in dark
	@mk/need chromium:chromium
	@. mk/rust && cargo test --locked -p causeway-results --test chromium -- --nocapture
