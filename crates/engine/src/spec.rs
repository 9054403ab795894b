//! What an element class says of itself: the one table from which checks, documentation and building come.

pub use crate::access::Access;
use crate::conf::{Conf, Invalid, has_keyword};
use crate::drops::DropDoc;
use crate::element::Element;
use crate::measure::{Across, Kind, Unit};
use crate::plan::Plan;

/// Order in which elements are configured and initialised; lower first, by element number within a phase.
pub mod phase {
    /// Settings that everything else depends on.
    pub const FIRST: i32 = 0;
    /// Tables of names and settings of other elements (AddressInfo, ScheduleInfo).
    pub const INFO: i32 = 20;
    /// Ordinary elements.
    pub const DEFAULT: i32 = 100;
    /// Devices that make packets.
    pub const SOURCE_DEVICE: i32 = 120;
    /// Devices that take packets.
    pub const SINK_DEVICE: i32 = 130;
}

/// One element class: names, ports, documentation, and how to build it.
pub struct Spec {
    /// Class name, as configurations write it.
    pub name: &'static str,
    /// Other names of the same class.
    pub aliases: &'static [&'static str],
    /// Folder of the element library, which is its subject.
    pub category: &'static str,
    /// One verb phrase, without capital and full stop.
    pub summary: &'static str,
    /// Port counts `inputs/outputs`, such as `1/1-2`.
    pub ports: &'static str,
    /// Push, pull or agnostic by port, such as `a/ah`.
    pub processing: &'static str,
    /// Which input reaches which output, such as `x/x`.
    pub flow: &'static str,
    /// When the element is configured, one of [`phase`].
    pub phase: i32,
    /// What the element does, in prose (Markdown).
    pub doc: &'static str,
    /// Arguments in order, positional ones first.
    pub args: &'static [ArgDoc],
    /// Handlers besides those that every element has.
    pub handlers: &'static [HandlerDoc],
    /// Reasons for which the element drops packets; counted each on its own.
    pub drops: &'static [DropDoc],
    /// A configuration that runs.
    pub example: &'static str,
    /// Related classes.
    pub see: &'static [&'static str],
    /// What a router of several workers does with the class when it runs a copy of the graph on each.
    pub copies: Copies,
    /// The elements that the configuration names which must live on the same worker, because this one works on them
    /// ([`crate::Cx::peer`]).
    pub lives_with: fn(&str) -> Vec<String>,
    /// Inputs whose packets all copies get, each one of its own: what they learn from, such as answers to queries.
    pub heard_by_all: &'static [usize],
    /// Whether the element holds back its puller or pusher by notifiers.
    pub notifies: Notifies,
    /// Whether elements of the class store packets, which others may ask for by [`crate::Cx::stored`].
    pub stores: bool,
    /// Arguments that make the element act on others when a packet passes: by calling handlers. Around such an element
    /// batches are of one, so that the others see each packet before the next one, as in Click.
    pub acts_with: &'static [&'static str],
    /// Whether the element acts on others whenever a packet passes, whatever its arguments.
    pub acts: bool,
    /// Whether an element so configured writes of each packet where others may write too, such as to standard error. Where
    /// there are several of them, each writes of a packet before any writes of the next one, as in Click.
    pub tells: fn(&str) -> bool,
    /// Whether the time that an element sees ([`crate::Cx::now_ns`]) is to be that of the batch, for one that writes it into packets or
    /// compares it with what is there; to all others it is that of the round.
    pub stamps: bool,
    /// Whether elements of the class may say what they do to packets, and what becomes of most of them.
    pub lowers: Lowers,
    /// Makes an element from its configuration.
    pub build: fn(&mut Conf<'_>) -> Result<Box<dyn Element>, Invalid>,
}

/// Whether an element can have a copy on each worker.
#[derive(Clone, Copy, Debug)]
pub enum Copies {
    /// Yes: what they know is each one's own, or they share it by themselves.
    Each,
    /// No: there is one thing in the world that it stands for, or it counts towards a limit. It lives on one worker.
    One,
    /// As [`Copies::One`] where one of these keywords is given, else as [`Copies::Each`].
    OneWith(&'static [&'static str]),
    /// As [`Copies::Each`] if there are so many of what it stands for, such as queues of an interface: asked of the plan
    /// and the element's number in it.
    AsMany(fn(&Plan, usize) -> usize),
}

