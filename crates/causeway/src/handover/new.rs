//! The process that takes over.

use super::message::{Line, Missing};
use super::progress::Progress;
use super::{AT_TCX, AT_XDP, CODE, VERSION};
use crate::cli::Attach;
use crate::control::{Claim, Record, Undo, running, upgrade_socket};
use crate::ports::Port;
use anyhow::{Context, Result, bail};
use causeway_bpf::{XdpLink, XdpMode};
use causeway_netio::front::Front;
use causeway_netio::interface::Interface;
use causeway_netio::offload::{self, Offload};
use causeway_packet::ledger::census;
use rustix::stdio::dup2_stderr;
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long the running router may take to answer, to hand over, and to end.
const ANSWER: Duration = Duration::from_secs(10);
const HANDING: Duration = Duration::from_secs(20);
const ENDING: Duration = Duration::from_secs(5);

/// A process that takes the place of a running router.
pub struct New {
    line: Line,
    old: Record,
    /// The name, once it is this process's.
    pub claim: Arc<Claim>,
    /// Where the running router serves metrics.
    metrics: Option<SocketAddr>,
    /// Where it logs to.
    log: Option<OwnedFd>,
    /// Tells it how far this one is, if it hears that.
    progress: Option<Progress>,
}

/// Sockets that clients know.
pub struct Sockets {
    pub control: OwnedFd,
    /// Where it is asked by the next one.
    pub upgrade: OwnedFd,
    pub metrics: Option<OwnedFd>,
}

impl New {
    /// Asks the router called `name` in the folder `dir` for its place at `ports`.
    ///
    /// # Errors
    /// It does not run here, does not answer, or refuses.
    pub fn ask(dir: &Path, name: &str, ports: &[Port]) -> Result<New> {
        let Some(old) = running(dir, name) else {
            bail!(
                "no router called '{name}' runs here whose place could be taken; start one without --take-over"
            );
        };
        let socket = UnixStream::connect(upgrade_socket(dir, name));
        let socket = socket.with_context(|| {
            format!(
                "process {} of router '{name}' cannot be asked for its place: stop it, and start another",
                old.pid
            )
        })?;
        let claim = Arc::new(Claim::to_name_of(dir, &old)?);
        let mut new = New { line: Line::new(socket)?, old, claim, metrics: None, log: None, progress: None };
        let place = |port: &Port| if port.attach == Attach::Xdp { AT_XDP } else { AT_TCX };
        let ports: Vec<(&str, u32, &str)> =
            ports.iter().map(|p| (p.name.as_str(), p.index, place(p))).collect();
        let manager = std::env::var("NOTIFY_SOCKET").ok();
        let version = env!("CARGO_PKG_VERSION");
        let hello = json!({ "version": VERSION, "causeway": version, "ports": ports, "manager": manager });
        new.say(&json!({ "hello": hello }))?;
        let answer = new.hear("welcome", ANSWER)?.0;
        new.metrics = answer["metrics"].as_str().and_then(|address| address.parse().ok());
        log::info!(code = CODE; "process {} of router '{name}' hands over when this one is ready", new.old.pid);
        Ok(new)
    }

    fn what(&self) -> String {
        format!("process {} of router '{}' does not hand over", self.old.pid, self.old.name)
    }

