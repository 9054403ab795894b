# How many changes of routes a second: recorded ones taken in from memory, and live ones beside those who only listen.
CHANGES_ROUTES ?= 1000000
CHANGES_CHURN ?= 200000
CHANGES = . mk/rust && CHANGES_ROUTES=$(CHANGES_ROUTES) CHANGES_CHURN=$(CHANGES_CHURN) cargo test --locked --release -p causeway
.PHONY: changes
changes: ## changes of routes a second that mirror and driver take, recorded and live, as root (CHANGES_ROUTES=1000000, CHANGES_CHURN=200000)
	@mk/need cc:build-essential ip:iproute2 ping:iputils-ping
	@$(CHANGES) --bin causeway -- --ignored recorded_changes --nocapture
	@$(CHANGES) --test namespaces -- --ignored --exact \
		churn::the_kernel_takes_changes_as_fast_as_with_an_idle_listener --nocapture
