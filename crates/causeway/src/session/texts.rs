//! What the router says of itself and no worker need be asked: its handlers that elements read as well.

use crate::load::Loaded;
use causeway_engine::spec::Access;
use causeway_engine::{Globals, Library};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Takes the text of a configuration that is to run in place of the present one.
type Swap = Box<dyn Fn(String) + Send>;

/// The texts by the names of their handlers.
pub(super) struct Texts {
    texts: Mutex<HashMap<&'static str, String>>,
    simulated: bool,
    swap: Option<Mutex<Swap>>,
}

impl Texts {
    /// None yet; `swap` takes what elements write to `hotconfig`, if they may.
    pub fn new(reconfigurable: bool, simulated: bool, swap: impl Fn(String) + Send + 'static) -> Arc<Texts> {
        let swap = reconfigurable.then(|| Mutex::new(Box::new(swap) as Swap));
        Arc::new(Texts { texts: Mutex::default(), simulated, swap })
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
            ("timewarp", if self.simulated { "simulation" } else { "1" }.to_owned()),
        ];
        *self.texts.lock().unwrap_or_else(PoisonError::into_inner) = HashMap::from(texts);
    }

    /// The text that the handler shows, if it is one of these.
    pub fn get(&self, handler: &str) -> Option<String> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner).get(handler).cloned()
    }
}

impl Globals for Texts {
    fn access(&self, name: &str) -> Option<Access> {
        match name {
            "hotconfig" => self.swap.as_ref().map(|_| Access::Write),
            _ => self.get(name).map(|_| Access::Read),
        }
    }

    fn read(&self, name: &str, _arg: &str) -> Result<String, String> {
        self.get(name).ok_or_else(|| format!("no '{name}' read handler"))
    }

    fn write(&self, name: &str, value: &str) -> Result<(), String> {
        match &self.swap {
            Some(swap) if name == "hotconfig" => {
                (swap.lock().unwrap_or_else(PoisonError::into_inner))(value.to_owned());
                Ok(())
            }
            _ => Err(format!("no '{name}' write handler")),
        }
    }
}