impl Copies {
    /// Whether element number `i` of `plan` can have `workers` copies.
    pub(crate) fn allow(self, workers: usize, plan: &Plan, i: usize) -> bool {
        match self {
            Copies::Each => true,
            Copies::One => workers == 1,
            Copies::OneWith(keywords) => workers == 1 || !has_keyword(&plan.elements[i].config, keywords),
            Copies::AsMany(count) => workers == 1 || count(plan, i) >= workers,
        }
    }
}

/// Whether elements of a class lower to the intermediate representation ([`crate::Element::lower`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lowers {
    /// They do not.
    #[default]
    No,
    /// They may; packets usually go on by output 0.
    Straight,
    /// They may; no element does their work in the graph.
    Alone,
    /// They may; packets leave by several outputs, as comparisons say.
    Classify,
    /// They may; packets leave by several outputs, as rules about IPv4 packets say.
    Rules,
    /// They may; packets leave by several outputs, as a table says.
    Route,
}

/// Which notifiers an element offers (click: "empty" and "full" notification of queues).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notifies {
    /// Pullers of its outputs sleep while it has no packets.
    pub packets: bool,
    /// Pushers to its inputs sleep while it has no room.
    pub room: bool,
}

/// One argument.
#[derive(Clone, Copy, Debug)]
pub struct ArgDoc {
    /// Name; positional arguments in capitals as keywords are.
    pub name: &'static str,
    /// Type and range in words, such as `byte` or `IPv4 address`.
    pub kind: &'static str,
    /// Whether it is positional, positional and mandatory, or a keyword.
    pub form: ArgForm,
    /// What it means; with the default.
    pub doc: &'static str,
}

/// How an argument is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgForm {
    /// Positional and mandatory.
    Required,
    /// Positional, may be left out.
    Optional,
    /// `KEYWORD value`.
    Keyword,
    /// Any number of them, to the end.
    Rest,
}

/// One handler.
#[derive(Clone, Copy, Debug)]
pub struct HandlerDoc {
    /// Name. One that ends in `#` stands for a handler for each port ([`Spec::numbered`]): `pattern#` for `pattern0`,
    /// `pattern1` ….
    pub name: &'static str,
    /// Read, write or both.
    pub access: Access,
    /// What is read, or what writing does.
    pub doc: &'static str,
    /// What the value is.
    pub kind: Kind,
    /// What a number is a number of.
    pub unit: Unit,
    /// How the values of replicas make one.
    pub across: Across,
    /// Of a list of numbers: what the names in front of them are, such as `reason`.
    pub by: Option<&'static str>,
    /// The argument that writing it changes, where that has another name.
    pub sets: Option<&'static str>,
    /// Whether the run-time answers it and the element is not asked ([`crate::handler::own`]).
    pub by_run_time: bool,
    /// Whether only elements may call it, not programs on a control socket.
    pub private: bool,
}

impl HandlerDoc {
    const fn new(name: &'static str, access: Access, kind: Kind, doc: &'static str) -> HandlerDoc {
        HandlerDoc {
            name,
            access,
            doc,
            kind,
            unit: Unit::None,
            across: Across::First,
            by: None,
            sets: None,
            by_run_time: false,
            private: false,
        }
    }

    /// The same, which counts; replicas' counts are added.
    pub const fn counts(self, unit: Unit) -> HandlerDoc {
        HandlerDoc { kind: Kind::Counter, unit, across: Across::Sum, ..self }
    }

    /// The same, which measures; replicas' measures are added.
    pub const fn measures(self, unit: Unit) -> HandlerDoc {
        HandlerDoc { kind: Kind::Gauge, unit, across: Across::Sum, ..self }
    }

    /// The same, whose replicas make one value in this way.
    pub const fn across(self, across: Across) -> HandlerDoc {
        HandlerDoc { across, ..self }
    }

    /// The same, a number a line behind the name of a `what`.
    pub const fn by(self, what: &'static str) -> HandlerDoc {
        HandlerDoc { by: Some(what), ..self }
    }

    /// The same, which shows and changes this argument.
    pub const fn sets(self, argument: &'static str) -> HandlerDoc {
        HandlerDoc { sets: Some(argument), ..self }
    }

    /// The same, which only elements may call.
    pub const fn private(self) -> HandlerDoc {
        HandlerDoc { private: true, ..self }
    }

