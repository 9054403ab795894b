//! Ports of the tester.

use crate::frame::{FCS, Template};
use crate::namespace::Home;
use crate::network::Network;
use anyhow::{Context, Result, ensure};
use causeway_netio::completion::Clock;
use causeway_netio::{Port, Rx, Tx};
use causeway_packet::wire::MacAddr;
use causeway_results::traffic::Stream;

/// A port of the tester, and what is on its other side.
pub struct Attached {
    /// Which one it is, for people.
    pub name: String,
    pub(super) rx: Box<dyn Rx>,
    pub(super) tx: Box<dyn Tx>,
    pub(super) mac: MacAddr,
    pub(super) gateway: MacAddr,
    pub(super) hosts4: Option<Network>,
    pub(super) hosts6: Option<Network>,
    pub(super) max_frame: usize,
    pub(super) stamped: bool,
    pub(super) home: Home,
}

impl Attached {
    /// The first queue of a port; `gateway` is the device's Ethernet address there, `hosts` are behind it.
    ///
    /// # Errors
    /// If it has several queues, of which frames would be missed, or none. The calling thread is in the network namespace
    /// of the port.
    pub fn new(port: Port, gateway: MacAddr, hosts: [Option<Network>; 2]) -> Result<Attached> {
        let name = port.name;
        ensure!(
            port.queues.len() == 1,
            "{name} has {} queues; set it to one with ethtool -L",
            port.queues.len()
        );
        let queue = port.queues.into_iter().next().with_context(|| format!("{name} has no queues"))?;
        let [hosts4, hosts6] = hosts;
        Ok(Attached {
            rx: queue.rx,
            tx: queue.tx,
            mac: MacAddr(port.mac),
            gateway,
            hosts4,
            hosts6,
            // Memory ports have no MTU.
            max_frame: if port.mtu == 0 {
                port.capabilities.max_frame as usize
            } else {
                port.mtu as usize + 14
            },
            stamped: port.capabilities.rx_timestamps == Some(Clock::Realtime),
            home: Home::here()?,
            name,
        })
    }

    /// Whether the port can carry what a template makes of a stream.
    pub(super) fn carries(&self, template: &Template, stream: &Stream) -> Result<()> {
        let (longest, most) = (template.longest() + FCS, self.max_frame + FCS);
        ensure!(
            longest <= most,
            "stream '{}': a frame of {longest} bytes is longer than {} can carry, {most}: raise its MTU",
            stream.name,
            self.name
        );
        Ok(())
    }
}
