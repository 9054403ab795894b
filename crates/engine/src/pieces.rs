//! Long tables, read piece by piece.
//!
//! What a read handler shows may be as long as a table has room for, and no worker has the time to write that down. So an
//! element only lets some entries be copied at a time ([`Element::read_in_pieces`]); between two pieces its worker takes a
//! step, and whoever asked puts the pieces together and writes the text. Entries that come or go meanwhile may be shown or
//! not; all others are.

use crate::cx::Cx;
use crate::element::Element;
pub use crate::element::Pieces;

/// Entries that are copied at a time, about: some microseconds of a worker.
pub const PIECE: usize = 256;

/// The answer of a handler of elements of type `E`: `copy` adds about [`PIECE`] entries, on from where it stopped, and says
/// whether there are more; `show` writes all of them down.
pub fn in_pieces<E: Element, T: Send + 'static>(
    copy: impl FnMut(&mut E, &mut Vec<T>, &mut Cx<'_>) -> bool + Send + 'static,
    show: impl FnOnce(Vec<T>) -> String + Send + 'static,
) -> Box<dyn Pieces> {
    Box::new(Copies { copy, show, pieces: Vec::new(), element: std::marker::PhantomData::<fn(&mut E)> })
}

struct Copies<E, T, C, S> {
    copy: C,
    show: S,
    /// By themselves, since a vector of all would be moved when it grows.
    pieces: Vec<Vec<T>>,
    element: std::marker::PhantomData<fn(&mut E)>,
}

impl<E, T, C, S> Pieces for Copies<E, T, C, S>
where
    E: Element,
    T: Send,
    C: FnMut(&mut E, &mut Vec<T>, &mut Cx<'_>) -> bool + Send,
    S: FnOnce(Vec<T>) -> String + Send,
{
    fn go_on(&mut self, element: &mut dyn Element, cx: &mut Cx<'_>) -> bool {
        let Some(element) = element.downcast_mut::<E>() else { return false };
        let mut piece = Vec::with_capacity(PIECE);
        let more = (self.copy)(element, &mut piece, cx);
        self.pieces.push(piece);
        more
    }

    fn text(self: Box<Self>) -> String {
        (self.show)(self.pieces.into_iter().flatten().collect())
    }
}
