//! What is asked for: frames of a length, and to be told.

use causeway_packet::{Alert, pool};

#[test]
fn frames_become_as_long_as_the_longest_that_was_asked_for_before_the_first() {
    assert_eq!(pool::ask_for_frames_of(40_000), Err(32_768));
    for bytes in [100, 4_097, 3_000] {
        assert_eq!(pool::ask_for_frames_of(bytes), Ok(()));
    }
    assert_eq!(pool::config().frame_size, 8_192);
    assert_eq!(pool::ask_for_frames_of(8_192), Ok(()));
    assert_eq!(pool::ask_for_frames_of(8_193), Err(8_192));
}

#[test]
fn who_asks_is_told_once_and_who_withdraws_not_at_all() {
    let alert = Alert::default();
    assert!(!alert.is_asked() && !alert.answer() && !alert.withdraw());
    alert.ask();
    assert!(alert.is_asked() && alert.answer());
    assert!(!alert.is_asked() && !alert.answer());
    alert.ask();
    assert!(alert.withdraw());
    assert!(!alert.is_asked() && !alert.withdraw());
}
