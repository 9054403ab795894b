//! A session without interfaces.

use super::*;
use causeway_engine::{Cx, Element, Error, Run, Spec};

/// Panics when its task runs.
static PANICS: Spec = Spec { name: "Panics", ports: "0/0", build: |_| Ok(Box::new(Panics)), ..Spec::DEFAULT };

struct Panics;

impl Element for Panics {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        cx.wake();
        Ok(())
    }

    fn task(&mut self, _: &mut Cx<'_>) -> Run {
        panic!("as it was told")
    }
}

/// Has a counter.
static COUNTS: Spec = Spec {
    name: "Counts",
    ports: "0/0",
    build: |conf| {
        conf.counter("count");
        Ok(Box::new(Counts))
    },
    ..Spec::DEFAULT
};

struct Counts;

impl Element for Counts {}

fn setup(library: Library, options: Options, driver: Option<Driver>) -> Setup {
    let (params, extra) = (vec![], vec![]);
    Setup { library, params, options, reconfigurable: true, fixed: None, prepare: |p| p, extra, driver }
}

#[test]
fn what_elements_are_owed_is_counted_before_another_graph_takes_their_place() {
    let (library, options) = (Library::new([&COUNTS]), Options::default());
    let driver = match Driver::new(library.clone(), Arc::default(), &options.persistent) {
        Ok(driver) => driver,
        Err(error) => return eprintln!("skipped: nothing can run in the driver: {error:#}"),
    };
    let source = Source::Text("test", "c :: Counts;".to_owned());
    let loaded = load::load(&source, &library, &[], Style::Click).unwrap_or_else(|e| panic!("{e}"));
    let setup = setup(library, options, Some(driver));
    let mut session = Session::start(loaded, setup).unwrap_or_else(|e| panic!("{e}"));
    session.router.resume();
    let counter = session.router.counter("c", "count").expect("a counter");
    session.driver.as_mut().expect("a driver").owe(vec![(counter, 5)]);
    session.swap("c :: Counts;").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(session.router.counter("c", "count").map(|counter| counter.get()), Some(5));
    assert_eq!(session.close(), Ok(()));
}

#[test]
fn a_worker_that_panics_ends_the_session() {
    let library = Library::new([&PANICS]);
    let source = Source::Text("test", "p :: Panics;".to_owned());
    let loaded = load::load(&source, &library, &[], Style::Click).unwrap_or_else(|e| panic!("{e}"));
    let options = Options { workers: 2, ..Options::default() };
    let mut session = Session::start(loaded, setup(library, options, None)).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(session.run(|_| ()).unwrap(), End::Broken);
    let gone = session.answer(Question::Read("p.class".to_owned(), String::new())).unwrap_err();
    assert_eq!(gone.to_string(), "worker 0 does not answer");
    assert_eq!(session.close(), Ok(()));
}

#[test]
fn a_handler_of_the_router_itself_may_have_a_dot_in_front() {
    let (library, options) = (Library::new([&COUNTS]), Options::default());
    let source = Source::Text("test", "b :: Counts; c :: Counts;".to_owned());
    let loaded = load::load(&source, &library, &[], Style::Click).unwrap_or_else(|e| panic!("{e}"));
    let mut session = Session::start(loaded, setup(library, options, None)).unwrap_or_else(|e| panic!("{e}"));
    let mut read = |handler: &str| session.answer(Question::Read(handler.to_owned(), String::new()));
    assert_eq!([read("list"), read(".list")], [Ok("2\nb\nc\n".to_owned()), Ok("2\nb\nc\n".to_owned())]);
    assert_eq!([read(".nonsense").is_ok(), read(".").is_ok(), read("..list").is_ok()], [false; 3]);
    let mut can = |question: fn(String) -> Question| session.answer(question(".stop".to_owned())).is_ok();
    assert_eq!([can(Question::CheckRead), can(Question::CheckWrite)], [false, true]);
    assert_eq!(session.close(), Ok(()));
}
