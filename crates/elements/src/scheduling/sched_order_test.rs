//! SchedOrderTest.

use causeway_engine::prelude::*;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

pub(crate) static SPEC: Spec = Spec {
    name: "SchedOrderTest",
    category: "scheduling",
    summary: "remembers in which order tasks ran",
    ports: "0/0",
    doc: "Its task wants to run all the time, and each run writes ID down in a list that all SchedOrderTests of the router share, until the \
          list is full. ScheduleInfo says how often the task of one runs beside those of others.",
    args: SchedOrderTest::ARGS,
    handlers: handlers!(&[reads("order", "the IDs in the order in which the tasks ran")], TASK),
    example: "a :: SchedOrderTest(1, SIZE 9, STOP true); b :: SchedOrderTest(2, SIZE 9); ScheduleInfo(a 1, b 2);",
    see: &["ScheduleInfo", "StrideSched"],
    copies: Copies::One,
    build,
    ..Spec::DEFAULT
};

settings! {
    struct SchedOrderTest {
        id: i32 = required("ID", "number", "what tells it from the others");
        size: u32 = keyword("SIZE", "runs", "length of the list, at most 1048576; default and for 0 1024; the greatest of all counts"), or(0);
        stop: bool = keyword("STOP", "boolean", "whether to stop the router when its task runs and the list is full; default false"), or(false);
        limit: u32 = keyword("LIMIT", "runs", "most times its task runs; default and for 0 all the time"), or(0);
    }
}

/// Length of the list if nobody says it.
const SIZE: usize = 1_024;
const MOST: u32 = 1 << 20;

/// What ran, on all workers.
#[derive(Default)]
struct List {
    size: AtomicUsize,
    ran: AtomicUsize,
    ids: OnceLock<Box<[AtomicI32]>>,
}

impl List {
    /// The places there are, of which the first to ask decides the number: when all have said their SIZE.
    fn ids(&self) -> &[AtomicI32] {
        let size = match self.size.load(Relaxed) {
            0 => SIZE,
            size => size,
        };
        self.ids.get_or_init(|| (0..size).map(|_| AtomicI32::new(0)).collect())
    }
}

struct Tester {
    own: SchedOrderTest,
    list: Arc<List>,
    runs: u32,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let own = SchedOrderTest::configure(conf);
    if own.size > MOST {
        conf.error(format!("SIZE: out of range, bound {MOST}"));
    }
    conf.finish()?;
    let list = conf.env.shared("scheduling order", List::default).unwrap_or_default();
    list.size.fetch_max(own.size as usize, Relaxed);
    Ok(Box::new(Tester { own, list, runs: 0 }))
}

impl Element for Tester {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.list.ids();
        cx.wake();
        Ok(())
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        let ids = self.list.ids();
        let next = |ran: usize| (ran < ids.len()).then_some(ran + 1);
        match self.list.ran.fetch_update(Relaxed, Relaxed, next) {
            Ok(place) => ids[place].store(self.own.id, Relaxed),
            Err(_) if self.own.stop => cx.stop_driver(),
            Err(_) => {}
        }
        self.runs = self.runs.wrapping_add(1);
        if self.own.limit != 0 && self.runs >= self.own.limit { Run::Sleep } else { Run::Worked }
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        let ran = self.list.ids().iter().take(self.list.ran.load(Relaxed));
        let ids: Vec<String> = ran.map(|id| id.load(Relaxed).to_string()).collect();
        Ok(ids.join(" ") + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;

    #[test]
    fn runs_are_written_down_until_the_list_is_full() {
        let mut h = Harness::new(&SPEC, "-7, SIZE 3, STOP true", 0, 0).unwrap();
        for (run, order) in ["-7\n", "-7 -7\n", "-7 -7 -7\n"].into_iter().enumerate() {
            assert_eq!((h.run_task(), h.stopped()), (Some(Run::Worked), false), "{run}");
            assert_eq!(h.read("order").unwrap(), order);
        }
        h.run_task();
        assert_eq!((h.stopped(), h.read("order").unwrap()), (true, "-7 -7 -7\n".to_owned()));
    }

    #[test]
    fn it_runs_no_more_than_it_may() {
        let mut h = Harness::new(&SPEC, "1, LIMIT 2", 0, 0).unwrap();
        assert_eq!([h.run_task(), h.run_task()], [Some(Run::Worked), Some(Run::Sleep)]);
        assert_eq!(h.read("order").unwrap(), "1 1\n");
        let mut h = Harness::new(&SPEC, "1", 0, 0).unwrap();
        assert!((0..1_030).all(|_| h.run_task() == Some(Run::Worked)));
        assert_eq!(h.read("order").unwrap().split(' ').count(), 1_024);
    }

    #[test]
    fn bad_sizes_are_told_of() {
        let error = |config| Harness::new(&SPEC, config, 0, 0).err().unwrap().concat();
        assert_eq!(error("1, SIZE 1048577"), "SIZE: out of range, bound 1048576");
        assert_eq!(error(""), "ID: required argument missing");
    }
}
