# A hundred upgrades in place under load each at XDP, in the driver and at tcx, and whatever can go wrong in one.
.PHONY: upgrades
upgrades: ## take over from a running router under load, 100 times each at XDP, in the driver and at tcx, as root: nothing may be lost
	@mk/need ip:iproute2 ethtool:ethtool ping:iputils-ping strace:strace
	@. mk/rust && cargo test --release -p causeway --test namespaces -- \
		--ignored --nocapture upgrade::
