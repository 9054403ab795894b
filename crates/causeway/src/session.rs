//! A running router with its control socket and signals: one loop that owns the router and answers everybody.

use crate::control::{Ask, Opener, Question, Seen, Watch, Watched};
use crate::driver::Driver;
use crate::explained::Explained;
use crate::load::{self, Loaded, Source, Style};
use crate::logger;
use crate::signals::Signals;
use anyhow::{Context, Result};
use causeway_elements::devices::{FRONT, OpenPorts};
use causeway_elements::packet_filter;
use causeway_engine::handler::HandlerError;
use causeway_engine::watch::trace::Filter;
use causeway_engine::{
    Error, Event, Library, NoAnswer, Options, Persistent, Plan, PlanElement, Router, StartError,
};
use causeway_netio::front::{Aside, Front, Place};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

mod handlers;
#[cfg(test)]
mod tests;
mod texts;

use handlers::global_name;
use texts::Texts;

/// How often a signal asks the router to stop: more often than any script of it asks for it to run on.
const FOR_GOOD: i32 = i32::MAX / 2;

/// What the loop waits for.
enum Input {
    Router(Event),
    /// A signal came; which one, the session's [`Signals`] say.
    Signal,
    Question(Question, Sender<Result<String, HandlerError>>),
    Watch(Watch, Sender<Result<Watched, HandlerError>>),
    /// The router's own graph is another now.
    OwnGraph(String, Sender<Result<(), HandlerError>>),
    /// What elements count that go with the next graph is not to be lost.
    KeepCounts,
    /// An element wrote a handler of the router's own, called so.
    Written(&'static str, String),
    /// A signal came that the script with this name asked for.
    Script(String),
    /// The device of the port with this name was gone and is there again.
    PortBack(Arc<OpenPorts>, String),
    /// It is time to look after the programs in the driver. Who said so waits until it was done.
    Look(Sender<()>),
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// An element or a handler asked for it.
    Stopped,
    /// A signal asked for it.
    Signal(i32),
    /// A worker failed.
    Broken,
}

/// A router and everything that goes with it.
pub struct Session {
    router: Router,
    loaded: Loaded,
    library: Library,
    params: Vec<(String, String)>,
    /// Whether the global handler `hotconfig` may replace the graph.
    reconfigurable: bool,
    /// Why it may not by one of other elements or ways.
    fixed: Option<&'static str>,
    /// It was replaced so.
    replaced: bool,
    prepare: fn(Plan) -> Plan,
    extra: Vec<PlanElement>,
    driver: Option<Driver>,
    /// What elements read of the router.
    texts: Arc<Texts>,
    /// What outlives a hot swap.
    persistent: Persistent,
    /// While bytes are metered, what is forwarded in the driver otherwise goes through the graph.
    metered: Option<Aside>,
    signals: Signals,
    inputs: Receiver<Input>,
    sender: Sender<Input>,
}

/// The session's side of the control socket.
struct Desk(Mutex<Sender<Input>>);

impl Desk {
    /// Puts what waits for a reply to the session.
    fn put<T>(
        &self,
        input: impl FnOnce(Sender<Result<T, HandlerError>>) -> Input,
    ) -> Result<T, HandlerError> {
        let (reply, answer) = mpsc::channel();
        let sender = self.0.lock().map_err(|_| HandlerError::Gone)?.clone();
        sender.send(input(reply)).map_err(|_| HandlerError::Gone)?;
        answer.recv().unwrap_or(Err(HandlerError::Gone))
    }
}

impl Ask for Desk {
    fn ask(&self, question: Question) -> Result<String, HandlerError> {
        self.put(|reply| Input::Question(question, reply))
    }

    fn keep_counts(&self) {
        // Without a session there is nothing to be kept.
        let _ = self.0.lock().map(|sender| sender.send(Input::KeepCounts));
    }

    fn own_graph(&self, text: String) -> Result<(), HandlerError> {
        self.put(|reply| Input::OwnGraph(text, reply))
    }