    fn say(&mut self, message: &Value) -> Result<()> {
        let Err(error) = self.line.send(message, &[]) else { return Ok(()) };
        // That nobody reads any more is no end of a pipe's, which this process would end by without a word.
        if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) {
            // It may have said why.
            self.hear("", Duration::ZERO)?;
        }
        bail!("{}: {error}", self.what())
    }

    /// What the running router says under this name.
    fn hear(&mut self, name: &str, patience: Duration) -> Result<(Value, Vec<OwnedFd>)> {
        match self.line.receive(patience) {
            Ok((message, descriptors)) => match (message.get(name), message["refused"].as_str()) {
                (Some(said), _) => Ok((said.clone(), descriptors)),
                (None, Some(why)) => bail!("{}: {why}", self.what()),
                (None, None) => bail!("{}: {}", self.what(), Missing::Strange),
            },
            Err(why) => bail!("{}: {why}", self.what()),
        }
    }

    /// Whether the running router serves metrics at this address, so that its socket is handed over.
    pub fn inherits_metrics(&self, address: SocketAddr) -> bool {
        self.metrics == Some(address)
    }

    /// Everything is there but the ports: now they are taken. Until [`New::take`] the kernel forwards.
    ///
    /// # Errors
    /// The running router does not hand over.
    pub fn receive(&mut self, front: &Front) -> Result<Sockets> {
        self.say(&json!({ "ready": {} }))?;
        let (handed, descriptors) = self.hear("handed", HANDING)?;
        let mut descriptors = descriptors.into_iter();
        let links = handed["links"].as_array().map_or(&[][..], Vec::as_slice);
        let mut next =
            || descriptors.next().with_context(|| format!("{}: a descriptor is missing", self.what()));
        let (control, upgrade) = (next()?, next()?);
        let log = next()?;
        let metrics = handed["metrics"].as_bool().unwrap_or(false).then(&mut next).transpose()?;
        let mut taken = Vec::new();
        for link in links {
            let place = (link[0].as_u64(), link[1].as_str().and_then(XdpMode::by_name));
            let (Some(index), Some(mode)) = place else { bail!("{}: {}", self.what(), Missing::Strange) };
            taken.push((index as u32, XdpLink::handed(next()?, mode)));
        }
        front.take_links(taken);
        self.log = Some(log);
        if handed["hears"].as_bool() == Some(true) {
            let what = || format!("cannot tell process {} how far this one is", self.old.pid);
            let progress = self.line.other().and_then(|line| Progress::tell(line, || census().rings.len()));
            self.progress = Some(progress.with_context(what)?);
        }
        Ok(Sockets { control, upgrade, metrics })
    }

    /// The ports are open: takes the name, and has the old process end. What it has changed is returned, and is this process's to
    /// undo.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn take(mut self) -> Result<Undo> {
        drop(self.progress.take());
        let undo = self.claim.take()?;
        // If it has been killed meanwhile, nobody is there to take the ports back.
        let _ = self.line.send(&json!({ "taken": {} }), &[]);
        if !matches!(self.line.receive(ENDING), Err(Missing::Closed)) {
            log::warn!(code = CODE; "process {} does not end, though it forwards no more", self.old.pid);
        }
        let of = |(name, offload, index): &(String, String, Option<u32>)| {
            let index = index.or_else(|| Some(Interface::open(name).ok()?.index))?;
            Some((index, name.clone(), Offload::by_name(offload)?))
        };
        offload::inherit(undo.offloads.iter().filter_map(of));
        let name = &self.old.name;
        log::info!(code = CODE; "this process is router '{name}' now, in the place of process {}", self.old.pid);
        if let Some(log) = &self.log {
            log::logger().flush();
            // Who cannot write there goes on where it is.
            let _ = dup2_stderr(log);
        }
        log::info!(code = CODE; "this is process {} with version {} in its place", std::process::id(), env!("CARGO_PKG_VERSION"));
        Ok(undo)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_refused_while_it_prepares_says_why() {
        let dir = std::env::temp_dir().join(format!("causeway-new-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let claim = Arc::new(Claim::new(&dir, &[], Some("a"), None).unwrap());
        let said = |word: Option<&str>| {
            let (own, other) = UnixStream::pair().unwrap();
            let line = Line::new(own).unwrap();
            let (old, claim) = (claim.record(), claim.clone());
            let mut new = New { line, old, claim, metrics: None, log: None, progress: None };
            let other = Line::new(other).unwrap();
            if let Some(why) = word {
                other.send(&json!({ "refused": why }), &[]).unwrap();
            }
            drop(other);
            new.say(&json!({ "ready": {} })).unwrap_err().to_string()
        };
        assert!(said(Some("it was not ready")).ends_with(": it was not ready"));
        assert!(said(None).ends_with(": it has ended"));
        drop(claim);
        std::fs::remove_dir_all(dir).unwrap();
    }
}
