//! `causeway capture`: the packets on some edges of a running router, as a pcapng file.

use crate::cli::CaptureArgs;
use crate::control::{Client, Watch, watch};
use anyhow::{Context, Result, bail};
use causeway_netio::pcap::{InterfacesWriter, LINKTYPE_ETHERNET, LINKTYPE_RAW};
use serde_json::Value;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Bytes of a packet that are copied if nobody says how many.
const ALL: usize = 1 << 16;

/// Writes until there are as many as are wanted, the time is over, or the router or the user has enough.
pub fn capture(args: &CaptureArgs) -> Result<ExitCode> {
    let to_stdout = args.write.as_os_str() == "-";
    let client = Client::connect(args.socket.socket.as_deref())?;
    let watch = Watch::Capture { edges: args.edges.clone(), most_bytes: args.snaplen.unwrap_or(ALL) };
    let mut lines = client.watch(watch, Some(args.seconds))?;
    // A file is only made for a capture that has begun.
    let Some(first) = lines.next() else { return Ok(ExitCode::SUCCESS) };
    let first = first?;
    watch::say_aside(&first);
    let edges: Vec<String> = first["edges"].as_array().into_iter().flatten().map(text).collect();
    let out = match to_stdout {
        true => Named { name: "to standard output".to_owned(), out: Box::new(io::stdout()) },
        false => Named::create(&args.write)?,
    };
    let mut file = PcapNg { out: InterfacesWriter::new(BufWriter::new(out))?, interfaces: HashMap::new() };
    log::info!("capturing {}", edges.join(", "));
    let (mut packets, mut lost, mut flushed) = (0, 0, Instant::now());
    for line in lines {
        let line = line?;
        if let Some(n) = line["lost"].as_u64() {
            lost = n;
        } else if line.is_object() {
            file.write(&edges, &line)?;
            packets += 1;
        }
        // Whoever reads along sees them soon.
        if flushed.elapsed() > Duration::from_millis(250) {
            file.out.flush()?;
            flushed = Instant::now();
        }
        if args.count.is_some_and(|count| packets >= count) {
            break;
        }
    }
    file.out.flush()?;
    let missing = if lost > 0 { format!(", {lost} more could not be copied in time") } else { String::new() };
    log::info!("{packets} packets captured{missing}");
    Ok(ExitCode::SUCCESS)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// What is written to; its errors say where.
struct Named {
    name: String,
    out: Box<dyn Write>,
}

impl Named {
    fn create(path: &Path) -> io::Result<Named> {
        let name = path.display().to_string();
        let file = File::create(path).map_err(|e| cannot_write(&name, &e))?;
        Ok(Named { name, out: Box::new(file) })
    }
}

impl Write for Named {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes).map_err(|e| cannot_write(&self.name, &e))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush().map_err(|e| cannot_write(&self.name, &e))
    }
}

fn cannot_write(name: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write {name}: {error}"))
}

/// The file: an interface for each edge and each kind of packet on it.
struct PcapNg<W: Write> {
    out: InterfacesWriter<W>,
    interfaces: HashMap<(usize, bool), u32>,
}

impl<W: Write> PcapNg<W> {
    fn write(&mut self, edges: &[String], line: &Value) -> Result<()> {
        let (Some(edge), Some(time_ns)) = (line["edge"].as_u64(), line["time_ns"].as_u64()) else {
            bail!("the router sent something else than a packet: {line}");
        };
        let no_bytes = || format!("the router sent no packet's bytes: {line}");
        let bytes = watch::parse_bytes(&line["bytes"]).with_context(no_bytes)?;
        let edge = usize::try_from(edge)?;
        let interface = match self.interfaces.get(&(edge, bytes.is_ip)) {
            Some(&interface) => interface,
            None => {
                let linktype = if bytes.is_ip { LINKTYPE_RAW } else { LINKTYPE_ETHERNET };
                let interface = self.out.add(linktype, edges.get(edge).map_or("", String::as_str))?;
                *self.interfaces.entry((edge, bytes.is_ip)).or_insert(interface)
            }
        };
        Ok(self.out.write(interface, time_ns, u32::try_from(bytes.len)?, &bytes.data)?)
    }
}
