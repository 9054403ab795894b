//! Links: a program on an interface, for as long as a descriptor is open.

use super::program::Program;
use super::sys;
use crate::error::{Error, ErrorKind, Result};
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

const BPF_XDP: u32 = 37;
const BPF_TCX_INGRESS: u32 = 46;
const BPF_TCX_EGRESS: u32 = 47;
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;

/// Where an XDP program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpMode {
    /// In the driver, before the kernel makes a socket buffer.
    Native,
    /// In the stack, on socket buffers: works on every interface, slower.
    Generic,
}

impl XdpMode {
    /// `native` or `generic`.
    pub fn name(self) -> &'static str {
        match self {
            XdpMode::Native => "native",
            XdpMode::Generic => "generic",
        }
    }

    /// The mode of that name.
    pub fn by_name(name: &str) -> Option<XdpMode> {
        [XdpMode::Native, XdpMode::Generic].into_iter().find(|mode| mode.name() == name)
    }
}

/// An XDP program attached to an interface. Dropping it, or the end of the process, takes the program off, unless another
/// process has the descriptor too.
#[derive(Debug)]
pub struct XdpLink {
    fd: OwnedFd,
    mode: XdpMode,
}

impl XdpLink {
    /// Attaches `program` to the interface `ifindex`, called `ifname` in errors.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] when another program is there, [`ErrorKind::Unsupported`] when the driver has no XDP,
    /// [`ErrorKind::NoInterface`], [`ErrorKind::Privilege`]. `ERANGE` and `EINVAL` of drivers that refuse the
    /// interface's present MTU or offloads are [`ErrorKind::Unsupported`] too.
    pub fn attach(program: &Program, ifname: &str, ifindex: u32, mode: XdpMode) -> Result<XdpLink> {
        let mut attr = sys::LinkCreate {
            prog_fd: program.as_fd().as_raw_fd() as u32,
            target_ifindex: ifindex,
            attach_type: BPF_XDP,
            flags: match mode {
                XdpMode::Native => XDP_FLAGS_DRV_MODE,
                XdpMode::Generic => XDP_FLAGS_SKB_MODE,
            },
        };
        // SAFETY: the attributes hold no addresses.
        let fd = unsafe { sys::bpf_fd(sys::LINK_CREATE, &mut attr) }.map_err(|e| {
            let e = Error::system(format!("{ifname}: attach an XDP program in {} mode", mode.name()), e);
            match (e.kind(), e.errno()) {
                (ErrorKind::Busy, _) => e.help(format!(
                    "another program, perhaps a second router, holds {ifname}: stop it (`bpftool net` shows it)"
                )),
                (ErrorKind::Unsupported, _) | (_, Some(libc::EINVAL | libc::ERANGE)) => e
                    .of_kind(ErrorKind::Unsupported)
                    .help("the driver cannot: use generic mode, another interface, a smaller MTU, or AF_PACKET"),
                _ => e,
            }
        })?;
        Ok(XdpLink { fd, mode })
    }

    /// Puts `program` in the place of the attached one; no frame sees neither.
    ///
    /// # Errors
    /// What bpf(2) says.
    pub fn replace(&self, program: &Program) -> Result<()> {
        let mut attr = sys::LinkUpdate {
            link_fd: self.fd.as_raw_fd() as u32,
            new_prog_fd: program.as_fd().as_raw_fd() as u32,
            ..Default::default()
        };
        // SAFETY: the attributes hold no addresses.
        unsafe { sys::bpf(sys::LINK_UPDATE, &mut attr) }
            .map_err(|e| Error::system("replace an XDP program", e))?;
        Ok(())
    }

    /// Where the program runs.
    pub fn mode(&self) -> XdpMode {
        self.mode
    }

    /// The link that another process has attached in this mode and handed over.
    pub fn handed(fd: OwnedFd, mode: XdpMode) -> XdpLink {
        XdpLink { fd, mode }
    }
}

impl AsFd for XdpLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A traffic-control program at the ingress of an interface. Dropping it, or the end of the process, takes it off.
#[derive(Debug)]
pub struct TcxLink {
    _fd: OwnedFd,
}

