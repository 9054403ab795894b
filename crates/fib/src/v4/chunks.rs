//! Runs cut at the boundaries of equal chunks, the shape both IPv4 tables are compiled from.

use crate::prefix::Prefix;
use crate::rib::Rib;
use crate::runs::for_each_run;

/// A run inside a chunk: offset of its first address from the chunk's, and the adjacency.
pub(crate) type Run = (u32, u16);

/// Calls `close(chunk number, runs)` for each chunk of `2^bits` addresses in `range`, which is at least one chunk.
/// The first run of a chunk starts at offset zero and neighbours differ.
pub(crate) fn for_each_chunk(
    rib: &Rib<u32>,
    range: Prefix<u32>,
    bits: u32,
    runs: &mut Vec<Run>,
    mut close: impl FnMut(u32, &[Run]),
) {
    runs.clear();
    let mut chunk = range.first() >> bits;
    let mut last = 0;
    for_each_run(rib, range, |start, adjacency| {
        let next = start >> bits;
        if next != chunk {
            close(chunk, runs);
            (chunk + 1..next).for_each(|whole| close(whole, &[(0, last)]));
            chunk = next;
            runs.clear();
        }
        let offset = start & ((1 << bits) - 1);
        if runs.is_empty() && offset != 0 {
            runs.push((0, last));
        }
        last = adjacency as u16; // at most `Structure::ADJACENCY_MAX`, checked by `Fib`
        runs.push((offset, last));
    });
    close(chunk, runs);
    (chunk + 1..=range.last() >> bits).for_each(|whole| close(whole, &[(0, last)]));
}
