//! What the property test of hostile messages and the fuzz target run; not in a release.

use crate::decode::{Source, decode};
use crate::mirror::{Mirror, Scope};
use crate::wire::Frames;

/// Takes in what the kernel might send, in answer to a dump (`true`) or by itself; then as if a new dump showed nothing.
///
/// # Panics
/// If anything is left after that.
pub fn mirror<'a>(datagrams: impl IntoIterator<Item = (&'a [u8], bool)>) {
    let mut mirror = Mirror::new([1, 2, 3]);
    for (datagram, dumped) in datagrams {
        let source = if dumped { Source::Dump } else { Source::Event };
        for frame in Frames(datagram).flatten() {
            if let Ok(Some(message)) = decode(&frame, source) {
                mirror.apply(message);
            }
        }
        mirror.collect(|| {});
    }
    mirror.begin_resync();
    mirror.end_resync(Scope::ALL);
    let changes = mirror.collect(|| {});
    assert!(changes.routes.iter().all(|(_, hop)| hop.is_none()), "all is gone that no dump shows");
    let left = mirror.snapshot();
    assert!(left.routes.is_empty() && left.hops.is_empty() && left.adjacencies.is_empty(), "{left:?}");
}