    fn watch(&self, watch: Watch) -> Result<Watched, HandlerError> {
        self.put(|reply| Input::Watch(watch, reply))
    }
}

/// What a session is started with, besides the configuration.
pub struct Setup {
    /// The element classes.
    pub library: Library,
    /// Definitions of the command line.
    pub params: Vec<(String, String)>,
    /// How the router runs.
    pub options: Options,
    /// Whether `hotconfig` may replace the graph.
    pub reconfigurable: bool,
    /// Why it may not by one of other elements or ways.
    pub fixed: Option<&'static str>,
    /// What is done to a plan before it runs: the optimiser, or nothing.
    pub prepare: fn(Plan) -> Plan,
    /// Elements without ports that every graph has besides its own.
    pub extra: Vec<PlanElement>,
    /// What runs part of the graph in the driver.
    pub driver: Option<Driver>,
}

/// How often the programs in the driver are looked after.
const LOOK: Duration = Duration::from_millis(100);

impl Session {
    /// Starts the router of `loaded`, paused. From here on signals end the session. The error is the complete text for
    /// the user.
    pub fn start(mut loaded: Loaded, setup: Setup) -> Result<Session, Explained> {
        let Setup { library, params, mut options, reconfigurable, fixed, prepare, extra, mut driver } = setup;
        let simulated = options.simulated_ns.is_some();
        loaded.plan.elements.extend_from_slice(&extra);
        let opener = Opener::new(&options.persistent);
        let (sender, inputs) = mpsc::channel();
        let woken = sender.clone();
        // The session may have ended by itself when the signal comes.
        let wake = move || drop(woken.send(Input::Signal));
        let signals = Signals::watch(wake).map_err(|e| format!("cannot watch for signals: {e}\n"))?;
        let told = sender.clone();
        signals
            .tell_scripts(&options.persistent, move |name| drop(told.send(Input::Script(name.to_owned()))));
        let asked = sender.clone();
        let written = move |handler, value| drop(asked.send(Input::Written(handler, value)));
        let texts = Texts::new(reconfigurable, simulated, written);
        texts.set(&loaded, &library);
        options.globals = Some(texts.clone());
        let persistent = options.persistent.clone();
        let plan = prepared(&loaded.plan, prepare, driver.as_ref());
        let mut router = Router::start(library.clone(), plan, options).map_err(|e| loaded.explain(&e))?;
        logger::answer(&loaded.explain_warnings(router.warnings()));
        if let Some(events) = router.take_events() {
            let sender = sender.clone();
            std::thread::spawn(move || events.iter().all(|e| sender.send(Input::Router(e)).is_ok()));
        }
        if let Some(driver) = &mut driver {
            driver.attach(&router, &loaded.plan);
            let sender = sender.clone();
            std::thread::spawn(move || {
                // What takes long is not to be asked for again meanwhile: others wait for their answers behind it.
                let (mut looking, mut done) = mpsc::channel();
                while sender.send(Input::Look(looking)).is_ok() {
                    // Nothing is ever sent.
                    let _ = done.recv();
                    std::thread::sleep(LOOK);
                    (looking, done) = mpsc::channel();
                }
            });
        }
        let session = Session {
            router,
            loaded,
            library,
            params,
            reconfigurable,
            fixed,
            replaced: false,
            prepare,
            extra,
            driver,
            texts,
            persistent,
            metered: None,
            signals,
            inputs,
            sender,
        };
        opener.answer_by(session.desk());
        Ok(session)
    }

    /// What answers the clients of a control socket.
    pub fn desk(&self) -> std::sync::Arc<dyn Ask + Send + Sync> {
        std::sync::Arc::new(Desk(Mutex::new(self.sender.clone())))
    }

    /// The router.
    pub fn router(&self) -> &Router {
        &self.router
    }

    /// Runs until the router stops, a signal comes or a worker fails. `leave` is called while the workers still run; then they
    /// are paused.
    pub fn run(&mut self, leave: impl Fn(&Session)) -> Result<End> {
        let end = self.serve()?;
        leave(self);
        if let Some(driver) = &mut self.driver {
            // What is owed to elements on a worker that is stuck is lost with them.
            let _ = driver.withdraw(&self.router);
        }
        self.router.pause();
        Ok(end)
    }

