//! What the router says of itself and no worker need be asked: its handlers that elements read as well.

use crate::load::Loaded;
use causeway_engine::spec::Access;
use causeway_engine::{Error, Globals, Library};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What `timewarp` says of simulated time.
const SIMULATED: &str = "simulation";

/// Takes what is written to one of the handlers that can be written: its name and the value.
type Write = Box<dyn Fn(&'static str, String) + Send>;

/// The texts by the names of their handlers.
pub(super) struct Texts {
    texts: Mutex<HashMap<&'static str, String>>,
    timewarp: Mutex<String>,
    reconfigurable: bool,
    write: Mutex<Write>,
}

impl Texts {
    /// None yet; `write` takes what elements write to `timewarp` and, if they may, to `hotconfig`.
    pub fn new(
        reconfigurable: bool,
        simulated: bool,
        write: impl Fn(&'static str, String) + Send + 'static,
    ) -> Arc<Texts> {
        let timewarp = Mutex::new(if simulated { SIMULATED } else { "1" }.to_owned());
        Arc::new(Texts {
            texts: Mutex::default(),
            timewarp,
            reconfigurable,
            write: Mutex::new(Box::new(write)),
        })
    }

    /// How many times as fast as the machine's time is to go, from what is written to `timewarp`.
    pub fn speed(&self, value: &str) -> Result<f64, Error> {
        if self.get("timewarp").as_deref() == Some(SIMULATED) {
            return Err(Error::new("time is simulated, and goes as fast as it can"));
        }
        let speed = value.trim().parse().ok().filter(|speed: &f64| speed.is_finite() && *speed > 0.0);
        speed.ok_or_else(|| Error::new(format!("'{}': write a number above 0", value.trim())))
    }

    /// Time goes at this speed from now on.
    pub fn set_timewarp(&self, speed: f64) {
        *self.timewarp.lock().unwrap_or_else(PoisonError::into_inner) = speed.to_string();
    }

    /// Those of the configuration that runs from now on.
    pub fn set(&self, loaded: &Loaded, library: &Library) {
        let lines = |names: &mut dyn Iterator<Item = String>| names.map(|n| n + "\n").collect::<String>();
        let elements = &loaded.plan.elements;
        let required = lines(&mut loaded.compiled.graph.requirements.iter().map(|r| r.name.clone()));
        let names = lines(&mut elements.iter().map(|e| e.name.clone()));
        let texts = [
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("driver", "userlevel".to_owned()),
            ("config", loaded.text.clone()),
            ("flatconfig", loaded.flat()),
            ("list", format!("{}\n{names}", elements.len())),
            ("classes", lines(&mut library.iter().map(|s| s.name.to_owned()))),
            ("packages", required.clone()),
            ("requirements", required),
        ];
        *self.texts.lock().unwrap_or_else(PoisonError::into_inner) = HashMap::from(texts);
    }

    /// The text that the handler shows, if it is one of these.
    pub fn get(&self, handler: &str) -> Option<String> {
        if handler == "timewarp" {
            return Some(self.timewarp.lock().unwrap_or_else(PoisonError::into_inner).clone());
        }
        self.texts.lock().unwrap_or_else(PoisonError::into_inner).get(handler).cloned()
    }
}

impl Globals for Texts {
    fn access(&self, name: &str) -> Option<Access> {
        match name {
            "hotconfig" => self.reconfigurable.then_some(Access::Write),
            "timewarp" => Some(Access::ReadWrite),
            _ => self.get(name).map(|_| Access::Read),
        }
    }

    fn read(&self, name: &str, _arg: &str) -> Result<String, Error> {
        self.get(name).ok_or_else(|| Error::new(format!("no '{name}' read handler")))
    }

    fn write(&self, name: &str, value: &str) -> Result<(), Error> {
        let handler = match name {
            "hotconfig" if self.reconfigurable => "hotconfig",
            "timewarp" => self.speed(value).map(|_| "timewarp")?,
            _ => return Err(Error::new(format!("no '{name}' write handler"))),
        };
        (self.write.lock().unwrap_or_else(PoisonError::into_inner))(handler, value.to_owned());
        Ok(())
    }
}
