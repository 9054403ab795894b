//! What the numbers depend on, as the document has it.

use super::ground::{Ground, Ready};
use super::sizes::in_full;
use super::{Comparison, Findings};
use crate::bed::Kind;
use causeway_results::traffic::Sizes;

impl Comparison {
    /// What the numbers depend on.
    pub(super) fn settings(
        &self,
        ground: &Ground<'_>,
        bits_per_s: Option<f64>,
        kinds: &[Kind],
        findings: &mut Findings<'_>,
    ) {
        findings.setting("test bed", ground.note());
        findings.setting("ports of the tester", &self.description.method);
        for (of, processors) in
            [("tester", &self.description.tester_processors), ("device", &self.description.device_processors)]
        {
            if !processors.is_empty() {
                findings.setting(&format!("processors of the {of}"), &format!("{processors:?}"));
            }
        }
        if self.description.chain > 1 {
            findings.setting("devices in a row", &self.description.chain.to_string());
        }
        if let Some(bits) = bits_per_s {
            let what =
                if self.description.interfaces.is_empty() { ", by name only: a veth has none" } else { "" };
            findings.setting("line rate", &format!("{:.0} Mbit/s{what}", bits / 1e6));
        }
        for (name, text) in self.preset.deviations(&self.lengths()) {
            findings.setting(&format!("deviation: {name}"), &text);
        }
        for (name, kind) in self.devices.iter().zip(kinds) {
            findings.version(name, &kind.version());
            findings.setting(&format!("device {name}"), &format!("{kind:?}"));
        }
        for (number, (name, sizes)) in self.lengths().into_iter().enumerate() {
            let traffic = self.traffic(sizes);
            if number == 0 {
                findings.setting("seed of the traffic", &traffic.seed.to_string());
            }
            if !matches!(sizes, Some(Sizes::Fixed(_))) {
                findings.setting(&format!("lengths of frames, {name}"), &in_full(&traffic));
            }
        }
        if !self.description.text.is_empty() {
            findings.setting("description", &self.description.text);
        }
        findings.setting("drivers of the interfaces", &ground.drivers());
    }

    /// What is known of a device once it runs: the kernel's settings where it stands, the commands that it is, and what its
    /// processor time is.
    pub(super) fn started(
        &self,
        name: &str,
        ground: &Ground<'_>,
        device: &Ready,
        findings: &mut Findings<'_>,
    ) {
        if let Some(settings) = ground.kernel_settings() {
            findings.setting(&format!("kernel settings with {name}"), &settings);
        }
        let commands: Vec<String> = device.ids().into_iter().filter_map(command).collect();
        if !commands.is_empty() {
            findings.setting(&format!("command of {name}"), &commands.join("; "));
        }
        let meter = device.meter(&self.description.device_processors);
        let whose = meter.map_or_else(
            || "not known: no processors are the device's alone".to_owned(),
            |meter| meter.to_string(),
        );
        findings.setting(&format!("processor time of {name}"), &whose);
    }
}

/// Program and arguments of a process; `None` if it has ended.
fn command(process: u32) -> Option<String> {
    let bytes = std::fs::read(format!("/proc/{process}/cmdline")).ok()?;
    let words: Vec<_> = bytes.split(|&b| b == 0).map(String::from_utf8_lossy).collect();
    Some(words.join(" ").trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_with_its_arguments() {
        let own: Vec<String> = std::env::args().collect();
        assert_eq!(command(std::process::id()), Some(own.join(" ")));
        assert_eq!(command(u32::MAX), None);
    }
}
