//! The classes that a configuration may use.

use crate::names::Interfaces;
use crate::spec::Spec;
use causeway_lang::{ClassInfo, Classes};

/// All element classes that a configuration may use.
#[derive(Clone, Default)]
pub struct Library {
    specs: Vec<&'static Spec>,
    interfaces: Option<Interfaces>,
    missing: Option<fn(&str) -> Option<String>>,
}

impl Library {
    /// A library of `specs`.
    pub fn new(specs: impl IntoIterator<Item = &'static Spec>) -> Self {
        let mut specs: Vec<_> = specs.into_iter().collect();
        specs.sort_by_key(|s| s.name);
        Library { specs, interfaces: None, missing: None }
    }

    /// The same library, which knows the addresses of the machine's interfaces.
    pub fn with_interfaces(self, interfaces: Interfaces) -> Self {
        Library { interfaces: Some(interfaces), ..self }
    }

    /// The same library, which knows what to tell of classes that it lacks.
    pub fn with_missing(self, missing: fn(&str) -> Option<String>) -> Self {
        Library { missing: Some(missing), ..self }
    }

    /// What to tell who uses the class `name`, which the library lacks.
    pub fn missing(&self, name: &str) -> Option<String> {
        self.missing.and_then(|missing| missing(name))
    }

    /// What the machine says of its interfaces, if anybody can tell.
    pub fn interfaces(&self) -> Option<Interfaces> {
        self.interfaces
    }

    /// The class called `name`, by its own name or an alias.
    pub fn get(&self, name: &str) -> Option<&'static Spec> {
        self.specs.iter().find(|s| s.name == name || s.aliases.contains(&name)).copied()
    }

    /// All classes, by name.
    pub fn iter(&self) -> impl Iterator<Item = &'static Spec> + '_ {
        self.specs.iter().copied()
    }
}

/// What the language asks of a library.
impl Classes for Library {
    fn get(&self, name: &str) -> Option<ClassInfo> {
        let spec = Library::get(self, name)?;
        Some(ClassInfo::new(spec.name, spec.ports, spec.processing).with_flow(spec.flow))
    }

    fn names(&self) -> Vec<String> {
        self.iter()
            .flat_map(|s| [s.name].into_iter().chain(s.aliases.iter().copied()))
            .map(str::to_owned)
            .collect()
    }

    fn missing(&self, name: &str) -> Option<String> {
        Library::missing(self, name)
    }

    fn has_package(&self, name: &str) -> bool {
        // Specialising compilers of configurations ask for themselves; the optimiser does their work.
        matches!(name, "fastclassifier" | "fastclick" | "click")
    }
}
