use super::graphs::socket;
use super::*;
use rustix::time::{DynamicClockId, clock_gettime_dynamic};

fn tai_ns() -> u64 {
    let now = clock_gettime_dynamic(DynamicClockId::Tai).expect("a clock");
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[test]
fn what_is_taken_has_its_time_of_arrival_in_front() {
    let front = match Front::with_arrivals(Take::All) {
        Ok(front) => Arc::new(front),
        Err(e) if e.kind() == ErrorKind::Privilege => return eprintln!("skipped: needs root: {e}"),
        Err(e) => panic!("{e}"),
    };
    assert!(front.tells_arrivals());
    let port = front.claim(LOOPBACK, QUEUES, LONGEST, rules(Take::All)).expect("claimed");
    let socket = socket();
    port.set_socket(0, socket.as_fd()).expect("set");
    let frame = v4(|_| ());
    let before = tai_ns();
    let run = port.program().test_run(&frame, None, 1).expect("run");
    let (arrival, rest) = run.data.split_at(8);
    assert_eq!(rest, frame);
    let arrival = u64::from_ne_bytes(arrival.try_into().expect("eight bytes"));
    assert!((before..=tai_ns()).contains(&arrival), "{before} {arrival}");
}
