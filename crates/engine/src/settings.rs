//! Settings of elements: one declaration for each.
//!
//! [`settings!`](macro@crate::settings) makes a structure from a list of arguments, and with it the reading of the
//! configuration, the documentation of arguments and handlers, the handlers of those that may change while packets
//! flow, and the live `config`. An element is such a structure, or has one; which, it says by
//! [`Element::settings`].
//!
//! A hot swap takes settings from the new configuration; of the counts, those go on that are a [`Counter`]. What an
//! element keeps beyond that it takes over in [`Element::take_state`].

use crate::conf::{Conf, Invalid};
use crate::counters::Counter;
use crate::element::Element;
use crate::spec::HandlerDoc;

/// What is read from a configuration; made by [`settings!`](macro@crate::settings).
pub trait Configure: Sized {
    /// Reads the arguments, without complaining of what else is there.
    fn configure(conf: &mut Conf<'_>) -> Self;
}

/// The `build` function of a class whose elements are their own settings.
///
/// # Errors
/// The configuration is wrong: the errors are in `conf`.
pub fn configured<E: Element + Configure>(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let element = E::configure(conf);
    conf.finish()?;
    Ok(Box::new(element))
}

/// A number that an element counts up.
pub trait Count {
    /// One at zero, which belongs to the handler called `name`.
    fn begin(conf: &mut Conf<'_>, name: &str) -> Self;
    /// The number.
    fn get(&self) -> u64;
    /// Sets it to zero.
    fn reset(&mut self);
}

/// Known to the element alone.
impl Count for u64 {
    fn begin(_: &mut Conf<'_>, _: &str) -> Self {
        0
    }

    fn get(&self) -> u64 {
        *self
    }

    fn reset(&mut self) {
        *self = 0;
    }
}

/// Anybody may read it, and it goes on after a hot swap.
impl Count for Counter {
    fn begin(conf: &mut Conf<'_>, name: &str) -> Self {
        conf.counter(name)
    }

    fn get(&self) -> u64 {
        Counter::get(self)
    }

    fn reset(&mut self) {
        self.set(0);
    }
}

/// As a [`Counter`], but it begins anew with each graph: the count of a limit.
pub struct Fresh(Counter);

impl std::ops::Deref for Fresh {
    type Target = Counter;

    fn deref(&self) -> &Counter {
        &self.0
    }
}

impl Count for Fresh {
    fn begin(conf: &mut Conf<'_>, name: &str) -> Self {
        Fresh(conf.fresh_counter(name))
    }

    fn get(&self) -> u64 {
        self.0.get()
    }

