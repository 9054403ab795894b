//! The control socket: Click's ControlSocket protocol, version 1.3, over UNIX and TCP sockets.
//!
//! A line is a command: `READ element.handler [arguments]`, `WRITE element.handler [value]`, `READDATA` and
//! `WRITEDATA` with a count of bytes that follow, `READUNTIL` and `WRITEUNTIL` with a line that ends the data,
//! `CHECKREAD`, `CHECKWRITE`, `LLRPC`, `HELP`, `QUIT`. A reply is a line `NNN text` (or several `NNN-text` before
//! it); data follow as `DATA n` and n bytes. `WATCH` ([`watch`]) is ours: packets as they flow. Any program that speaks to a running Click speaks to this.

mod claim;
mod client;
mod entrance;
mod input;
pub mod leftovers;
mod opened;
mod protocol;
mod record;
mod server;
mod socket;
pub mod watch;

pub use claim::Claim;
pub use client::Client;
pub use entrance::Entrance;
pub use opened::Opener;
pub use protocol::{Ask, Question};
pub use record::{Record, Undo, own_netns, running, upgrade_socket};
pub use server::serve;
pub use socket::Listener;
pub use watch::{Seen, Watch, Watched};

use anyhow::{Context, Result, bail};
use rustix::process::geteuid;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Below root's folder: the one of routers that were started by root and are another user now.
const SERVICE: &str = "up";
/// The mode of the folders. Others find the files in them by name, but cannot open the folders: who can may lock them, and would
/// hold up whoever claims a name.
const MODE: u32 = 0o711;

/// The folder of this user's routers, with their control sockets, records and shared counters; made if it is missing.
///
/// # Errors
/// If it is not this user's alone to change: whoever else can write there could put a socket in a router's place.
pub fn open_run_dir() -> Result<PathBuf> {
    let dir = run_dir();
    let made = DirBuilder::new().recursive(true).mode(MODE).create(&dir);
    made.with_context(|| format!("cannot make {}", dir.display()))?;
    check_run_dir(&dir)?;
    close(&dir)?;
    Ok(dir)
}

/// Takes from others what a folder of an earlier version gives them.
fn close(dir: &Path) -> Result<()> {
    let failed = || format!("cannot change the mode of {}", dir.display());
    let mode = fs::symlink_metadata(dir).with_context(failed)?.mode() & 0o777;
    if mode & !MODE != 0 {
        fs::set_permissions(dir, fs::Permissions::from_mode(mode & MODE)).with_context(failed)?;
    }
    Ok(())
}

/// The folder of a router that root starts and that becomes the user `uid`, who owns it; made if it is missing.
///
/// # Errors
/// As [`open_run_dir`].
pub fn open_service_dir(uid: u32) -> Result<PathBuf> {
    let dir = open_run_dir()?.join(SERVICE);
    let failed = || format!("cannot make {}", dir.display());
    DirBuilder::new().recursive(true).mode(MODE).create(&dir).with_context(failed)?;
    // In root's own folder nobody else can have made it.
    std::os::unix::fs::lchown(&dir, Some(uid), Some(uid)).with_context(failed)?;
    close(&dir)?;
    Ok(dir)
}

/// The folders that hold this user's routers, and root's those that root has started.
///
/// # Errors
/// As [`open_run_dir`]; no error if there is none.
pub fn run_dirs() -> Result<Vec<PathBuf>> {
    let dir = run_dir();
    if !dir.exists() {
        return Ok(Vec::new());
    }
    check_run_dir(&dir)?;
    let service = dir.join(SERVICE);
    let both = [Some(dir), service.is_dir().then_some(service)];
    Ok(both.into_iter().flatten().collect())
}

/// Undoes what this user's routers that were killed have left behind in this network namespace; a line for each.
///
/// # Errors
/// If their folders cannot be opened or locked.
pub fn tidy() -> Result<Vec<String>> {
    let mut undone = Vec::new();
    for dir in run_dirs()? {
        undone.extend(claim::tidy(&dir)?);
    }
    Ok(undone)
}

/// The routers of this user that run, and root's those that root has started; none if their folders cannot be read.
pub fn all_routers() -> impl Iterator<Item = Record> {
    let dirs = run_dirs().unwrap_or_default();
    dirs.into_iter().flat_map(|dir| record::all(&dir)).filter(Record::is_alive)
}

/// Those of [`all_routers`] that run in this network namespace.
pub fn routers_here() -> Vec<Record> {
    let netns = own_netns().ok();
    all_routers().filter(|router| Some(&router.netns) == netns.as_ref()).collect()
}

fn check_run_dir(dir: &Path) -> Result<()> {
    let metadata = fs::symlink_metadata(dir).with_context(|| format!("cannot look at {}", dir.display()))?;
    let why = match (metadata.is_dir(), metadata.uid() == geteuid().as_raw(), metadata.mode() & 0o022) {
        (false, ..) => "it is no folder; remove it",
        (true, false, _) => "it is another user's; remove it",
        (true, true, 0) => return Ok(()),
        _ => "other users may write there; `chmod go-w` it",
    };
    bail!("{} cannot hold control sockets: {why}", dir.display());
}

/// Folder of the control sockets and shared counters of this user's routers.
fn run_dir() -> PathBuf {
    match geteuid().is_root() {
        true => PathBuf::from("/run/causeway"),
        false => match std::env::var_os("XDG_RUNTIME_DIR") {
            Some(dir) => PathBuf::from(dir).join("causeway"),
            // All users share the folder that this is in.
            None => std::env::temp_dir().join(format!("causeway-{}", geteuid().as_raw())),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_not_for_others_to_open() {
        let dir = std::env::temp_dir().join(format!("causeway-run-mode-{}", std::process::id()));
        let mode = || fs::metadata(&dir).unwrap().mode() & 0o777;
        fs::create_dir(&dir).unwrap();
        for (before, after) in [(0o755, 0o711), (0o711, 0o711), (0o700, 0o700)] {
            fs::set_permissions(&dir, fs::Permissions::from_mode(before)).unwrap();
            close(&dir).unwrap();
            assert_eq!(mode(), after, "{before:o}");
        }
        fs::remove_dir(&dir).unwrap();
    }

    #[test]
    fn a_folder_that_others_can_change_is_refused() {
        let dir = std::env::temp_dir().join(format!("causeway-run-dir-{}", std::process::id()));
        let refused = |dir: &Path| check_run_dir(dir).unwrap_err().to_string();
        fs::create_dir(&dir).unwrap();
        for (mode, good) in [(0o755, true), (0o700, true), (0o775, false), (0o757, false), (0o1777, false)] {
            fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(check_run_dir(&dir).is_ok(), good, "{mode:o}");
        }
        assert!(refused(&dir).contains("other users may write there"));
        let link = dir.with_extension("link");
        std::os::unix::fs::symlink(&dir, &link).unwrap();
        assert!(refused(&link).contains("it is no folder"));
        fs::remove_file(&link).unwrap();
        if geteuid().is_root() {
            std::os::unix::fs::chown(&dir, Some(1), None).unwrap();
            assert!(refused(&dir).contains("it is another user's"));
        }
        fs::remove_dir(&dir).unwrap();
    }
}
