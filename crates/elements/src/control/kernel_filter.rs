//! KernelFilter.

use causeway_engine::Scope;
use causeway_engine::prelude::*;
use causeway_engine::value::Value;
use causeway_lang::args::split_words;
use std::path::Path;
use std::process::Command;

pub(crate) static SPEC: Spec = Spec {
    name: "KernelFilter",
    category: "control",
    summary: "keeps the kernel's own stack from packets of an interface",
    ports: "0/0",
    doc: "Lets iptables(8) drop what comes in by DEVNAME and is for this machine (`iptables -A INPUT -i DEVNAME -j DROP`), so \
          that only the router answers. Packets that the kernel forwards are not concerned, and FromDevice and tcpdump(8) see \
          all as before. The rules go with the element; after `kill -9` they stay. It needs root's rights and iptables: \
          without the program the router does not start, and a rule that is refused is logged. FromDevice with SNIFFER false \
          takes packets before the kernel sees them and needs no rule.",
    args: &[
        keyword(
            "IPTABLES_COMMAND",
            "program",
            "what is called; default /sbin/iptables or /usr/sbin/iptables",
        ),
        rest("FILTERSPEC", "`drop dev DEVNAME`", "what to drop"),
    ],
    example: "KernelFilter(); InfiniteSource(LIMIT 1, STOP true) -> Discard;",
    see: &["FromDevice", "ChangeUID"],
    copies: Copies::One,
    build,
    ..Spec::DEFAULT
};

/// Where the program is looked for.
const PLACES: [&str; 2] = ["/sbin/iptables", "/usr/sbin/iptables"];

struct KernelFilter {
    devices: Vec<String>,
    program: Option<String>,
    /// How many of the devices have their rule.
    added: usize,
}

/// A word without quotes.
struct Word(String);

impl Value for Word {
    fn parse(text: &str, _: &Scope<'_>) -> Result<Self, Error> {
        causeway_lang::values::string(text).map(Word).map_err(Error::caused_by)
    }

    fn placeholder() -> Self {
        Word(String::new())
    }
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let program = conf.keyword_given::<Word>("IPTABLES_COMMAND").map(|word| word.0);
    let mut devices = Vec::new();
    for text in conf.rest() {
        let words = split_words(&text);
        let missing: Vec<&str> = ["ACTION", "TYPE", "ARG"].into_iter().skip(words.len()).collect();
        if !missing.is_empty() {
            missing.iter().for_each(|name| conf.error(format!("{name}: required argument missing")));
            break;
        }
        match &words[..] {
            [action, kind, device] if action == "drop" && kind == "dev" => devices.push(device.clone()),
            _ => {
                conf.error("arguments must follow 'drop dev DEVNAME'");
                break;
            }
        }
    }
    conf.finish()?;
    Ok(Box::new(KernelFilter { devices, program, added: 0 }))
}

impl KernelFilter {
    fn program(&self) -> Result<&str, Error> {
        let found = PLACES.into_iter().find(|place| Path::new(place).exists());
        self.program.as_deref().or(found).ok_or_else(|| Error::new("no 'iptables' executable found"))
    }

    /// Adds or removes the rule of a device.
    fn rule(&self, action: &str, device: &str) -> Result<(), Error> {
        let program = self.program()?;
        let arguments = [action, "INPUT", "-i", device, "-j", "DROP"];
        let said =
            |why: &str| Error::new(why.trim_end()).of(format_args!("{program} {}", arguments.join(" ")));
        let output = Command::new(program).args(arguments).output().map_err(|e| said(&e.to_string()))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(said(&String::from_utf8_lossy(&output.stderr))),
        }
    }
}

impl Element for KernelFilter {
    fn initialize(&mut self, _cx: &mut Cx<'_>) -> Result<(), Error> {
        if self.devices.is_empty() { Ok(()) } else { self.program().map(drop) }
    }

    fn commit(&mut self, cx: &mut Cx<'_>) {
        for i in 0..self.devices.len() {
            if let Err(why) = self.rule("-A", &self.devices[i]) {
                log::error!("{}: {why}", cx.name());
                return;
            }
            self.added += 1;
        }
    }
}

impl Drop for KernelFilter {
    fn drop(&mut self) {
        for device in self.devices[..self.added].iter().rev() {
            if let Err(why) = self.rule("-D", device) {
                log::error!("KernelFilter: {why}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn rules_come_and_go_with_the_element() {
        let dir = std::env::temp_dir().join(format!("causeway-kernel-filter-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (program, log) = (dir.join("iptables"), dir.join("log"));
        std::fs::write(&program, format!("#!/bin/sh\necho \"$@\" >> {}\n", log.display())).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let config = format!("drop dev a0, drop dev b0, IPTABLES_COMMAND {}", program.display());
        drop(Harness::new(&SPEC, &config, 0, 0).unwrap());
        let text = std::fs::read_to_string(&log).unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
        let line = |action: &str, device: &str| format!("{action} INPUT -i {device} -j DROP\n");
        assert_eq!(text, line("-A", "a0") + &line("-A", "b0") + &line("-D", "b0") + &line("-D", "a0"));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let errors = |config: &str| Harness::new(&SPEC, config, 0, 0).err().unwrap();
        assert_eq!(errors("foo"), ["TYPE: required argument missing", "ARG: required argument missing"]);
        assert_eq!(errors("drop foo eth0"), ["arguments must follow 'drop dev DEVNAME'"]);
    }
}
