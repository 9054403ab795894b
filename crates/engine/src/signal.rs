//! Notifiers: one bit each, the tasks to wake when it turns on, and the notifiers that then turn on as well.

/// Number of a notifier on its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SignalId(pub usize);

#[derive(Default)]
struct Signal {
    active: bool,
    /// Whether it stays off whatever its element's neighbours say.
    held: bool,
    listeners: Vec<usize>,
    relays: Vec<SignalId>,
}

/// The notifiers of one worker.
#[derive(Default)]
pub(crate) struct Signals(Vec<Signal>);

impl Signals {
    /// A new notifier.
    pub fn add(&mut self, active: bool) -> SignalId {
        self.0.push(Signal { active, ..Signal::default() });
        SignalId(self.0.len() - 1)
    }

    /// Wakes the task of `node` whenever `id` turns on.
    pub fn listen(&mut self, id: SignalId, node: usize) {
        if let Some(s) = self.0.get_mut(id.0).filter(|s| !s.listeners.contains(&node)) {
            s.listeners.push(node);
        }
    }

    /// Turns `to` on whenever `id` turns on, unless it is held.
    pub fn relay(&mut self, id: SignalId, to: SignalId) {
        if let Some(s) = self.0.get_mut(id.0).filter(|s| !s.relays.contains(&to)) {
            s.relays.push(to);
        }
    }

    /// Holds a notifier off, or lets go of it; says whether it was held.
    pub fn hold(&mut self, id: SignalId, held: bool) -> bool {
        self.0.get_mut(id.0).is_some_and(|s| std::mem::replace(&mut s.held, held))
    }

    pub fn is_held(&self, id: SignalId) -> bool {
        self.0.get(id.0).is_some_and(|s| s.held)
    }

    /// Sets a notifier; says whether that changed it.
    pub fn set(&mut self, id: SignalId, active: bool) -> bool {
        self.0.get_mut(id.0).is_some_and(|s| std::mem::replace(&mut s.active, active) != active)
    }

    pub fn is_active(&self, id: SignalId) -> bool {
        self.0.get(id.0).is_none_or(|s| s.active)
    }

    pub fn listeners(&self, id: SignalId) -> &[usize] {
        self.0.get(id.0).map_or(&[], |s| &s.listeners)
    }

    pub fn relays(&self, id: SignalId) -> &[SignalId] {
        self.0.get(id.0).map_or(&[], |s| &s.relays)
    }
}
