# What faults cost. FAULTS_ROUNDS says how often each is made.
FAULTS_ROUNDS ?= 20
.PHONY: faults
faults: ## kill, stop and hang the router many times, as root; the results go to docs/results/faults.md
	@mk/need ip:iproute2 ethtool:ethtool ping:iputils-ping iperf3:iperf3
	@. mk/rust && FAULTS_ROUNDS=$(FAULTS_ROUNDS) cargo test --release -p causeway --test namespaces -- \
		--ignored --exact page::page --nocapture