    /// The same, which the run-time answers.
    pub(crate) const fn by_run_time(self) -> HandlerDoc {
        HandlerDoc { by_run_time: true, ..self }
    }

    /// Whether this is the handler called `name` of an element that has so many of those with a number.
    pub fn is(&self, name: &str, numbered: usize) -> bool {
        match self.name.strip_suffix('#') {
            None => self.name == name,
            Some(_) => self.names(numbered).any(|own| own == name),
        }
    }

    /// The argument of the class that the handler shows and changes: the one that it says, or the one of the same name.
    /// The run-time keeps the element's `config` in step with it.
    pub fn argument(&self, spec: &Spec) -> Option<&'static ArgDoc> {
        let name = self.sets.unwrap_or(self.name);
        let same = |a: &&ArgDoc| a.name.eq_ignore_ascii_case(name) && self.access == Access::ReadWrite;
        spec.args.iter().find(same)
    }

    /// The names of this handler of an element that has so many of those with a number.
    pub fn names(&self, numbered: usize) -> impl Iterator<Item = String> {
        let (stem, count) = match self.name.strip_suffix('#') {
            None => (self.name, None),
            Some(stem) => (stem, Some(numbered)),
        };
        (0..count.unwrap_or(1)).map(move |i| match count {
            None => stem.to_owned(),
            Some(_) => format!("{stem}{i}"),
        })
    }
}

impl Spec {
    /// For how many handlers a name that ends in `#` stands, of an element with so many ports in use: one for each output,
    /// or for each input if there are more of those.
    pub fn numbered(&self, inputs: usize, outputs: usize) -> usize {
        inputs.max(outputs)
    }

    /// A class without documentation, to be completed by struct update: one push or pull input, one output.
    pub const DEFAULT: Spec = Spec {
        name: "",
        aliases: &[],
        category: "",
        summary: "",
        ports: "1/1",
        processing: "a/a",
        flow: "x/x",
        phase: phase::DEFAULT,
        doc: "",
        args: &[],
        handlers: &[],
        drops: &[],
        example: "",
        see: &[],
        copies: Copies::Each,
        lives_with: |_| Vec::new(),
        heard_by_all: &[],
        notifies: Notifies { packets: false, room: false },
        stores: false,
        acts_with: &[],
        acts: false,
        tells: |_| false,
        stamps: false,
        lowers: Lowers::No,
        build: |_| Err(Invalid),
    };
}

/// A positional argument that must be given.
pub const fn required(name: &'static str, kind: &'static str, doc: &'static str) -> ArgDoc {
    ArgDoc { name, kind, form: ArgForm::Required, doc }
}

/// A positional argument that may be left out.
pub const fn optional(name: &'static str, kind: &'static str, doc: &'static str) -> ArgDoc {
    ArgDoc { name, kind, form: ArgForm::Optional, doc }
}

/// A keyword argument.
pub const fn keyword(name: &'static str, kind: &'static str, doc: &'static str) -> ArgDoc {
    ArgDoc { name, kind, form: ArgForm::Keyword, doc }
}

/// Arguments of one kind, as many as wanted.
pub const fn rest(name: &'static str, kind: &'static str, doc: &'static str) -> ArgDoc {
    ArgDoc { name, kind, form: ArgForm::Rest, doc }
}

/// A handler that is read: words, unless it says that it counts or measures.
pub const fn reads(name: &'static str, doc: &'static str) -> HandlerDoc {
    HandlerDoc::new(name, Access::Read, Kind::Text, doc)
}

/// A handler that is read with parameters.
pub const fn reads_with(name: &'static str, doc: &'static str) -> HandlerDoc {
    HandlerDoc::new(name, Access::ReadParam, Kind::Text, doc)
}

/// A handler that is written.
pub const fn writes(name: &'static str, doc: &'static str) -> HandlerDoc {
    HandlerDoc::new(name, Access::Write, Kind::Action, doc)
}

/// A handler that is read with parameters, and written.
pub const fn calls(name: &'static str, doc: &'static str) -> HandlerDoc {
    HandlerDoc::new(name, Access::ReadParamWrite, Kind::Text, doc)
}

/// A setting, which is read and written.
pub const fn reads_writes(name: &'static str, doc: &'static str) -> HandlerDoc {
    HandlerDoc::new(name, Access::ReadWrite, Kind::Setting, doc)
}
