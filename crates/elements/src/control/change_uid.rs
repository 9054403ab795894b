//! ChangeUID.

use causeway_engine::prelude::*;
use causeway_engine::spec::phase;
use rustix::process::{getegid, geteuid, getgid, getuid};

pub(crate) static SPEC: Spec = Spec {
    name: "ChangeUID",
    category: "control",
    summary: "says that the router runs with the rights of who started it",
    ports: "0/0",
    phase: phase::DEFAULT,
    doc: "Click gives the rights of a set-user-ID program back here. Causeway is not to be installed as one: with the rights \
          of who started it there is nothing to give back, and started with others it refuses to go on. What root's rights \
          it needs for its ports it gives up by itself once they are open.",
    example: "ChangeUID; InfiniteSource(LIMIT 1, STOP true) -> Discard;",
    see: &["KernelFilter"],
    build: |conf| {
        conf.finish()?;
        Ok(Box::new(ChangeUID))
    },
    ..Spec::DEFAULT
};

struct ChangeUID;

impl Element for ChangeUID {
    fn initialize(&mut self, _cx: &mut Cx<'_>) -> Result<(), Error> {
        match getuid() == geteuid() && getgid() == getegid() {
            true => Ok(()),
            false => Err(Error::new("could not drop privilege: a set-user-ID Causeway is not supported")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;

    #[test]
    fn without_borrowed_rights_there_is_nothing_to_do() {
        assert!(Harness::new(&SPEC, "", 0, 0).is_ok());
        assert_eq!(Harness::new(&SPEC, "5", 0, 0).err().unwrap(), ["too many arguments"]);
    }
}
