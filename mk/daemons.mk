# Causeway beside the real FRR and BIRD, which must be there (apt-get install frr bird2).

# What `checks/daemons/run --help` lists, for example DAEMONS_ARGS="--times 10 --minutes 10", or DAEMONS_ARGS="--quick".
DAEMONS_ARGS ?=

.PHONY: daemons daemons-clean
daemons: build ## beside the real FRR and BIRD, as root: docs/results/daemons.md (DAEMONS_ARGS="--quick", "--times 10 --minutes 10")
	@mk/need python3:python3
	@python3 -m unittest discover --quiet --start-directory checks/daemons
	@checks/daemons/run --binary $(CAUSEWAY) --page docs/results/daemons.md $(DAEMONS_ARGS)

daemons-clean: ## remove what such a check that was killed left behind
	@checks/daemons/run --clean
