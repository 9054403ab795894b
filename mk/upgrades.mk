# A hundred upgrades in place under load, and whatever can go wrong in one.
.PHONY: upgrades
upgrades: ## take over from a running router 200 times under load, as root: nothing may be lost
	@mk/need ip:iproute2 ethtool:ethtool ping:iputils-ping strace:strace
	@. mk/rust && cargo test --release -p causeway --test namespaces -- \
		--ignored --nocapture upgrade::