    fn reset(&mut self) {
        self.set(0);
    }
}

/// The parts of a list, one after the other; all of `parts` together are `N`.
#[doc(hidden)]
pub const fn joined<const N: usize>(parts: &[&[HandlerDoc]]) -> [HandlerDoc; N] {
    let mut all = [crate::handler::own::CONFIG; N];
    let (mut part, mut at) = (0, 0);
    while part < parts.len() {
        let mut i = 0;
        while i < parts[part].len() {
            all[at] = parts[part][i];
            (at, i) = (at + 1, i + 1);
        }
        part += 1;
    }
    all
}

/// The handlers of several lists, for a `Spec`: `handlers!(Settings::HANDLERS, task::HANDLERS)`.
#[macro_export]
macro_rules! handlers {
    ($($part:expr),+ $(,)?) => {{
        const PARTS: &[&[$crate::spec::HandlerDoc]] = &[$($part),+];
        const COUNT: usize = 0 $(+ { const PART: &[$crate::spec::HandlerDoc] = $part; PART.len() })+;
        const ALL: [$crate::spec::HandlerDoc; COUNT] = $crate::settings::joined(PARTS);
        &ALL
    }};
}

/// Declares the settings of an element and what it counts.
///
/// A setting is a field with its argument as a `Spec` has it, the default in `or(…)` if it need not be given, and a
/// `live(handler, documentation)` if it may change while packets flow. A count is a field with its handler; writing a
/// handler that `resets` names sets all counts to zero.
///
/// ```ignore
/// settings! {
///     struct DecIPTTL {
///         active: bool = keyword("ACTIVE", "boolean", "whether anything is done; default true"), or(true),
///             live("active", "whether anything is done");
///     }
///     counts {
///         expired: u64 = reads("drops", "packets whose time to live was over").counts(Unit::Packets);
///     }
/// }
/// ```
///
/// The structure has the lists `ARGS` and `HANDLERS` for the class's `Spec`.
#[macro_export]
macro_rules! settings {
    (
        $(#[$meta:meta])* $vis:vis struct $name:ident {
            $($(#[$note:meta])* $field:ident: $type:ty = $arg:expr $(, or($default:expr))? $(, live($handler:literal, $doc:literal))*;)*
        }
        $(counts {
            $($(#[$count_note:meta])* $count:ident: $count_type:ty = $count_handler:expr;)+
        }
        $(resets {
            $($reset:literal, $reset_doc:literal;)+
        })?)?
    ) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[$note])* $vis $field: $type,)*
            $($($(#[$count_note])* $vis $count: $count_type,)+)?
        }

        #[allow(dead_code, unused_variables, reason = "not every list has arguments, handlers or both")]
        impl $name {
            /// The arguments, for the class's `Spec`.
            $vis const ARGS: &'static [$crate::spec::ArgDoc] = &[$($arg),*];

            /// The handlers, for the class's `Spec`.
            $vis const HANDLERS: &'static [$crate::spec::HandlerDoc] = &[
                $($($count_handler,)+ $($($crate::spec::writes($reset, $reset_doc),)+)?)?
                $($($crate::spec::reads_writes($handler, $doc).sets($arg.name),)*)*
            ];

            fn reset_counts(&mut self) {
                $($($crate::settings::Count::reset(&mut self.$count);)+)?
            }
        }

        impl $crate::settings::Configure for $name {
            fn configure(conf: &mut $crate::Conf<'_>) -> Self {
                $name {
                    $($field: conf.argument(&$arg, $crate::settings!(@default $($default)?)),)*
                    $($($count: $crate::settings::Count::begin(conf, $count_handler.name),)+)?
                }
            }
        }

        #[allow(unused_variables, reason = "as above")]
        impl $crate::Settings for $name {
            fn read(&self, handler: &str) -> Option<String> {
                $($(if handler == $count_handler.name {
                    return Some($crate::settings::Count::get(&self.$count).to_string());
                })+)?
                match handler {
                    $($($handler => Some(self.$field.to_string()),)*)*
                    _ => None,
                }
            }

            fn write(
                &mut self,
                handler: &str,
                text: &str,
                scope: &$crate::Scope<'_>,
            ) -> Option<Result<(), $crate::Error>> {
                match handler {
                    $($($handler => {
                        Some($crate::value::written(handler, text, scope).map(|value| self.$field = value))
                    })*)*
                    $($($($reset => {
                        self.reset_counts();
                        Some(Ok(()))
                    })+)?)?
                    _ => None,
                }
            }

            fn take(&mut self, new: &mut dyn $crate::Settings) {
                let new: &mut dyn std::any::Any = new;
                if let Some(new) = new.downcast_mut::<Self>() {
                    $(std::mem::swap(&mut self.$field, &mut new.$field);)*
                }
            }
        }
    };
    (@default) => { None };
    (@default $default:expr) => { Some($default) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Settings;
    use crate::handler::own::CONFIG;
    use crate::harness::{Harness, packet};
    use crate::prelude::*;
    use crate::value::AtLeast;

    static SPEC: Spec = Spec {
        args: Sample::ARGS,
        handlers: handlers!(Sample::HANDLERS, &[CONFIG]),
        build: configured::<Sample>,
        ..Spec::DEFAULT
    };

    settings! {
        struct Sample {
            length: AtLeast<2> = required("LENGTH", "bytes", "…"), live("length", "…"), live("least", "…");
            color: u8 = keyword("COLOR", "byte", "…"), or(7);
            name: Option<String> = optional("NAME", "word", "…"), or(None);
        }
        counts {
            short: u64 = reads("short", "…");
            all: Counter = reads("all", "…");
        }
        resets {
            "reset", "…";
        }
    }

    impl Element for Sample {
        fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
            self.all.add(1);
            self.short += u64::from(packet.len() < self.length.0 as usize);
            packet.set_paint(self.color);
            Verdict::Pass
        }

        fn settings(&mut self) -> Option<&mut dyn Settings> {
            Some(self)
        }
    }

    fn read(h: &mut Harness, handlers: [&str; 4]) -> [String; 4] {
        handlers.map(|handler| h.read(handler).unwrap())
    }

    #[test]
    fn one_declaration_is_read_shown_written_and_reset() {
        let mut h = Harness::new(&SPEC, "3, x, COLOR 9", 1, 1).unwrap();
        h.push_all(0, [packet(b"ab"), packet(b"abc")]);
        assert_eq!(h.take(0)[0].paint(), 9);
        assert_eq!(read(&mut h, ["length", "least", "short", "all"]), ["3", "3", "1", "2"]);
        h.write("least", " 5\n").unwrap();
        assert_eq!(read(&mut h, ["length", "config", "short", "all"]), ["5", "5, x, COLOR 9", "1", "2"]);
        assert_eq!(h.write("length", "1"), Err("length: must be at least 2".to_owned()));
        h.write("reset", "").unwrap();
        assert_eq!(read(&mut h, ["length", "least", "short", "all"]), ["5", "5", "0", "0"]);
        assert!(h.write("short", "1").is_err() && h.write("color", "1").is_err());
    }

    #[test]
    fn the_whole_configuration_is_written_or_nothing_of_it_and_counts_stay() {
        let mut h = Harness::new(&SPEC, "3", 1, 1).unwrap();
        h.push(0, packet(b"a"));
        assert_eq!(h.take(0)[0].paint(), 7);
        assert_eq!(
            h.write("config", "1, COLOR 300"),
            Err("LENGTH: must be at least 2\nCOLOR: out of range, bound 255".to_owned())
        );
        assert_eq!(read(&mut h, ["length", "config", "short", "all"]), ["3", "3", "1", "1"]);
        h.write("config", "4, COLOR 5").unwrap();
        h.push(0, packet(b"a"));
        assert_eq!(h.take(0)[0].paint(), 5);
        assert_eq!(read(&mut h, ["length", "config", "short", "all"]), ["4", "4, COLOR 5", "2", "2"]);
    }

    #[test]
    fn handlers_are_in_order_and_know_their_arguments() {
        let names: Vec<_> = SPEC.handlers.iter().map(|h| h.name).collect();
        assert_eq!(names, ["short", "all", "reset", "length", "least", "config"]);
        let argument = |i: usize| SPEC.handlers[i].argument(&SPEC).map(|a| a.name);
        assert_eq!([0, 2, 3, 4, 5].map(argument), [None, None, Some("LENGTH"), Some("LENGTH"), None]);
    }
}
