//! A graph that packets pass once: in memory, from a source that plays a trace to a sink, on one worker; and, where the
//! program of Click is given, the same text in both programs, with packets from a file.

use super::elements::{SINK, SOURCE, TRACE, Trace};
use super::report::{Report, Row};
use crate::Settings;
use crate::bed::Kind;
use anyhow::{Context, Result, anyhow, bail};
use causeway_engine::{Library, Options, Plan, Router};
use causeway_lang::NoLibraries;
use causeway_netio::pcap::{Format, Writer};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long each packet of a trace may take to come through twice.
const WARM: Duration = Duration::from_secs(60);
/// Length of a file of packets, about.
const FILE_BYTES: usize = 96 << 20;
/// The link type of files of IP packets.
const LINKTYPE_RAW: u32 = 101;
/// The kernel counts processor time in hundredths of a second for who reads /proc.
const SECONDS_A_TICK: f64 = 0.01;
/// Nanoseconds between two packets of a file.
const INTERVAL_NS: u64 = 1_000;

/// Packets that queues have room for, at most.
const ON_THE_WAY: u64 = 16_384;

/// What is measured.
pub struct Passage {
    /// What people read, such as `nat/1000 flows`.
    pub name: String,
    /// From IP packets, `in`, to what a sink pulls, `out`.
    pub graph: String,
    pub trace: Arc<Trace>,
}

impl Passage {
    /// Million packets a second that come through in memory, once all of the trace came twice.
    ///
    /// # Errors
    /// If the graph is wrong or lets nothing through.
    pub fn in_memory(&self, settings: &Settings) -> Result<Row> {
        let name = &self.name;
        let text = self.text("source :: TraceSource", "sink :: PullSink");
        let compiled = causeway_lang::compile("bench", text.as_bytes(), &NoLibraries, &library(), &[])
            .map_err(|f| anyhow!("{name}: {}", f.diagnostics.messages().join("; ")))?;
        let start = Options { processors: vec![settings.processor], seed: Some(1), ..Options::default() };
        if let Ok(mut values) = start.persistent.lock() {
            values.insert(TRACE.to_owned(), self.trace.clone());
        }
        let router =
            Router::start(library(), Plan::new(&compiled), start).map_err(|e| anyhow!("{name}: {e}"))?;
        let number = |element: &str| -> Result<u64> {
            let text = router.read(element, "count", "").map_err(|e| anyhow!("{name}: {e}"))?;
            text.parse().map_err(|_| anyhow!("{name}: {element}.count is '{text}'"))
        };
        router.resume();
        let limit = Instant::now() + WARM;
        while number("sink")? < 2 * self.trace.len() as u64 {
            if Instant::now() > limit {
                bail!("{name}: the trace did not come through within a minute");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut rounds = Vec::new();
        for _ in 0..settings.rounds {
            let (start, before) = (Instant::now(), number("sink")?);
            std::thread::sleep(settings.round);
            let (after, seconds) = (number("sink")?, start.elapsed().as_secs_f64());
            rounds.push((after - before) as f64 / seconds / 1e6);
        }
        router.pause();
        let (sent, came) = (number("source")?, number("sink")?);
        // What is on its way is in queues. A rate of which a part was dropped would be none of the graph's.
        if sent.saturating_sub(came) > sent / 10 + ON_THE_WAY {
            bail!("{name}: of {sent} packets only {came} came through");
        }
        Row::of(name, "forwarding rate", "Mpps", &rounds).ok_or_else(|| anyhow!("no rounds"))
    }

    /// The same graph in Click and here, each in a process of its own, with packets from a file: whole runs, in turn, by
    /// processor time, of which others on the machine take none. Nothing without Click.
    ///
    /// # Errors
    /// If there is no such program, or if one fails.
    pub fn beside_click(&self, settings: &Settings, report: &mut Report) -> Result<()> {
        let Some(click) = &settings.click else { return Ok(()) };
        let version = Kind::Click { program: click.clone(), configuration: None }.version();
        if !version.contains("(Click)") {
            bail!("{} is not Click: '{version}'", click.display());
        }
        let own = std::env::current_exe().context("cannot find this program")?;
        let folder = std::env::temp_dir().join(format!("causeway-bench-{}", std::process::id()));
        let files = Files(folder);
        std::fs::create_dir_all(&files.0).with_context(|| format!("cannot make {}", files.0.display()))?;
        let (packets, graph) = (files.0.join("packets.pcap"), files.0.join("graph.click"));
        let count = self.write(&packets)?;
        let source = format!("FromDump({}, STOP true)", packets.display());
        std::fs::write(&graph, self.text(&source, "Discard"))?;
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..settings.rounds {
            for (program, arguments, rounds) in [(click, &[][..], &mut theirs), (&own, &["run"], &mut ours)] {
                let seconds = run(settings.processor, program, arguments, &graph)?;
                rounds.push(count as f64 / seconds / 1e6);
            }
        }
        let row = |program: &str, rounds: &[f64]| {
            let name = format!("  {} from a file/{program}", self.name);
            Row::of(name, "packets a second of processor time", "Mpps", rounds)
                .ok_or_else(|| anyhow!("no rounds"))
        };
        let (theirs, ours) = (row("click", &theirs)?, row("causeway", &ours)?);
        report.add(theirs.clone());
        report.add(ours.against(&theirs));
        Ok(())
    }

    fn text(&self, source: &str, sink: &str) -> String {
        format!("in :: Null; out :: Queue(1024); {source} -> in; {}; out -> {sink};", self.graph)
    }

    /// Writes the trace over and over into a file; answers how many packets.
    fn write(&self, path: &Path) -> Result<usize> {
        let frames = self.trace.len();
        let once: usize = (0..frames).map(|i| self.trace.frame(i).len() + 16).sum();
        let count = FILE_BYTES.div_ceil(once.max(1)).max(2) * frames;
        let file = File::create(path).with_context(|| format!("cannot make {}", path.display()))?;
        let out = BufWriter::new(file);
        let mut writer = Writer::new(out, Format::PcapMicroseconds, LINKTYPE_RAW, 65_535)?;
        for (i, time_ns) in (0..count).zip((1_000_000_000..).step_by(INTERVAL_NS as usize)) {
            let frame = self.trace.frame(i % frames);
            writer.write(time_ns, frame.len() as u32, frame)?;
        }
        writer.into_inner().flush()?;
        Ok(count)
    }
}

fn library() -> Library {
    Library::new(causeway_elements::library().iter().chain([&SOURCE, &SINK]))
}

/// Seconds of processor time that a program takes for a configuration, from its start to its end.
fn run(processor: usize, program: &Path, arguments: &[&str], graph: &Path) -> Result<f64> {
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", &processor.to_string()]).arg(program).args(arguments).arg(graph);
    let before = children_s()?;
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {}", program.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} failed: {}", program.display(), said.trim());
    }
    Ok((children_s()? - before).max(SECONDS_A_TICK))
}

/// Processor time of all processes that this one has waited for.
fn children_s() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").context("cannot read /proc/self/stat")?;
    // Behind the name, which may have anything in it: the two numbers behind this process's own times.
    let (_, fields) = stat.rsplit_once(')').context("cannot understand /proc/self/stat")?;
    let ticks = fields.split_whitespace().skip(13).take(2).filter_map(|n| n.parse::<f64>().ok());
    Ok(ticks.sum::<f64>() * SECONDS_A_TICK)
}

/// A folder that goes when this is dropped.
struct Files(std::path::PathBuf);

impl Drop for Files {
    fn drop(&mut self) {
        // What cannot be removed lies among the temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
