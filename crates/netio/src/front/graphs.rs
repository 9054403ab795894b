//! Programs of graphs, which packets in transit go through before they are taken, or left to the kernel at tcx.

use super::aside::Known;
use super::code::{Maps, passing, taking};
use super::{Front, PORTS, Place, Reason};
use crate::{Error, ErrorKind, Result};
use causeway_bpf::{Code, Map, MapKind, Program};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The programs of the graphs of ports at one place, and those that take and pass what they give up.
#[derive(Debug)]
pub(super) struct Graphs {
    programs: Map,
    takers: Map,
    doubters: Map,
    /// At XDP, where frames bring luggage.
    roomless: Option<Map>,
    has_luggage: bool,
    known: Mutex<Known>,
}

impl Graphs {
    /// Without a program of any graph.
    pub fn new(maps: &Maps<'_>, place: Place) -> Result<Graphs> {
        let programs = Map::new(MapKind::ProgArray, "graphs", 4, 4, PORTS)?;
        let given_up = match place {
            Place::Tcx if !maps.luggage => vec![passing(maps, place, Reason::GivenUp)?],
            _ => vec![taking(maps, place, false)?, taking(maps, place, true)?],
        };
        let takers = array_of("take", place, &given_up)?;
        let doubters = array_of("doubt", place, &[passing(maps, place, Reason::SelfCheck)?])?;
        let no_room = || array_of("room", place, &[passing(maps, place, Reason::NoRoom)?]);
        let roomless = (maps.luggage && place == Place::Xdp).then(no_room).transpose()?;
        let (has_luggage, known) = (maps.luggage, Mutex::default());
        Ok(Graphs { programs, takers, doubters, roomless, has_luggage, known })
    }

    /// Whether packets bring luggage.
    pub fn has_luggage(&self) -> bool {
        self.has_luggage
    }

    /// The programs by number of the port.
    pub fn programs(&self) -> BorrowedFd<'_> {
        self.programs.as_fd()
    }

    /// Locked behind the claims.
    #[expect(clippy::disallowed_methods, reason = "the control side; programs take no lock")]
    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The interface is a port from now on, with this number.
    pub fn begin(&self, ifindex: u32, number: u32) -> Result<()> {
        match self.known().in_force(ifindex) {
            Some(program) => self.put(number, program),
            None => Ok(()),
        }
    }

    /// The port with this number has this program.
    pub(super) fn put(&self, number: u32, program: &Program) -> Result<()> {
        self.programs.insert_u32(number, program.as_fd().as_raw_fd() as u32)
    }

    /// No port has this number any more.
    pub fn end(&self, number: u32) {
        // There may be no program.
        let _ = self.programs.remove(&number.to_ne_bytes());
    }
}

impl Front {
    /// What packets in transit of an interface go through, now or once it is a port at this place; at XDP a program of
    /// [`ProgramKind::XdpFragments`](causeway_bpf::ProgramKind::XdpFragments) that gets frames in one piece only. It forwards
    /// a packet, or gives it up and goes on in a program of [`Front::takers`]. Without one they are taken, or
    /// at tcx left to the kernel; those at XDP are taken as well while somebody has their programs
    /// [stand aside](Front::stand_aside).
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if there is no room for graphs; else what bpf(2) says.
    pub fn set_graph(&self, place: Place, ifindex: u32, program: Option<Arc<Program>>) -> Result<()> {
        let graphs = self.graphs(place)?;
        let claims = self.claims();
        let number = claims.get(&ifindex).filter(|record| record.place == place).map(|record| record.graph);
        let mut known = graphs.known();
        match program {
            Some(program) => {
                if let Some(number) = number.filter(|_| !known.is_aside()) {
                    graphs.put(number, &program)?;
                }
                known.programs.insert(ifindex, program);
            }
            None => {
                known.programs.remove(&ifindex);
                number.into_iter().for_each(|number| graphs.end(number));
            }
        }
        Ok(())
    }

    /// An array of programs. The first takes a frame as it came, which without a socket is the kernel's, the second one that a
    /// program has written to, which is dropped then. At tcx luggage is part of the packet, so what brings any is for the second;
    /// the first word of [`sk_buff::CB`](causeway_bpf::sk_buff::CB) says how long it is. Where there is none there is one alone, which leaves a packet to the kernel.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if there is no room for graphs.
    pub fn takers(&self, place: Place) -> Result<&Map> {
        self.graphs(place).map(|graphs| &graphs.takers)
    }

    /// Why frames that programs of graphs redirect, and that are lost on the way out, are not counted, if they are not.
    #[must_use]
    pub fn why_losses_are_unknown(&self) -> Option<&Error> {
        self.losses.as_ref()?.as_ref().err()
    }

    /// An array of one program, which leaves a packet to the kernel that the kernel would forward otherwise.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if there is no room for graphs.
    pub fn doubters(&self, place: Place) -> Result<&Map> {
        self.graphs(place).map(|graphs| &graphs.doubters)
    }

    /// An array of one program, which leaves a frame to the kernel that has no room for its luggage. None where no frames bring any;
    /// at tcx the kernel has none of the packets that do.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if there is no room for graphs.
    pub fn roomless(&self, place: Place) -> Result<Option<&Map>> {
        Ok(self.graphs(place)?.roomless.as_ref())
    }

    pub(super) fn graphs(&self, place: Place) -> Result<&Graphs> {
        let none = || Error::new(ErrorKind::Unsupported, "the programs at the ports know no graphs");
        self.side(place).and_then(|side| side.graphs.as_ref()).ok_or_else(none)
    }
}

/// An array of programs.
fn array_of(name: &str, place: Place, codes: &[Code]) -> Result<Map> {
    let array = Map::new(MapKind::ProgArray, name, 4, 4, codes.len() as u32)?;
    for (number, code) in (0..).zip(codes) {
        let program = Program::load(place.kind(), &format!("causeway_{name}"), code)?;
        array.insert_u32(number, program.as_fd().as_raw_fd() as u32)?;
    }
    Ok(array)
}
