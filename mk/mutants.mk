# Mutation testing with the mutants that cargo-mutants lists: the areas are in mk/mutants, survivors that may live in
# .cargo/mutants.toml. It takes an hour or two, may be interrupted and goes on where it was; `make mutants SHARD=2/8` runs the
# third of eight parts.
SHARD ?= 0/1
# Packages to keep to; all areas if empty.
MUTANTS_PACKAGES ?=
.PHONY: mutants
mutants: ## put faults into the code, one at a time, that tests must notice (an hour or two; SHARD=0/1)
	@mk/need nft:nftables iptables-legacy:iptables ip:iproute2 tc:iproute2 ethtool:ethtool
	@. mk/rust && mk/mutants --shard $(SHARD) $(MUTANTS_PACKAGES)
