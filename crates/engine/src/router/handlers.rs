//! Reading and writing the handlers of elements: where they can be answered without a worker, there.

use super::Router;
use super::ask::Limit;
use crate::access::Access;
use crate::driver::{Command, Driver};
use crate::element::{ControlSide, Pieces};
use crate::error::NoAnswer;
use crate::handler::{self, Answer, HandlerError};
use crate::measure::Across;
use crate::node::Place;
use crate::spec::HandlerDoc;
use crate::worker::Worker;
use std::sync::{MutexGuard, PoisonError};

impl Router {
    /// Reads handler `name` of `element`. When the graph is replicated, the values of the workers make one in the way
    /// that the handler's declaration says.
    ///
    /// # Errors
    /// There is no such element or handler, it cannot be read or takes no parameters, the element says why not, or a
    /// worker does not answer.
    pub fn read(&self, element: &str, name: &str, arg: &str) -> Result<String, HandlerError> {
        let declared = self.handler(element, name);
        if declared.is_some_and(|handler| handler.private) {
            return Err(HandlerError::NoHandler(format!("{element}.{name}")));
        }
        if let (Some(mut side), Some(handler)) = (self.control_side(element), declared)
            && handler.access.reads()
            && (arg.is_empty() || handler.access.takes_parameters())
            && let Some(value) = side.read(name, arg)
        {
            return value.map_err(HandlerError::Failed);
        }
        let places = self.places(element)?;
        let ask = |place: &Place| {
            let (node, name, arg) = (place.node, name.to_owned(), arg.to_owned());
            (place.worker, move |w: &mut Worker| handler::ask(&mut w.core, node, &name, &arg))
        };
        let answers = self.call_each(Limit::new(), places.iter().map(ask))?;
        let mut values = Vec::new();
        for (place, answer) in places.iter().zip(answers) {
            values.push(match answer? {
                Answer::Text(text) => text,
                Answer::Pieces(pieces) => self.read_on(*place, pieces)?,
            });
        }
        Ok(declared.map_or(Across::First, |h| h.across).combine(values))
    }

    /// Reads what is long in pieces, between which the worker of the element at `place` takes steps. The time limit is one
    /// for each piece: a worker that goes on is not stuck.
    fn read_on(&self, place: Place, mut pieces: Box<dyn Pieces>) -> Result<String, NoAnswer> {
        loop {
            let go_on = move |driver: &mut Driver| {
                let more = handler::go_on(&mut driver.worker.core, place.node, &mut *pieces);
                (more, pieces)
            };
            let more;
            (more, pieces) = self.ask(Command::Piece, place.worker, go_on)?.wait(Limit::new())?;
            if !more {
                return Ok(pieces.text());
            }
        }
    }

    /// Writes handler `name` of `element`, on every worker that has it.
    ///
    /// # Errors
    /// There is no such element or handler, it cannot be written, the element says why not, or a worker does not answer:
    /// those before it have it then.
    pub fn write(&self, element: &str, name: &str, value: &str) -> Result<(), HandlerError> {
        if let Some(mut side) = self.control_side(element)
            && self.handler(element, name).is_some_and(|h| h.access.writes())
            && let Some(done) = side.write(name, value)
        {
            return done.map_err(HandlerError::Failed);
        }
        let limit = Limit::new();
        for place in self.places(element)? {
            let (name, value) = (name.to_owned(), value.to_owned());
            let tell = move |w: &mut Worker| {
                let done = handler::write(&mut w.core, place.node, &name, &value);
                (done, std::mem::take(&mut w.core.disposed))
            };
            // The second is dropped here, and takes the worker no time.
            let (done, _) = self.call(place.worker, limit, tell)?;
            done?;
        }
        Ok(())
    }

    /// What can be done with handler `name` of `element`, which may have more than its class; none if it has no such handler.
    ///
    /// # Errors
    /// If there is no such element, or its worker does not answer.
    pub fn access(&self, element: &str, name: &str) -> Result<Option<Access>, HandlerError> {
        let private = self.handler(element, name).is_some_and(|handler| handler.private);
        let first = self.places(element)?.into_iter().next().filter(|_| !private);
        let Some(place) = first else { return Ok(None) };
        let name = name.to_owned();
        let access = move |w: &mut Worker| handler::access(&w.core, place.node, &name);
        Ok(self.call(place.worker, Limit::new(), access)?)
    }

    /// The declaration of a handler.
    fn handler(&self, element: &str, name: &str) -> Option<&'static HandlerDoc> {
        let element = &self.plan.elements[self.plan.find(element)?];
        let spec = self.library.get(&element.class)?;
        handler::find(spec, name, spec.numbered(element.pulled_inputs.len(), element.pulled_outputs.len()))
    }

    #[expect(clippy::disallowed_methods, reason = "the control side")]
    fn control_side(&self, element: &str) -> Option<MutexGuard<'_, Box<dyn ControlSide>>> {
        self.control_sides.get(element).map(|side| side.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn places(&self, element: &str) -> Result<Vec<Place>, HandlerError> {
        self.index.get(element).cloned().ok_or_else(|| HandlerError::NoElement(element.to_owned()))
    }
}
