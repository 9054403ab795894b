//! What the pool says of itself, and where it puts packets. The pool is one for the process, so what needs one of a known size is
//! one test.

use causeway_packet::{Batch, Packet, pool};
use pool::{Config, Error, LEAST_FRAME, MAGAZINE, MOST_FRAME, Mode};
use std::collections::HashSet;

#[test]
fn frames_are_of_powers_of_two_between_the_bounds() {
    for bytes in [LEAST_FRAME, 4_096, MOST_FRAME] {
        assert!(pool::is_frame_size(bytes), "{bytes}");
    }
    for bytes in [0, 1, LEAST_FRAME / 2, LEAST_FRAME + 1, 3_000, MOST_FRAME * 2, u32::MAX] {
        assert!(!pool::is_frame_size(bytes), "{bytes}");
        let error =
            pool::init(Config { frame_size: bytes, ..Config::default() }).expect_err("not a frame's size");
        assert!(matches!(error, Error::FrameSize(n) if n == bytes), "{error:?}");
        assert_eq!(
            error.to_string(),
            format!("frame size {bytes}: must be a power of two from 2048 to 32768")
        );
    }
}

#[test]
fn the_pool_is_as_it_was_asked_for_first() {
    let asked = Config { frames: 4_000, frame_size: 4_096, mode: Mode::Recycle };
    pool::init(asked).expect("the first to ask");
    let made = pool::config();
    assert_eq!((made.frames, made.frame_size, made.mode), (4_000, 4_096, Mode::Recycle));
    // Whoever asks for no more than there is gets it, and nobody gets another.
    pool::init(asked).expect("the same");
    pool::init(Config { frames: 3_999, ..asked }).expect("fewer");
    let others = [
        Config { frames: 4_001, ..asked },
        Config { frame_size: 2_048, ..asked },
        Config { mode: Mode::Allocator, ..asked },
    ];
    for other in others {
        let error = pool::init(other).expect_err("another");
        assert_eq!(
            error.to_string(),
            "the frame pool exists already (4000 frames of 4096 bytes)",
            "{other:?}"
        );
    }

    what_a_thread_frees_stays_with_it_until_its_magazine_is_full();
    neighbouring_frames_have_their_data_in_different_lines_of_a_cache();
}

fn what_a_thread_frees_stays_with_it_until_its_magazine_is_full() {
    let packets = |n: usize| (0..n).map(|_| Packet::new().expect("a frame")).collect::<Vec<_>>();
    // As many as fit and one; the magazine is empty then.
    let mut held = packets(MAGAZINE + MAGAZINE / 2);
    let (shared, one_too_many) = (pool::shared_free(), held.split_off(MAGAZINE));
    drop(held);
    assert_eq!(pool::shared_free(), shared, "a full magazine");
    drop(one_too_many);
    assert_eq!(
        pool::shared_free(),
        shared + MAGAZINE as u64 / 2,
        "the older half of a full magazine left it"
    );
    pool::flush_thread();
    assert_eq!(pool::shared_free(), shared + (MAGAZINE + MAGAZINE / 2) as u64);
}

fn neighbouring_frames_have_their_data_in_different_lines_of_a_cache() {
    const LINE: usize = 64;
    let bytes = [7; 60];
    let mut batch = Batch::new();
    assert_eq!(batch.extend_copies([&bytes[..]; 256].into_iter()), 256);
    let base = pool::region().0 as usize;
    let mut lines = HashSet::new();
    for packet in batch.iter() {
        let (at, most) = (packet.data().as_ptr() as usize - base, Packet::HEADROOM + 15 * LINE);
        assert!(
            (Packet::HEADROOM..=most).contains(&packet.headroom()),
            "{} bytes before it",
            packet.headroom()
        );
        lines.insert((at / 4_096 / 16, at % 4_096 / LINE));
    }
    assert_eq!(lines.len(), 256, "lines of each sixteen frames");
}
