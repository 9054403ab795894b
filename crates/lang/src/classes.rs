//! What the language must know of element classes. The engine and the element library provide it.

/// The static facts of one element class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassInfo {
    /// The class's own name; differs from the name asked for if that is an alias.
    pub name: String,
    /// How many ports, as `inputs/outputs`: see [`crate::ports::PortCount`].
    pub port_count: String,
    /// Push, pull or agnostic, as `inputs/outputs`: see [`crate::ports::ProcessingCode`].
    pub processing: String,
    /// Which inputs reach which outputs: see [`crate::flow::FlowCode`].
    pub flow_code: String,
}

impl ClassInfo {
    /// A class with the usual flow code `x/x`: every input reaches every output.
    pub fn new(name: &str, port_count: &str, processing: &str) -> Self {
        Self {
            name: name.into(),
            port_count: port_count.into(),
            processing: processing.into(),
            flow_code: "x/x".into(),
        }
    }

    /// The same class with another flow code.
    #[must_use]
    pub fn with_flow(mut self, flow_code: &str) -> Self {
        self.flow_code = flow_code.into();
        self
    }
}

/// The classes and packages a router offers.
pub trait Classes {
    /// The class called `name`, or whose alias is `name`.
    fn get(&self, name: &str) -> Option<ClassInfo>;

    /// All names that [`Classes::get`] knows, for proposals to people who mistyped one.
    fn names(&self) -> Vec<String>;

    /// What to tell who uses a class that [`Classes::get`] does not know, if there is something to tell.
    fn missing(&self, _name: &str) -> Option<String> {
        None
    }

    /// Whether a name that nothing else has is taken for a class, as by tools for routers that they do not know.
    fn takes_any(&self) -> bool {
        false
    }

    /// Whether `require(package name)` is satisfied.
    fn has_package(&self, _name: &str) -> bool {
        false
    }
}

/// A fixed list of classes without aliases and packages.
#[derive(Clone, Debug, Default)]
pub struct ClassList(pub Vec<ClassInfo>);

impl Classes for ClassList {
    fn get(&self, name: &str) -> Option<ClassInfo> {
        self.0.iter().find(|c| c.name == name).cloned()
    }

    fn names(&self) -> Vec<String> {
        self.0.iter().map(|c| c.name.clone()).collect()
    }
}