impl TcxLink {
    /// Attaches `program`, of kind [`ProgramKind::SchedCls`](super::ProgramKind::SchedCls), to the interface
    /// `ifindex`, called `ifname` in errors.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] on kernels before 6.6; [`ErrorKind::NoInterface`], [`ErrorKind::Privilege`].
    pub fn attach_ingress(program: &Program, ifname: &str, ifindex: u32) -> Result<TcxLink> {
        let mut attr = sys::LinkCreate {
            prog_fd: program.as_fd().as_raw_fd() as u32,
            target_ifindex: ifindex,
            attach_type: BPF_TCX_INGRESS,
            flags: 0,
        };
        // SAFETY: the attributes hold no addresses.
        let fd = unsafe { sys::bpf_fd(sys::LINK_CREATE, &mut attr) }.map_err(|e| {
            let e = Error::system(format!("{ifname}: attach a program at the ingress"), e);
            match e.errno() {
                Some(libc::EINVAL) => e.of_kind(ErrorKind::Unsupported).help("Linux 6.6 or later is needed"),
                _ => e,
            }
        })?;
        Ok(TcxLink { _fd: fd })
    }
}

/// A side of an interface that programs of traffic control can be attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcxSide {
    /// Where packets come in.
    Ingress,
    /// Where they leave.
    Egress,
}

/// The programs at tcx on one side of the interface `ifindex`, by their numbers, whoever attached them. None on kernels
/// before 6.6, which have no such place.
///
/// # Errors
/// [`ErrorKind::Privilege`], [`ErrorKind::NoInterface`], or what bpf(2) says.
pub fn tcx_programs(ifindex: u32, side: TcxSide) -> Result<Vec<u32>> {
    /// More than the kernel lets be attached to one place.
    const MOST: usize = 128;
    let mut ids = [0u32; MOST];
    let mut attr = sys::ProgQuery {
        target: ifindex,
        attach_type: match side {
            TcxSide::Ingress => BPF_TCX_INGRESS,
            TcxSide::Egress => BPF_TCX_EGRESS,
        },
        prog_ids: ids.as_mut_ptr() as u64,
        count: MOST as u32,
        ..Default::default()
    };
    // SAFETY: `ids` is live and has room for as many numbers as the attributes say.
    match unsafe { sys::bpf(sys::PROG_QUERY, &mut attr) } {
        Ok(_) => Ok(ids[..MOST.min(attr.count as usize)].to_vec()),
        // Nothing was ever attached there, or the kernel knows no such place.
        Err(e) if matches!(e.raw_os_error(), Some(libc::ENOENT | libc::EINVAL)) => Ok(Vec::new()),
        Err(e) => Err(Error::system(format!("ask for the programs at interface {ifindex}"), e)),
    }
}

/// The name of the program with this number, cut to 15 characters, whoever loaded it.
///
/// # Errors
/// [`ErrorKind::Privilege`] without CAP_SYS_ADMIN, or what bpf(2) says; ENOENT if there is none.
pub fn program_name(id: u32) -> Result<String> {
    let failed = |e| Error::system(format!("ask for the name of BPF program {id}"), e);
    let mut by_id = sys::GetFdById { id, ..Default::default() };
    // SAFETY: the attributes hold no address.
    let program = unsafe { sys::bpf_fd(sys::PROG_GET_FD_BY_ID, &mut by_id) }.map_err(failed)?;
    let info = sys::ProgInfo::of(program.as_fd()).map_err(failed)?;
    let end = info.name.iter().position(|&b| b == 0).unwrap_or(info.name.len());
    Ok(String::from_utf8_lossy(&info.name[..end]).into_owned())
}

/// A program at one of the kernel's tracepoints. Dropping it, or the end of the process, takes it off.
#[derive(Debug)]
pub struct RawTracepointLink {
    _fd: OwnedFd,
}

impl RawTracepointLink {
    /// Attaches `program`, of kind [`ProgramKind::RawTracepoint`](super::ProgramKind::RawTracepoint).
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] on kernels without the tracepoint; [`ErrorKind::Privilege`].
    pub fn attach(program: &Program, tracepoint: &str) -> Result<RawTracepointLink> {
        let what = format!("listen at the tracepoint {tracepoint}");
        let name = CString::new(tracepoint).map_err(|_| Error::new(ErrorKind::Unsupported, what.clone()))?;
        let mut attr = sys::RawTracepoint {
            name: name.as_ptr() as u64,
            prog_fd: program.as_fd().as_raw_fd() as u32,
            ..Default::default()
        };
        // SAFETY: the name is a live C string.
        let fd = unsafe { sys::bpf_fd(sys::RAW_TRACEPOINT_OPEN, &mut attr) }.map_err(|e| {
            let e = Error::system(what, e);
            match e.errno() {
                Some(libc::ENOENT) => e.of_kind(ErrorKind::Unsupported),
                _ => e,
            }
        })?;
        Ok(RawTracepointLink { _fd: fd })
    }
}
