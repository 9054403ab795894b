# The corpus of frames through everything that forwards: the programs' interpreter, the kernel at XDP and at tcx, the elements one
# by one, plain routers and those with the short way. CI takes some thousands of frames.
FASTPATH_FRAMES ?= 1000000
.PHONY: corpus
corpus: ## a million frames through elements, interpreter, fused pass and the programs in the kernel, and full tables, as root (some minutes; FASTPATH_FRAMES)
	@mk/need cc:build-essential
	@. mk/rust && FASTPATH_FRAMES=$(FASTPATH_FRAMES) cargo test --locked --release -p causeway-fastpath \
		--test reference -- --nocapture
	@. mk/rust && TABLE_ROUTES=1000000 cargo test --locked --release -p causeway-elements --test tables
	@. mk/rust && cargo test --locked --release -p causeway --bin causeway -- --ignored two_million_routes --nocapture
