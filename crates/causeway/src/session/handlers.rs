//! The handlers: those of elements, and those of the router itself.

use super::Session;
use crate::control::Question;
use crate::metrics;
use causeway_engine::handler::HandlerError;
use causeway_engine::spec::Access;
use causeway_engine::{Edge, Error};

/// An edge with what passed it: packets, and bytes while they are counted.
fn edge_line(edge: &Edge) -> String {
    let bytes = edge.bytes.map_or(String::new(), |bytes| format!("\t{bytes}"));
    format!("{edge}\t{}\t{}{bytes}", if edge.pulled { "pull" } else { "push" }, edge.packets)
}

/// The name of a handler of the router itself, which may have a dot in front.
pub(super) fn global_name(handler: &str) -> &str {
    handler.strip_prefix('.').filter(|name| !name.is_empty()).unwrap_or(handler)
}

/// The handlers of the router itself.
const GLOBALS: &[(&str, Access)] = &[
    ("version", Access::Read),
    ("driver", Access::Read),
    ("config", Access::Read),
    ("flatconfig", Access::Read),
    ("requirements", Access::Read),
    ("handlers", Access::Read),
    ("list", Access::Read),
    ("stop", Access::Write),
    ("classes", Access::Read),
    ("packages", Access::Read),
    ("counters", Access::Read),
    ("edges", Access::Read),
    ("meter", Access::Write),
    ("held", Access::Read),
    ("stood_still_ns", Access::Read),
    ("timewarp", Access::ReadWrite),
    ("metrics", Access::ReadParam),
    ("hotconfig", Access::Write),
];

impl Session {
    /// Answers one question.
    pub fn answer(&mut self, question: Question) -> Result<String, HandlerError> {
        if let (Some(driver), Question::Read(..)) = (&mut self.driver, &question) {
            driver.settle(&self.router);
        }
        match question {
            Question::Read(handler, argument) => match self.split(&handler) {
                Some((element, name)) => self.router.read(&element, &name, &argument),
                None => {
                    let name = global_name(&handler);
                    let value = self.global(name, &argument)?;
                    let takes_some =
                        GLOBALS.iter().any(|&(n, access)| n == name && access.takes_parameters());
                    match argument.is_empty() || takes_some {
                        true => Ok(value),
                        false => Err(HandlerError::NoParameters(name.to_owned())),
                    }
                }
            },
            Question::Write(handler, value) => match self.split(&handler) {
                Some((element, name)) => self.write(&element, &name, &value).map(|()| String::new()),
                None => self.write_global(global_name(&handler), &value).map(|()| String::new()),
            },
            Question::CheckRead(handler) => self.check(&handler, Access::reads, HandlerError::WriteOnly),
            Question::CheckWrite(handler) => self.check(&handler, Access::writes, HandlerError::ReadOnly),
        }
    }

    /// Writes a handler of an element. What it changes counts in the driver as well when this returns.
    fn write(&mut self, element: &str, name: &str, value: &str) -> Result<(), HandlerError> {
        let Some(driver) = &mut self.driver else { return self.router.write(element, name, value) };
        // What is set to zero is not to grow by packets from before.
        driver.settle(&self.router);
        let done = self.router.write(element, name, value);
        driver.refresh(&self.router, &self.loaded.plan);
        done
    }

    /// Element and handler of `element.handler`; elements may be named by number from 1.
    fn split(&self, handler: &str) -> Option<(String, String)> {
        let (element, name) = handler.split_once('.').filter(|(element, _)| !element.is_empty())?;
        let by_number =
            element.parse::<usize>().ok().and_then(|n| self.router.elements().get(n.checked_sub(1)?));
        Some((by_number.map_or(element.to_owned(), |n| n.to_string()), name.to_owned()))
    }

