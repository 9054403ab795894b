//! Who attaches ports again: interfaces are deleted, made anew, renamed and moved while the router runs.

use crate::control::Ask;
use anyhow::{Context, Result, bail};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A port that is there: its name and its interface's index.
pub type Present = (String, u32);

/// Waits between tries to attach a port that cannot be attached.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Replaces the graph when other ports are there than before.
pub struct Attendant {
    desk: Arc<dyn Ask + Send + Sync>,
    /// The ports of the graph that runs.
    attached: Vec<Present>,
    /// The graph of the ports of these names.
    graph: Graph,
}

/// Writes the graph of the ports that are there, by their names.
type Graph = Box<dyn Fn(&[String]) -> String + Send>;

impl Attendant {
    /// Starts a thread that replaces the graph of the ports `attached` whenever `changes` names others, by what
    /// `graph` writes. It ends when there is nobody left to name any.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(
        desk: Arc<dyn Ask + Send + Sync>,
        attached: Vec<Present>,
        graph: impl Fn(&[String]) -> String + Send + 'static,
        changes: Receiver<Vec<Present>>,
    ) -> Result<(Arc<Mutex<Attendant>>, JoinHandle<()>)> {
        let wanted = attached.clone();
        let attendant = Arc::new(Mutex::new(Attendant { desk, attached, graph: Box::new(graph) }));
        let shared = attendant.clone();
        let thread = std::thread::Builder::new().name("ports".to_owned());
        let thread = thread.spawn(move || run(&shared, wanted, &changes)).context("cannot start a thread")?;
        Ok((attendant, thread))
    }

    /// The ports of the graph that runs.
    pub fn attached(&self) -> &[Present] {
        &self.attached
    }

    /// Closes all ports for a while: what was counted goes on when they are attached again.
    ///
    /// # Errors
    /// What the graph says that has none.
    pub fn detach_all(&mut self) -> Result<()> {
        self.put(Vec::new())
    }

    /// First the ports go that are not there any more, or are another interface now; then the new ones come.
    ///
    /// # Errors
    /// What is said of the ports that cannot be attached.
    pub fn attach(&mut self, wanted: &[Present]) -> Result<()> {
        let staying: Vec<Present> = self.attached.iter().filter(|p| wanted.contains(p)).cloned().collect();
        self.replace(staying)?;
        let missing = wanted.iter().filter(|p| !self.attached.contains(p)).cloned().collect::<Vec<_>>();
        // One by one, so that one which cannot be attached keeps no other out.
        let failed = missing.iter().filter_map(|port| {
            let with = |p: &&Present| *p == port || self.attached.contains(*p);
            let more = wanted.iter().filter(with).cloned().collect();
            self.replace(more).err().map(|why| why.to_string())
        });
        let failed: Vec<String> = failed.collect();
        if failed.is_empty() { Ok(()) } else { bail!("{}", failed.join("; ")) }
    }

    fn replace(&mut self, ports: Vec<Present>) -> Result<()> {
        if ports == self.attached {
            return Ok(());
        }
        let before = self.attached.clone();
        self.put(ports)?;
        let only = |of: &[Present], than: &[Present]| {
            let names = of.iter().filter(|p| !than.contains(p)).map(|(name, _)| name.clone());
            names.collect::<Vec<_>>().join(", ")
        };
        let (gone, come) = (only(&before, &self.attached), only(&self.attached, &before));
        if !gone.is_empty() {
            log::warn!(code = "port-detached"; "{gone}: not attached any more");
        }
        if !come.is_empty() {
            log::info!(code = "port-attached"; "{come}: attached again");
        }
        Ok(())
    }

    /// Replaces the graph by that of these ports. Without any, what was counted waits for the next.
    fn put(&mut self, ports: Vec<Present>) -> Result<()> {
        let names: Vec<String> = ports.iter().map(|(name, _)| name.clone()).collect();
        if ports.is_empty() {
            self.desk.keep_counts();
        }
        self.desk.own_graph((self.graph)(&names))?;
        self.attached = ports;
        Ok(())
    }
}

