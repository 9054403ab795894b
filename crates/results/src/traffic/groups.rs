//! How many frames a tester gives to the kernel at a time, where one processor of its own does all that it does.
//!
//! A frame by itself takes far longer to hand over than one of many: there is a system call for it, and many take a quicker way.
//! A tester that sends frames one by one as they are due has no time for that above some load. What then becomes due while
//! others are sent would go together, as many as it may be, by the one way or the other: the device would see bursts that nobody
//! meant. So such a tester gathers a number of frames that is known, and sends them when the last of them is due.

/// About what the tester takes to hand over a frame by itself over veth, and to take it back, nanoseconds; and for each byte.
const ALONE_NS: f64 = 2_300.0;
const BYTE_NS: f64 = 0.55;
/// The part of its processor that may go into that.
const PART: f64 = 0.6;
/// Frames that go together otherwise: what the kernel makes of a live run at a time.
const GROUP: u32 = 64;
/// Frames that go together at most where each goes by itself, if the tester was kept from it for a moment.
const FEW: u32 = 8;

/// How many frames of so many bytes wait for each other at a load, frames a second, and how many go together at most.
pub fn group(load_fps: f64, bytes: f64) -> (u32, u32) {
    let part = load_fps * (ALONE_NS + BYTE_NS * bytes) / 1e9;
    if part > PART { (GROUP, GROUP) } else { (1, FEW) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2 335 ns each: 256 900 a second take six tenths; and 3 135 ns: 191 400.
    #[test]
    fn frames_go_one_by_one_as_long_as_there_is_time_for_that() {
        assert_eq!([256e3, 257e3].map(|load| group(load, 64.0)), [(1, 8), (64, 64)]);
        assert_eq!([191e3, 192e3].map(|load| group(load, 1_518.0)), [(1, 8), (64, 64)]);
    }
}
