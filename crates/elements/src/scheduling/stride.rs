//! Stride scheduling (Waldspurger and Weihl, MIT/LCS/TM-528, 1995) of ports: whoever has more tickets comes more often.

use causeway_engine::prelude::*;
use causeway_engine::spec::{ArgDoc, HandlerDoc};

/// How far a port with one ticket advances.
const STRIDE_1: u32 = 1 << 16;
const MOST_TICKETS: u32 = 1 << 15;

/// Arguments of the classes.
pub(crate) const ARGS: &[ArgDoc] =
    &[rest("TICKETS", "number", "tickets of each port, up to 32768; 0 = it never comes")];

/// Handlers of the classes.
pub(crate) const HANDLERS: &[HandlerDoc] = &[reads_writes("tickets#", "tickets of that port"), CONFIG];

#[derive(Clone, Debug, Default)]
struct Client {
    tickets: u32,
    stride: u32,
    /// It wraps.
    pass: u32,
}

/// The ports with tickets, in the order in which they come.
#[derive(Clone, Debug)]
pub(crate) struct Strides {
    clients: Vec<Client>,
    order: Vec<usize>,
}

impl Strides {
    /// Reads tickets for `ports` ports, which are called `kind`.
    pub fn configure(conf: &mut Conf<'_>, ports: usize, kind: &str) -> Strides {
        let texts = conf.rest();
        if texts.len() != ports {
            conf.error(format!("need {ports} arguments, one per {kind} port"));
        }
        let mut strides = Strides { clients: vec![Client::default(); ports], order: Vec::new() };
        let read = if texts.len() == ports { ports } else { 0 };
        for (i, text) in texts.iter().enumerate().take(read) {
            match text.trim().parse::<i64>() {
                Err(_) => conf.error(format!("argument {i} should be number of tickets (integer)")),
                Ok(n) if n < 0 => conf.error(format!("argument {i} (number of tickets) must be >= 0")),
                Ok(n) => {
                    if n > MOST_TICKETS.into() {
                        conf.warn(&format!("{kind} {i}'s tickets reduced to {MOST_TICKETS}"));
                    }
                    strides.clients[i].set(u32::try_from(n).unwrap_or(u32::MAX));
                    strides.advance(i);
                }
            }
        }
        strides.order_all();
        strides
    }

    fn order_all(&mut self) {
        self.order.clear();
        // Backwards, so that of equals the first comes first.
        for i in (0..self.clients.len()).rev().filter(|&i| self.clients[i].tickets > 0).collect::<Vec<_>>() {
            self.insert(i);
        }
    }

    /// Whose turn it is after `before` others.
    pub fn nth(&self, before: usize) -> Option<usize> {
        self.order.get(before).copied()
    }

    /// A port has had its turn.
    pub fn advance(&mut self, port: usize) {
        let client = &mut self.clients[port];
        client.pass = client.pass.wrapping_add(client.stride);
    }

    /// Puts the first `n` in their new places, once they have advanced.
    pub fn settle(&mut self, n: usize) {
        // Places are few, and nothing is allocated: each goes to the end of those before it.
        for _ in 0..n {
            let port = self.order.remove(0);
            self.order.push(port);
        }
        let kept = self.order.len() - n;
        for at in kept..self.order.len() {
            let port = self.order[at];
            let place = self.place(port, at);
            self.order[place..=at].rotate_right(1);
        }
    }

    fn insert(&mut self, port: usize) {
        let place = self.place(port, self.order.len());
        self.order.insert(place, port);
    }

    /// Where among the first `n` in order `port` belongs: before those that are no further.
    fn place(&self, port: usize, n: usize) -> usize {
        let pass = self.clients[port].pass;
        let further = |&other: &usize| (pass.wrapping_sub(self.clients[other].pass) as i32) <= 0;
        self.order[..n].iter().position(further).unwrap_or(n)
    }

    /// The tickets of all ports, as the configuration has them.
    pub fn text(&self) -> String {
        self.clients.iter().map(|c| c.tickets.to_string()).collect::<Vec<_>>().join(", ")
    }

    /// Answers `tickets#`.
    pub fn read(&self, handler: &str) -> Result<String, Error> {
        Ok(self.client(handler)?.1.tickets.to_string())
    }

    /// Writes `tickets#`.
    pub fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        let tickets: i64 = cx.value(handler, value).map_err(|_| "tickets value must be integer")?;
        let tickets =
            u32::try_from(tickets.min(MOST_TICKETS.into())).map_err(|_| "number of tickets must be >= 0")?;
        let (port, before) = self.client(handler).map(|(port, client)| (port, client.tickets))?;
        self.clients[port].set(tickets);
        if tickets == 0 {
            self.order.retain(|&other| other != port);
        } else if before == 0 {
            let first = self.nth(0).map(|first| self.clients[first].pass);
            self.clients[port].pass = first.map_or(0, |pass| pass.wrapping_add(self.clients[port].stride));
            self.insert(port);
        }
        cx.set_config(self.text());
        Ok(())
    }

    /// Takes the tickets of `new`; who has come how often stays.
    pub fn take(&mut self, new: &Strides) {
        for (client, new) in self.clients.iter_mut().zip(&new.clients) {
            client.set(new.tickets);
        }
        self.order_all();
    }

    fn client(&self, handler: &str) -> Result<(usize, &Client), Error> {
        let port = handler.strip_prefix("tickets").and_then(|n| n.parse::<usize>().ok());
        port.and_then(|port| Some((port, self.clients.get(port)?)))
            .ok_or_else(|| Error::new(format!("no port for {handler}")))
    }
}

impl Client {
    fn set(&mut self, tickets: u32) {
        self.tickets = tickets.min(MOST_TICKETS);
        self.stride = STRIDE_1.checked_div(self.tickets).unwrap_or(0);
    }
}
