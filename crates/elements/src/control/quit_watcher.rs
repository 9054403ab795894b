//! QuitWatcher.

use causeway_engine::Named;
use causeway_engine::prelude::*;
use causeway_lang::values::MILLISECOND_NS;

pub(crate) static SPEC: Spec = Spec {
    name: "QuitWatcher",
    category: "control",
    summary: "stops the router when an element has nothing more to do",
    ports: "0/0",
    doc: "Looks every 10 ms whether the tasks of all ELEMENTs are scheduled, and stops the router when one is not: a source that has made \
          all its packets, or a puller that sleeps.",
    args: &[rest("ELEMENT", "element name", "an element with a task")],
    example: "s :: InfiniteSource(LIMIT 100) -> Discard; QuitWatcher(s);",
    see: &["DriverManager", "Script"],
    copies: Copies::One,
    build,
    ..Spec::DEFAULT
};

const INTERVAL_NS: u64 = 10 * MILLISECOND_NS;
/// The only timer.
const LOOK: u32 = 0;

#[derive(Default)]
struct QuitWatcher {
    names: Vec<String>,
    handlers: Vec<Named>,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let names = conf.rest();
    conf.finish()?;
    Ok(Box::new(QuitWatcher { names, handlers: Vec::new() }))
}

impl QuitWatcher {
    /// The handler that says whether the element of that name is scheduled.
    fn handler(&mut self, name: &str, cx: &mut Cx<'_>) -> Result<Named, Error> {
        let (named, access) = cx.find_handler(self, &format!("{name}.scheduled"))?;
        match access {
            Some(access) if access.reads() => Ok(named),
            _ => Err(Error::new(format!("no '{}' read handler", cx.full_name(&named)))),
        }
    }

    fn look_again(cx: &mut Cx<'_>) {
        let next_ns = cx.now_ns() + INTERVAL_NS;
        cx.set_timer(LOOK, next_ns);
    }
}

impl Element for QuitWatcher {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        let mut faults = Vec::new();
        for name in std::mem::take(&mut self.names) {
            match self.handler(&name, cx) {
                Ok(handler) => self.handlers.push(handler),
                Err(fault) => faults.push(fault),
            }
        }
        if !faults.is_empty() {
            return Err(Error::several(faults));
        }
        Self::look_again(cx);
        Ok(())
    }

    fn timer(&mut self, _key: u32, cx: &mut Cx<'_>) {
        for handler in self.handlers.clone() {
            let scheduled = cx.read_outside(self, &handler, "").value;
            if scheduled.is_empty() || scheduled.starts_with('f') {
                return cx.stop_driver();
            }
        }
        Self::look_again(cx);
    }
}
