# make fuzz: run every fuzz target for FUZZ_SECONDS, or those named in FUZZ_TARGETS.
# Findings are kept in fuzz/artifacts/TARGET, inputs that reach new code in fuzz/corpus/TARGET. Every target has
# inputs to start from in fuzz/seeds/TARGET, one a file; make fuzz-seeds adds those of the corpus that reach code which no
# other does.

FUZZ_SECONDS ?= 10
# How they are built: release, or short for runs of some seconds.
FUZZ_PROFILE ?= release
FUZZ_TARGETS ?= $(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs)))

# The coverage instrumentation that cargo-fuzz asks for, without the sanitizer that needs the nightly compiler.
FUZZ_RUSTFLAGS := --cfg fuzzing -Ccodegen-units=1 -Cpasses=sancov-module \
	-Cllvm-args=-sanitizer-coverage-level=4 \
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
	-Cllvm-args=-sanitizer-coverage-pc-table \
	-Cllvm-args=-sanitizer-coverage-trace-compares

.PHONY: fuzz fuzz-build fuzz-seeds
fuzz fuzz-build fuzz-seeds: fuzz_host = $(shell rustc -vV | sed -n 's/^host: //p')
# Naming the target keeps the flags away from build scripts and procedural macros.
fuzz-build:
	cd fuzz && RUSTFLAGS="$(FUZZ_RUSTFLAGS)" cargo build --profile $(FUZZ_PROFILE) --target $(fuzz_host) \
		$(addprefix --bin ,$(FUZZ_TARGETS))

fuzz: fuzz-build ## fuzz everything that reads foreign bytes (FUZZ_SECONDS=10 a target)
	@set -e; for target in $(FUZZ_TARGETS); do \
		echo "fuzz $$target: $(FUZZ_SECONDS) s"; \
		mkdir -p fuzz/corpus/$$target fuzz/artifacts/$$target; \
		seeds=; if [ -d fuzz/seeds/$$target ]; then seeds=fuzz/seeds/$$target; fi; \
		fuzz/target/$(fuzz_host)/$(FUZZ_PROFILE)/$$target -max_total_time=$(FUZZ_SECONDS) -max_len=2048 \
			$(FUZZ_FLAGS) -use_value_profile=1 -verbosity=0 -print_final_stats=1 \
			-artifact_prefix=fuzz/artifacts/$$target/ fuzz/corpus/$$target $$seeds; \
	done

fuzz-seeds: fuzz-build ## keep the inputs that fuzzing has found and that reach code of their own
	@set -e; for target in $(FUZZ_TARGETS); do \
		mkdir -p fuzz/seeds/$$target fuzz/corpus/$$target; \
		fuzz/target/$(fuzz_host)/$(FUZZ_PROFILE)/$$target -merge=1 -use_counters=0 -max_len=512 \
			fuzz/seeds/$$target fuzz/corpus/$$target; \
	done