    fn serve(&mut self) -> Result<End> {
        self.router.resume();
        // Whether the router was told of a signal.
        let mut told = false;
        loop {
            let input = self.inputs.recv().context("all senders are gone")?;
            // Not only when its turn comes: each question before it may wait for a worker that is stuck.
            if let Some(signal) = self.signals.latest()
                && !std::mem::replace(&mut told, true)
                && (!self.router.is_managed() || self.router.ask_to_stop(FOR_GOOD).is_err())
            {
                return Ok(End::Signal(signal));
            }
            match input {
                Input::Router(Event::StopRequested { worker }) => {
                    // A worker that is stuck does not run on.
                    if !self.router.runs_on(worker).unwrap_or(false) {
                        return Ok(self.signals.latest().map_or(End::Stopped, End::Signal));
                    }
                }
                Input::Router(Event::Ended { worker }) => {
                    log::error!(code = "worker-ended"; "worker {worker} ended by itself; stopping");
                    return Ok(End::Broken);
                }
                Input::Signal => {}
                Input::KeepCounts => self.router.keep_counts(),
                Input::Look(looking) => {
                    self.look();
                    drop(looking);
                }
                Input::Written(handler, value) => {
                    if let Err(why) = self.write_global(handler, &value) {
                        log::error!("{handler}: {}", why.to_string().trim_end());
                    }
                }
                Input::Script(name) => {
                    if let Err(why) = self.router.write(&name, "run", "") {
                        log::error!("{why}");
                    }
                }
                Input::PortBack(ports, port) => self.reopen(&ports, &port),
                // As below.
                Input::OwnGraph(text, reply) => {
                    // Who asked waits, and is told; if he has gone, nobody is.
                    let _ = reply.send(self.own_graph(&text));
                }
                Input::Watch(watch, reply) => {
                    let watched = self.watch(watch);
                    self.look();
                    drop(reply.send(watched));
                }
                Input::Question(question, reply) => {
                    let times = match &question {
                        Question::Write(handler, times) if global_name(handler) == "stop" => {
                            Some(times.trim().parse().unwrap_or(1))
                        }
                        _ => None,
                    };
                    // A client that has gone misses nothing.
                    let _ = reply.send(self.answer(question));
                    if times.is_some_and(|times| self.router.ask_to_stop(times).is_err()) {
                        return Ok(End::Stopped);
                    }
                }
            }
        }
    }

    /// From now on a port whose device was gone is opened anew when there is one again, and `when` says so of it.
    pub fn follow(&self, ports: &OpenPorts, when: fn(&OpenPorts, &str) -> bool) {
        let sender = self.sender.clone();
        ports.on_back(move |ports, port| {
            if when(ports, port) {
                // The session may have ended by then.
                drop(sender.send(Input::PortBack(ports.clone(), port.to_owned())));
            }
        });
    }

    /// Puts the same graph in its own place: its elements open the port anew, and read the interface's addresses.
    fn reopen(&mut self, ports: &OpenPorts, port: &str) {
        // Much may have been told of it before the first news was heard.
        if !ports.is_gone(port) {
            return;
        }
        let plan = prepared(&self.loaded.plan, self.prepare, self.driver.as_ref());
        match self.replace(plan) {
            Ok(()) if ports.is_gone(port) => {}
            Ok(()) => log::info!("{port} was opened again"),
            Err(e) => log::warn!(
                "{port} cannot be opened again yet: {}",
                self.loaded.explain(&e).to_string().trim_end()
            ),
        }
        self.attach();
    }

    /// Puts another graph in the place of the one that runs. What was in the driver comes up before; [`Session::attach`] is to
    /// follow, also if it fails.
    fn replace(&mut self, plan: Plan) -> Result<(), StartError> {
        if let Some(driver) = &mut self.driver {
            // What the elements have not counted by now they never would.
            driver.withdraw(&self.router)?;
        }
        self.router.swap(plan)?;
        // The new graph's meter is off.
        self.metered = None;
        Ok(())
    }

    /// Looks after the programs in the driver.
    fn look(&mut self) {
        if let Some(driver) = &mut self.driver {
            driver.look(&self.router, &self.loaded.plan);
        }
    }

    /// Puts into the driver what of the graph can be there.
    fn attach(&mut self) {
        if let Some(driver) = &mut self.driver {
            driver.attach(&self.router, &self.loaded.plan);
        }
    }

    /// Has what is forwarded in the driver go through the graph, where packets are seen. None if nothing is, or if the driver
    /// looks for watchers itself.
    fn stand_aside(&self) -> Option<Aside> {
        if self.driver.is_some() {
            return None;
        }
        self.front()?.stand_aside()
    }

    /// What is in front of the ports, if there is one.
    fn front(&self) -> Option<Arc<Front>> {
        let values = self.persistent.lock().unwrap_or_else(PoisonError::into_inner);
        values.get(FRONT)?.clone().downcast().ok()
    }

    /// Ends the workers. The error is one that does not end, and is left behind.
    pub fn close(self) -> Result<(), NoAnswer> {
        let closed = self.router.close();
        if let Err(NoAnswer(worker)) = closed {
            log::error!(code = "worker-stuck"; "worker {worker} does not end and is left behind");
        }
        closed
    }

