# The kernel as the oracle: random states and packets into a router and into the kernel alone, as root. A failure says how
# to try its state again.
ORACLE_SEED ?= 2
ORACLE_STATES ?= 510
ORACLE_PACKETS ?= 200
.PHONY: oracle
oracle: ## hold what a router forwards against the kernel alone, as root (ORACLE_STATES=510, about 15 minutes)
	@mk/need cc:build-essential ip:iproute2 tc:iproute2 ethtool:ethtool nft:nftables iptables-legacy:iptables
	@. mk/rust && ORACLE_SEED=$(ORACLE_SEED) ORACLE_STATES=$(ORACLE_STATES) ORACLE_PACKETS=$(ORACLE_PACKETS) \
		cargo test --locked --package causeway --test oracle a_router_sends -- --nocapture
