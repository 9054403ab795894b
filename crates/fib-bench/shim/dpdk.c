/* A thin face of DPDK's lookup libraries for the bench: plain arrays in, plain arrays out. */
#include <stdint.h>
#include <stdio.h>

#include <rte_eal.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_lpm.h>
#include <rte_lpm6.h>
#include <rte_version.h>

/* Huge pages where enough are reserved; otherwise small ones, so that the bench runs on a machine as it is found. */
int shim_init(unsigned megabytes, int huge_pages) {
    char size[16];
    snprintf(size, sizeof size, "%u", megabytes);
    char *arguments[] = {"fib-bench", huge_pages ? "--in-memory" : "--no-huge", "--no-pci", "--no-telemetry",
                         "-m", size, "-l", "0", "--log-level=1",
                         "--force-max-simd-bitwidth=512"}; /* Off by default; where there are no such lookups it does nothing. */
    return rte_eal_init(sizeof arguments / sizeof *arguments, arguments) < 0 ? -1 : 0;
}

const char *shim_version(void) { return rte_version(); }

/* A zero that the compiler knows nothing about: with it a result adds nothing but the dependency. */
static volatile unsigned opaque_zero;

void *shim_fib_new(const char *name, unsigned routes, unsigned tbl8, int entry_bytes) {
    struct rte_fib_conf conf = {.type = RTE_FIB_DIR24_8, .default_nh = 0, .max_routes = (int)routes};
    conf.dir24_8.nh_sz = entry_bytes == 1   ? RTE_FIB_DIR24_8_1B
                         : entry_bytes == 2 ? RTE_FIB_DIR24_8_2B
                                            : RTE_FIB_DIR24_8_4B;
    conf.dir24_8.num_tbl8 = tbl8;
    return rte_fib_create(name, -1, &conf);
}

int shim_fib_set(void *fib, uint32_t address, uint8_t length, uint64_t next_hop) {
    return next_hop ? rte_fib_add(fib, address, length, next_hop) : rte_fib_delete(fib, address, length);
}

void shim_fib_lookup(void *fib, const uint32_t *addresses, uint32_t *results, unsigned count) {
    uint64_t found[256];
    for (unsigned at = 0; at < count; at += 256) {
        unsigned some = count - at < 256 ? count - at : 256;
        rte_fib_lookup_bulk(fib, (uint32_t *)(uintptr_t)(addresses + at), found, (int)some);
        for (unsigned i = 0; i < some; ++i)
            results[at + i] = (uint32_t)found[i];
    }
}

void shim_fib_chain(void *fib, const uint32_t *addresses, uint32_t *results, unsigned count) {
    uint64_t found = 0;
    const unsigned zero = opaque_zero;
    for (unsigned i = 0; i < count; ++i) {
        uint32_t address = addresses[i] ^ ((uint32_t)found & zero);
        rte_fib_lookup_bulk(fib, &address, &found, 1);
        results[i] = (uint32_t)found;
    }
}

void shim_fib_free(void *fib) { rte_fib_free(fib); }

void *shim_lpm_new(const char *name, unsigned rules, unsigned tbl8) {
    struct rte_lpm_config config = {.max_rules = rules, .number_tbl8s = tbl8};
    return rte_lpm_create(name, -1, &config);
}

/* Fills whole /24s directly: rte_lpm_add searches its rules one by one and takes minutes for a full table. */
void shim_lpm_fill(void *table, uint32_t first, uint32_t count, uint32_t next_hop) {
    struct rte_lpm *lpm = table;
    struct rte_lpm_tbl_entry entry = {.next_hop = next_hop, .valid = next_hop != 0, .valid_group = 0, .depth = 24};
    for (uint32_t i = first; i < first + count; ++i)
        lpm->tbl24[i] = entry;
}

int shim_lpm_add(void *lpm, uint32_t address, uint8_t length, uint32_t next_hop) {
    return rte_lpm_add(lpm, address, length, next_hop);
}