/// Attaches what `changes` name.
fn run(attendant: &Mutex<Attendant>, mut wanted: Vec<Present>, changes: &Receiver<Vec<Present>>) {
    let mut wait = FIRST_WAIT;
    loop {
        // Also without a change: who was to take the ports over may have left some closed.
        let next = changes.recv_timeout(wait);
        let is_new = next.is_ok();
        match next {
            Ok(other) => wanted = changes.try_iter().last().unwrap_or(other),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let attached = attendant.lock().unwrap_or_else(PoisonError::into_inner).attach(&wanted);
        wait = match attached {
            Ok(()) => LONGEST_WAIT,
            Err(why) => {
                log::warn!(code = "port-not-attached"; "{}; trying again", why.to_string().trim().replace('\n', "; "));
                if wait == LONGEST_WAIT && is_new { FIRST_WAIT } else { (wait * 2).min(LONGEST_WAIT) }
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Question;
    use causeway_engine::handler::HandlerError;
    use std::sync::mpsc::channel;

    /// Takes graphs down; refuses those of some interface.
    #[derive(Default)]
    struct Desk {
        graphs: Mutex<Vec<String>>,
        refused: Mutex<Option<&'static str>>,
    }

    impl Ask for Desk {
        fn ask(&self, question: Question) -> Result<String, HandlerError> {
            panic!("nothing is asked: {question:?}")
        }

        fn own_graph(&self, text: String) -> Result<(), HandlerError> {
            if self.refused.lock().unwrap().is_some_and(|name| text.contains(name)) {
                return Err(HandlerError::Failed("no such interface".into()));
            }
            self.graphs.lock().unwrap().push(text);
            Ok(())
        }
    }

    fn ports(list: &[(&str, u32)]) -> Vec<Present> {
        list.iter().map(|(name, index)| ((*name).to_owned(), *index)).collect()
    }

    #[test]
    fn what_has_changed_is_detached_before_it_is_attached_again() {
        let desk = Arc::new(Desk::default());
        let mut attendant = Attendant {
            desk: desk.clone(),
            attached: ports(&[("a", 3), ("b", 4)]),
            graph: Box::new(|names| format!("({},)", names.join(",)("))),
        };
        let graphs = || std::mem::take(&mut *desk.graphs.lock().unwrap());
        attendant.attach(&ports(&[("a", 3), ("b", 4)])).unwrap();
        assert!(graphs().is_empty(), "nothing has changed");
        attendant.attach(&ports(&[("a", 3), ("b", 9)])).unwrap();
        let made = graphs();
        assert_eq!(made.len(), 2);
        assert!(!made[0].contains("(b,") && made[1].contains("(b,"), "{made:?}");
        attendant.attach(&ports(&[("b", 9)])).unwrap();
        assert_eq!(graphs().len(), 1);
        *desk.refused.lock().unwrap() = Some("(c,");
        assert!(attendant.attach(&ports(&[("c", 7), ("b", 9), ("d", 8)])).is_err());
        let made = graphs();
        assert_eq!(made, ["(b,)(d,)"], "the others come");
    }

    #[test]
    fn a_port_that_cannot_be_attached_is_tried_again() {
        let desk = Arc::new(Desk { refused: Mutex::new(Some("(b,")), ..Desk::default() });
        let (sender, changes) = channel();
        let graph = |names: &[String]| format!("({},)", names.join(",)("));
        let (_, thread) = Attendant::start(desk.clone(), ports(&[("a", 3)]), graph, changes).unwrap();
        sender.send(ports(&[("a", 3), ("b", 4)])).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        assert!(desk.graphs.lock().unwrap().is_empty());
        *desk.refused.lock().unwrap() = None;
        let made = (0..1000).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            !desk.graphs.lock().unwrap().is_empty()
        });
        assert!(made, "tried again by itself");
        drop(sender);
        thread.join().unwrap();
    }
}