    /// Begins to watch packets.
    fn watch(&mut self, watch: Watch) -> Result<Watched, HandlerError> {
        let all = self.router.edges()?;
        let named = |text: &str| {
            let numbers: Vec<usize> = (0..all.len()).filter(|&e| all[e].is_named(text)).collect();
            let none = || {
                let what = format!("no edge is called '{text}'; `causeway read edges` lists them");
                HandlerError::Failed(Error::new(what))
            };
            if numbers.is_empty() { Err(none()) } else { Ok(numbers) }
        };
        let seen = match watch {
            Watch::Capture { edges, most_bytes } => {
                let named: Vec<Vec<usize>> = edges.iter().map(|e| named(e)).collect::<Result<_, _>>()?;
                let numbers = named.concat();
                let names = numbers.iter().map(|&e| all[e].to_string()).collect();
                Seen::Capture(self.router.capture(&numbers, most_bytes)?, names)
            }
            Watch::Trace { packets, from, filter } => {
                let from = from.map(|from| Ok::<_, HandlerError>(named(&from)?[0])).transpose()?;
                let filter: Filter = match filter {
                    Some(text) => Arc::new(packet_filter(&text).map_err(HandlerError::Failed)?),
                    None => Arc::new(|_| true),
                };
                Seen::Trace(self.router.trace(from, filter, packets)?)
            }
        };
        // Not before somebody looks.
        let aside = self.stand_aside();
        let waits = aside.is_some() || self.driver.is_some();
        let has_ports_at = |place| self.front().is_some_and(|front| front.has_ports_at(place));
        // Part of a graph has them come up wherever they are.
        let (at_xdp, at_tcx) = (has_ports_at(Place::Xdp), has_ports_at(Place::Tcx));
        let diverts = waits && (at_xdp || self.driver.is_some());
        let misses = at_tcx && self.driver.is_none();
        Ok(Watched { seen, aside, waits, diverts, misses })
    }

    /// Whether the graph of `text` has the elements and the ways between them of the one that runs. One that is wrong is judged where
    /// it is put in its place.
    fn has_the_elements_of(&self, text: &str) -> bool {
        let source = Source::Text("hotconfig", text.to_owned());
        let Ok((new, _)) = load::compile(&source, &self.library, &self.params, Style::Click) else {
            return true;
        };
        let shape = |plan: &Plan| {
            let elements: Vec<_> = plan.elements.iter().map(|e| (e.name.clone(), e.class.clone())).collect();
            (elements, plan.edges.clone())
        };
        shape(&new.plan) == shape(&self.loaded.plan)
    }

    /// Replaces the graph by the router's own, of other ports.
    fn own_graph(&mut self, text: &str) -> Result<(), HandlerError> {
        if std::mem::take(&mut self.replaced) {
            log::warn!(
                code = "graph-replaced";
                "ports have changed: the graph that was written to hotconfig gives way to the router's own"
            );
        }
        self.swap(text).map_err(|why| HandlerError::Failed(Error::caused_by(why)))
    }

    /// Replaces the graph by that of `text`. The error is the complete text for the user; the old graph runs on.
    pub fn swap(&mut self, text: &str) -> Result<(), Explained> {
        let source = Source::Text("hotconfig", text.to_owned());
        let (mut loaded, warnings) = load::compile(&source, &self.library, &self.params, Style::Click)?;
        loaded.plan.elements.extend_from_slice(&self.extra);
        let plan = prepared(&loaded.plan, self.prepare, self.driver.as_ref());
        let replaced = self.replace(plan).map_err(|e| loaded.explain(&e));
        if replaced.is_ok() {
            self.texts.set(&loaded, &self.library);
            self.loaded = loaded;
        }
        self.attach();
        replaced?;
        let of_elements: Vec<String> = self.router.warnings().iter().map(ToString::to_string).collect();
        for warning in warnings.lines().chain(of_elements.iter().map(String::as_str)) {
            log::warn!("hotconfig: {}", warning.strip_prefix("warning: ").unwrap_or(warning));
        }
        Ok(())
    }
}

/// What is to run of a plan.
fn prepared(plan: &Plan, prepare: fn(Plan) -> Plan, driver: Option<&Driver>) -> Plan {
    let optimised = prepare(plan.clone());
    match driver {
        Some(driver) => driver.enter(plan, optimised),
        None => optimised,
    }
}