void shim_lpm_lookup(void *lpm, const uint32_t *addresses, uint32_t *results, unsigned count) {
    for (unsigned at = 0; at < count; at += 256) {
        unsigned some = count - at < 256 ? count - at : 256;
        rte_lpm_lookup_bulk(lpm, addresses + at, results + at, some);
        for (unsigned i = at; i < at + some; ++i)
            results[i] = results[i] & RTE_LPM_LOOKUP_SUCCESS ? results[i] & 0xffffff : 0;
    }
}

void shim_lpm_chain(void *lpm, const uint32_t *addresses, uint32_t *results, unsigned count) {
    uint32_t found = 0;
    const unsigned zero = opaque_zero;
    for (unsigned i = 0; i < count; ++i) {
        if (rte_lpm_lookup(lpm, addresses[i] ^ (found & zero), &found) != 0)
            found = 0;
        results[i] = found;
    }
}

void shim_lpm_free(void *lpm) { rte_lpm_free(lpm); }

void *shim_fib6_new(const char *name, unsigned routes, unsigned tbl8) {
    struct rte_fib6_conf conf = {.type = RTE_FIB6_TRIE, .default_nh = 0, .max_routes = (int)routes};
    conf.trie.nh_sz = RTE_FIB6_TRIE_4B;
    conf.trie.num_tbl8 = tbl8;
    return rte_fib6_create(name, -1, &conf);
}

int shim_fib6_set(void *fib, const uint8_t *address, uint8_t length, uint64_t next_hop) {
    return next_hop ? rte_fib6_add(fib, address, length, next_hop) : rte_fib6_delete(fib, address, length);
}

void shim_fib6_lookup(void *fib, const uint8_t (*addresses)[16], uint32_t *results, unsigned count) {
    uint64_t found[256];
    for (unsigned at = 0; at < count; at += 256) {
        unsigned some = count - at < 256 ? count - at : 256;
        rte_fib6_lookup_bulk(fib, (uint8_t (*)[16])(uintptr_t)(addresses + at), found, (int)some);
        for (unsigned i = 0; i < some; ++i)
            results[at + i] = (uint32_t)found[i];
    }
}

void shim_fib6_chain(void *fib, const uint8_t (*addresses)[16], uint32_t *results, unsigned count) {
    uint64_t found = 0;
    const unsigned zero = opaque_zero;
    for (unsigned i = 0; i < count; ++i) {
        rte_fib6_lookup_bulk(fib, (uint8_t (*)[16])(uintptr_t)(addresses + i + (found & zero)), &found, 1);
        results[i] = (uint32_t)found;
    }
}

void shim_fib6_free(void *fib) { rte_fib6_free(fib); }

void *shim_lpm6_new(const char *name, unsigned rules, unsigned tbl8) {
    struct rte_lpm6_config config = {.max_rules = rules, .number_tbl8s = tbl8};
    return rte_lpm6_create(name, -1, &config);
}

int shim_lpm6_add(void *lpm, const uint8_t *address, uint8_t length, uint32_t next_hop) {
    return rte_lpm6_add(lpm, address, length, next_hop);
}

void shim_lpm6_lookup(void *lpm, const uint8_t (*addresses)[16], uint32_t *results, unsigned count) {
    int32_t found[256];
    for (unsigned at = 0; at < count; at += 256) {
        unsigned some = count - at < 256 ? count - at : 256;
        rte_lpm6_lookup_bulk_func(lpm, (uint8_t (*)[16])(uintptr_t)(addresses + at), found, some);
        for (unsigned i = 0; i < some; ++i)
            results[at + i] = found[i] < 0 ? 0 : (uint32_t)found[i];
    }
}

void shim_lpm6_chain(void *lpm, const uint8_t (*addresses)[16], uint32_t *results, unsigned count) {
    uint32_t found = 0;
    const unsigned zero = opaque_zero;
    for (unsigned i = 0; i < count; ++i) {
        if (rte_lpm6_lookup(lpm, addresses[i + (found & zero)], &found) != 0)
            found = 0;
        results[i] = found;
    }
}

void shim_lpm6_free(void *lpm) { rte_lpm6_free(lpm); }
