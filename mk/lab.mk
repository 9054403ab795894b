# The router tester.

# Kohler's Click, which is tested beside the others where it is.
CLICK ?= $(shell command -v click)

.PHONY: lab papers

lab: build ## the kernel's forwarding, Causeway's in user space and in the driver, and Click's if it is there, under the router tester: target/lab/lab.html (LAB_ARGS="--sizes 64,imix")
	@mkdir -p target/lab
	@printf '[device.click.click]\nprogram = "%s"\n' "$(CLICK)" > target/lab/bed.toml
	$(CAUSEWAY) lab run --file target/lab/bed.toml --sizes 64,1518 --output target/lab/lab.json $(LAB_ARGS) \
	  kernel causeway driver $(if $(CLICK),click)

# What is there is not measured again, unless it ended early.
papers: build ## the papers' experiments on this machine, one after the other: target/lab/NAME.html, docs/results/osr.md and so on
	@mkdir -p target/lab
	@for name in $$($(CAUSEWAY) lab paper --names); do \
	  file=target/lab/$$name.json; \
	  if test -e $$file && ! grep -q '^ *"ended early":' $$file; then continue; fi; \
	  $(CAUSEWAY) lab paper $$name --output $$file || exit 1; \
	done
	$(CAUSEWAY) lab pages target/lab --output docs/results

# Which runs, how many nodes, whose daemon: `causeway lab cluster --help`.
CLUSTER_ARGS ?=

.PHONY: cluster
cluster: build ## routers behind one that spreads packets over them, of which one fails, as root, with BIRD: target/lab/cluster.html (CLUSTER_ARGS="--daemon frr")
	$(CAUSEWAY) lab cluster --output target/lab/cluster.json $(CLUSTER_ARGS)
