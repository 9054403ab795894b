//! The element: one step of the router.

use crate::access::Access;
use crate::counters::Counter;
use crate::cx::Cx;
use crate::error::Error;
use crate::ir::Program;
use crate::names::Scope;
use crate::reception::Mechanism;
use crate::task::Run;
use crate::verdict::{self, Verdict};
use causeway_packet::{Batch, Packet, Receiver};
use std::any::Any;

/// Answers with what an interface and its sockets counted, by name. May make system calls, but never waits for a worker.
pub type PortStatistics = Box<dyn Fn() -> Vec<(&'static str, u64)> + Send + Sync>;

/// In place of the number of an input: the packets are those of the element's [`Element::receiver`].
pub const RECEIVED: usize = usize::MAX;

/// Settings and counts of an element, by the names of their handlers; made by [`settings!`](macro@crate::settings).
pub trait Settings: Any {
    /// The value that `handler` shows, if it is one of these.
    fn read(&self, handler: &str) -> Option<String>;

    /// Sets what `handler` sets, if it is one of these; names in `text` are those of `scope`. The error is the
    /// type's own.
    fn write(&mut self, handler: &str, text: &str, scope: &Scope<'_>) -> Option<Result<(), Error>>;

    /// Takes the settings of `new`, which is of the same type; counts stay.
    fn take(&mut self, new: &mut dyn Settings);
}

/// A table that is being read.
pub trait Pieces: Send {
    /// Copies some entries of the element, on from where it stopped; says whether there are more.
    fn go_on(&mut self, element: &mut dyn Element, cx: &mut Cx<'_>) -> bool;

    /// What the handler answers. Not called on the worker, if somebody else asked.
    fn text(self: Box<Self>) -> String;
}

/// One step of the router.
///
/// An element never holds a reference to another. It leaves packets in its batch or gives them to [`Cx::emit`],
/// and the run-time delivers them, depth first and outputs in order, so that a batch of one behaves as a packet
/// does in Click. All methods are called on the one worker that the element lives on.
///
/// Most elements look at one packet at a time, and have a [`Element::packet`]. Those that gain by seeing a batch, or keep
/// packets, have a [`Element::push`] instead.
///
/// Per packet an element does not allocate, lock, read a clock or make a system call. Packets that it does not
/// pass on it gives to [`Cx::drop`] with a reason, or keeps and reports from [`Element::held`].
pub trait Element: Any + Send {
    /// Looks at one packet that came in by input `port`, changes it if it likes, and says what becomes of it. What is
    /// emitted meanwhile leaves before the packets of the batch that pass.
    #[inline(always)]
    fn packet(&mut self, port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let _ = (port, packet, cx);
        Verdict::Pass
    }

    /// How many packets before its turn a packet's bytes are fetched, for an element that may be the first to look at them.
    #[inline(always)]
    fn lookahead(&self) -> usize {
        0
    }

    /// Takes packets on input `port`. Those left in `batch` on return leave by output 0, after any that were
    /// emitted there; the others were emitted, dropped with a reason, or kept. The default asks [`Element::packet`] of each.
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        verdict::each(self, port, batch, cx);
    }

    /// Fills the empty `batch` with at most `max` packets for output `port`. The default pulls from input 0 and
    /// treats what comes as pushed, which is right for every agnostic element with one input.
    fn pull(&mut self, port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let _ = port;
        cx.pull(0, max, batch);
        if !batch.is_empty() {
            self.push(0, batch, cx);
        }
    }

    /// Called once before the router runs, in phase order; an error keeps the router from starting, and a hot swap
    /// from taking place.
    ///
    /// After this element others may fail, and the graph that runs must not notice. So this opens and checks all that
    /// the element needs and changes nothing that dropping the element does not undo: it opens a file without
    /// emptying it, say, and removes one again that it made. The rest is for [`Element::commit`].
    ///
    /// # Errors
    /// Why it cannot begin; the router does not start then, or the old graph runs on.
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        let _ = cx;
        Ok(())
    }

    /// Called once when the graph is put in place: all elements are initialised and have taken the state of their
    /// predecessors, and nothing keeps the graph from running any more. What cannot be undone is done here. What fails
    /// is logged or counted; no packets are emitted.
    fn commit(&mut self, cx: &mut Cx<'_>) {
        let _ = cx;
    }

    /// The element's task: a bounded piece of work. Runs once [`Cx::wake`] was called.
    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        let _ = cx;
        Run::Sleep
    }

    /// A timer set by [`Cx::set_timer`] with this `key` has expired. The default wakes the element's task.
    fn timer(&mut self, key: u32, cx: &mut Cx<'_>) {
        let _ = key;
        cx.wake();
    }

    /// The settings and counts that handlers show and change; what these know is not asked of [`Element::read`] and
    /// [`Element::write`].
    fn settings(&mut self) -> Option<&mut dyn Settings> {
        None
    }

    /// A setting has been written. What was made from it is made anew here.
    fn settings_changed(&mut self, cx: &mut Cx<'_>) {
        let _ = cx;
    }

    /// Takes the settings of `new`, an element of the same class that was made from what was written to the handler
    /// `config` ([`crate::handler::own::CONFIG`]). Counts and packets stay.
    fn take_settings(&mut self, new: &mut dyn Element, cx: &mut Cx<'_>) {
        if let (Some(own), Some(new)) = (self.settings(), new.settings()) {
            own.take(new);
            self.settings_changed(cx);
        }
    }

    /// Answers a read handler of the element's [`crate::Spec::handlers`].
    ///
    /// # Errors
    /// Why it has no value.
    fn read(&mut self, handler: &str, arg: &str, cx: &mut Cx<'_>) -> Result<String, Error> {
        let _ = (arg, cx);
        Err(Error::new(format!("handler '{handler}' is not implemented")))
    }

    /// For a read handler whose answer has no bound, such as that of a table: what reads it piece by piece while packets
    /// pass. [`Element::read`] is not asked then. The handler takes no parameters.
    fn read_in_pieces(&self, handler: &str) -> Option<Box<dyn Pieces>> {
        let _ = handler;
        None
    }

    /// Carries out a write handler of the element's [`crate::Spec::handlers`].
    ///
    /// # Errors
    /// Why it cannot be done.
    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        let _ = (value, cx);
        Err(Error::new(format!("handler '{handler}' is not implemented")))
    }

    /// Whether the element, as it is configured, has no handler called `name` although its class declares one.
    fn lacks(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// Handlers that the element has besides those of its class.
    fn own_handlers(&self) -> Vec<(String, Access)> {
        Vec::new()
    }

    /// What can be done with the handler called `name`, which is none of its class; by default whether it is among
    /// [`Element::own_handlers`].
    fn own_handler(&self, name: &str) -> Option<Access> {
        self.own_handlers().into_iter().find(|(own, _)| own == name).map(|(_, access)| access)
    }

    /// The part of the element that answers handlers without its worker, if it has one: of copies the first is asked for
    /// it, once, when the graph has been built.
    fn control_side(&self, cx: &mut Cx<'_>) -> Option<Box<dyn ControlSide>> {
        let _ = cx;
        None
    }

    /// What the element does to packets that are pushed to input 0, as it is configured now; `None` if it cannot say. Its
    /// class says that it may ([`crate::Spec::lowers`]). Only its write handlers may change the answer.
    fn lower(&self) -> Option<Program> {
        None
    }

    /// Whether writing `handler` changes what [`Element::lower`] answers. Counters and shared tables do not.
    fn reconfigures(&self, handler: &str) -> bool {
        !handler.starts_with("reset")
    }

    /// `n` was added to `counter`, one of the element's, for packets that something else has handled by what
    /// [`Element::lower`] said. It happens ten times a second while there are such, and before a handler is called.
    fn counted(&mut self, counter: &Counter, n: u64, cx: &mut Cx<'_>) {
        let _ = (counter, n, cx);
    }

    /// For an element that does the work of others: asks those of its worker, by name, what they lower to. Called
    /// when all are built, and again when a handler that reconfigures one of those asked was written. Says, for
    /// people, what came of it.
    fn fuse(&mut self, lowered: &mut dyn FnMut(&str) -> Option<Program>) -> Option<String> {
        let _ = lowered;
        None
    }

    /// For an element that does the work of others: for each of its outputs, in their order, the elements whose work the
    /// packets that leave by it have had done, and by which output they would have left those. What packets count at the edges between those comes from this.
    fn goes_past(&self) -> Vec<Vec<(String, usize)>> {
        Vec::new()
    }

    /// What tells, on any thread, what the interface and the sockets under the element counted. Asked for once, when the
    /// graph has been initialised.
    fn port_statistics(&self) -> Option<PortStatistics> {
        None
    }

    /// Key by which a hot swap finds the element's predecessor; by default the element's own name.
    fn swap_key(&self) -> Option<String> {
        None
    }

    /// Takes over the state of its predecessor in the old graph, when that is of the same type.
    fn take_state(&mut self, old: &mut dyn Element, cx: &mut Cx<'_>) {
        let _ = (old, cx);
    }

    /// The element's graph has been replaced, and those that follow it have taken their states: gives back what
    /// elements of the new graph may take when it is put in place ([`Element::commit`]), be there as many as before or
    /// not.
    fn retire(&mut self) {}

    /// Packets that the element holds now.
    fn held(&self) -> usize {
        0
    }

    /// Where the element's packets come from, if they come from outside. They are pushed to the element as to an input called
    /// [`RECEIVED`], before they leave by its outputs.
    fn receiver(&mut self) -> Option<&mut dyn Receiver> {
        None
    }

    /// How the packets of its receiver are to be learnt of; `None` = as the worker's usually are.
    fn mechanism(&self) -> Option<Mechanism> {
        None
    }
}

/// The control side of an element: answers handlers while its worker forwards packets: what takes long, such as writing
/// down a table or changing it.
pub trait ControlSide: Send {
    /// Answers a read handler; `None` = the element itself does.
    fn read(&mut self, handler: &str, arg: &str) -> Option<Result<String, Error>>;

    /// Carries out a write handler; `None` = the element itself does. It must change nothing of what
    /// [`Element::lower`] answers.
    fn write(&mut self, handler: &str, value: &str) -> Option<Result<(), Error>>;
}

impl dyn Element {
    /// The element as its own type, for [`Element::take_state`].
    pub fn downcast_mut<T: Element>(&mut self) -> Option<&mut T> {
        (self as &mut dyn Any).downcast_mut()
    }
}