    fn check(
        &self,
        handler: &str,
        may: fn(Access) -> bool,
        refused: fn(String) -> HandlerError,
    ) -> Result<String, HandlerError> {
        let allowed = match self.split(handler) {
            Some((element, name)) => match self.router.access(&element, &name)? {
                Some(access) => may(access),
                None => return Err(HandlerError::NoHandler(format!("{element}.{name}"))),
            },
            None => match GLOBALS.iter().find(|(n, _)| *n == global_name(handler)) {
                Some(&(_, access)) => may(access),
                None => return Err(HandlerError::NoHandler(handler.to_owned())),
            },
        };
        if allowed { Ok(String::new()) } else { Err(refused(handler.to_owned())) }
    }

    fn global(&self, handler: &str, argument: &str) -> Result<String, HandlerError> {
        let lines = |names: &mut dyn Iterator<Item = String>| names.map(|n| n + "\n").collect::<String>();
        if let Some(text) = self.texts.get(handler) {
            return Ok(text);
        }
        Ok(match handler {
            "handlers" => {
                lines(&mut GLOBALS.iter().filter(|(n, _)| self.has_global(n)).map(|(name, access)| {
                    format!(
                        "{name}\t{}{}{}",
                        if access.reads() { "r" } else { "" },
                        if access.writes() { "w" } else { "" },
                        if access.takes_parameters() { "+" } else { "" }
                    )
                }))
            }
            "counters" => {
                let ports = self.router.port_counters();
                let ports = ports.iter().map(|(line, n)| (line, *n));
                lines(&mut self.router.counters().chain(ports).map(|(line, n)| line.show(n)))
            }
            "edges" => lines(&mut self.router.edges()?.iter().map(edge_line)),
            "stood_still_ns" => {
                lines(&mut self.router.stood_still().iter().map(|time| time.as_nanos().to_string()))
            }
            "held" => self.router.held()?.to_string(),
            "metrics" => match metrics::Format::by_name(argument) {
                Some(format) => metrics::text(&self.router, format)?,
                None => {
                    let what = format!("'{argument}' is no format; they are prometheus and openmetrics");
                    return Err(HandlerError::Failed(Error::new(what)));
                }
            },
            "stop" | "meter" | "hotconfig" => return Err(HandlerError::WriteOnly(handler.to_owned())),
            _ => return Err(HandlerError::NoHandler(handler.to_owned())),
        })
    }

    /// Whether there is the router's own handler `name`: not all routers take another configuration.
    fn has_global(&self, name: &str) -> bool {
        GLOBALS.iter().any(|(n, _)| *n == name) && (name != "hotconfig" || self.reconfigurable)
    }

    pub(super) fn write_global(&mut self, handler: &str, value: &str) -> Result<(), HandlerError> {
        match handler {
            "stop" => Ok(()),
            "meter" => match value.trim() {
                "true" => {
                    self.router.meter(true)?;
                    self.metered = self.stand_aside();
                    self.look();
                    Ok(())
                }
                "false" => {
                    self.metered = None;
                    Ok(self.router.meter(false)?)
                }
                other => Err(HandlerError::Failed(Error::new(format!("'{other}': write true or false")))),
            },
            "timewarp" => {
                let speed = self.texts.speed(value).map_err(HandlerError::Failed)?;
                self.router.warp_time(speed)?;
                self.texts.set_timewarp(speed);
                Ok(())
            }
            "hotconfig" if self.reconfigurable => match self.fixed {
                Some(why) if !self.has_the_elements_of(value) => Err(HandlerError::Failed(Error::new(why))),
                _ => {
                    self.swap(value).map_err(|why| HandlerError::Failed(Error::caused_by(why)))?;
                    self.replaced = true;
                    Ok(())
                }
            },
            "hotconfig" => Err(HandlerError::NoHandler(handler.to_owned())),
            _ if GLOBALS.iter().any(|(n, _)| *n == handler) => {
                Err(HandlerError::ReadOnly(handler.to_owned()))
            }
            _ => Err(HandlerError::NoHandler(handler.to_owned())),
        }
    }
}
