//! Handlers that elements call while packets pass.

use crate::core::Core;
use crate::error::Error;
use crate::node::Call;

/// Handlers that elements may call after one delivery before they are taken to call each other without end.
const MAX_CALLS: usize = 1 << 10;

impl Core {
    /// Calls the handlers that elements asked for.
    #[inline]
    pub fn run_calls(&mut self) {
        if !self.calls.is_empty() && !std::mem::replace(&mut self.calling, true) {
            // What the handlers emit is delivered at once, what is under way afterwards.
            self.aside(Self::make_calls);
            self.calling = false;
        }
    }

    /// Calls the handlers that elements asked for; those that they cause in turn come after them.
    #[cold]
    fn make_calls(&mut self) {
        let mut left = MAX_CALLS;
        while let Some(Call { node, handler, value }) = self.calls.pop_front() {
            let caller = self.nodes[node].name.clone();
            let done = match left.checked_sub(1) {
                Some(fewer) => {
                    left = fewer;
                    self.write_from(&caller, &handler, &value)
                }
                None => Err(Error::new("handlers call each other without end")),
            };
            if let Err(why) = done {
                log::error!("{caller}: calling '{handler}': {why}");
            }
        }
    }

    /// Writes `value` to `handler` of an element whose name is looked up from `caller`'s compound outwards.
    fn write_from(&mut self, caller: &str, handler: &str, value: &str) -> Result<(), Error> {
        let (node, name) = self.find_from(caller, handler)?;
        crate::handler::write(self, node, name, value).map_err(Error::caused_by)
    }

    /// The element of `element.handler`, looked up from `caller`'s compound outwards, and the handler's name.
    pub(crate) fn find_from<'h>(&self, caller: &str, handler: &'h str) -> Result<(usize, &'h str), Error> {
        let (element, name) = handler.rsplit_once('.').ok_or("it names no element")?;
        let mut scope = caller;
        loop {
            scope = scope.rfind('/').map_or("", |i| &scope[..i]);
            let full = if scope.is_empty() { element.to_owned() } else { format!("{scope}/{element}") };
            let found = self.nodes.iter().position(|n| *n.name == *full);
            if found.is_some() || scope.is_empty() {
                return found
                    .map(|node| (node, name))
                    .ok_or_else(|| Error::new(format!("no element named '{element}'")));
            }
        }
    }
}
