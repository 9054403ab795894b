//! A network interface as ioctl(2) shows it: index, address, MTU, queues.

use crate::{Error, ErrorKind, Result};
use causeway_packet::pool;
use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Bytes of an Ethernet header with two VLAN tags.
const LINK_HEADER: u32 = 22;

const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GCHANNELS: u32 = 0x3c;
const SIOCETHTOOL: libc::c_ulong = 0x8946;

/// Facts of one interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Name.
    pub name: String,
    /// The kernel's index.
    pub index: u32,
    /// Ethernet address.
    pub mac: [u8; 6],
    /// Whether its packets have Ethernet headers.
    pub ethernet: bool,
    /// Largest packet in bytes, without the Ethernet header.
    pub mtu: u32,
    /// Receive queues.
    pub queues: u32,
    /// Whether it is set up.
    pub up: bool,
    /// Name of the driver; empty where it does not say.
    pub driver: String,
    /// Where the hardware is on its bus; empty for virtual devices.
    pub bus: String,
}

/// `struct ethtool_drvinfo`.
#[repr(C)]
struct DriverInfo {
    cmd: u32,
    driver: [u8; 32],
    version: [u8; 32],
    firmware: [u8; 32],
    bus: [u8; 32],
    rest: [u8; 64],
}

impl DriverInfo {
    /// Driver and bus of the interface `name`; empty where the driver does not say.
    fn ask(fd: &OwnedFd, name: &str) -> (String, String) {
        let (text, rest) = ([0; 32], [0; 64]);
        let mut info = DriverInfo {
            cmd: ETHTOOL_GDRVINFO,
            driver: text,
            version: text,
            firmware: text,
            bus: text,
            rest,
        };
        // SAFETY: the structure of this command.
        match unsafe { ethtool(fd, name, std::ptr::from_mut(&mut info).cast()) } {
            Ok(()) => (until_zero(&info.driver), until_zero(&info.bus)),
            Err(_) => Default::default(),
        }
    }
}

fn until_zero(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|&b| b == 0).next().unwrap_or_default()).into_owned()
}

/// `struct ethtool_channels`.
#[derive(Default)]
#[repr(C)]
struct Channels {
    cmd: u32,
    max: [u32; 4],
    rx: u32,
    tx: u32,
    other: u32,
    combined: u32,
}

/// A socket to make ioctls on.
pub(crate) fn control() -> Result<OwnedFd> {
    // SAFETY: makes a new descriptor, checked and owned below.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(Error::last_os("make a socket"));
    }
    // SAFETY: the descriptor is new and ours.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// An `ifreq` for `name`.
fn request(name: &str) -> Result<libc::ifreq> {
    // SAFETY: `ifreq` is plain data, for which zeros are valid.
    let mut ifr: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains('\0') {
        return Err(Error::new(ErrorKind::NoInterface, format!("{name:?} is not an interface name")));
    }
    for (to, from) in ifr.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(ifr)
}

fn ioctl(fd: &impl AsRawFd, command: libc::c_ulong, ifr: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: the commands of this module read and write one `ifreq`; only that of `ethtool` follows its pointer, and whoever
    // calls that has seen to it.
    match unsafe { libc::ioctl(fd.as_raw_fd(), command as _, std::ptr::from_mut(ifr)) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// What the interface with this index is called now, in the network namespace of the socket `fd`.
pub(crate) fn name_of(fd: &OwnedFd, index: u32) -> io::Result<String> {
    // SAFETY: plain data, for which zeros are valid.
    let mut ifr: libc::ifreq = unsafe { std::mem::zeroed() };
    ifr.ifr_ifru.ifru_ifindex = index as i32;
    ioctl(fd, libc::SIOCGIFNAME as _, &mut ifr)?;
    Ok(until_zero(&ifr.ifr_name.map(|c| c as u8)))
}

/// What the interface with this index is called now, in the calling thread's network namespace; `None` if there is none.
pub fn name_by_index(index: u32) -> Option<String> {
    name_of(&control().ok()?, index).ok()
}

impl Interface {
    /// The interface called `name` in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`ErrorKind::NoInterface`].
    pub fn open(name: &str) -> Result<Interface> {
        let fd = control()?;
        let mut ifr = request(name)?;
        let missing = |e| match Error::system(name, e) {
            e if e.kind() == ErrorKind::NoInterface => {
                Error::new(ErrorKind::NoInterface, format!("{name}: no such interface"))
                    .help("`ip link` lists the interfaces")
            }
            e => e,
        };
        ioctl(&fd, libc::SIOCGIFINDEX as _, &mut ifr).map_err(missing)?;
        // SAFETY: the kernel has written this member of the union for this command.
        let index = unsafe { ifr.ifr_ifru.ifru_ifindex } as u32;
        ioctl(&fd, libc::SIOCGIFMTU as _, &mut ifr).map_err(missing)?;
        // SAFETY: as above.
        let mtu = unsafe { ifr.ifr_ifru.ifru_mtu } as u32;
        ioctl(&fd, libc::SIOCGIFHWADDR as _, &mut ifr).map_err(missing)?;
        // SAFETY: as above.
        let address = unsafe { ifr.ifr_ifru.ifru_hwaddr };
        let mac = std::array::from_fn(|i| address.sa_data[i] as u8);
        let ethernet = [libc::ARPHRD_ETHER, libc::ARPHRD_LOOPBACK].contains(&address.sa_family);
        ioctl(&fd, libc::SIOCGIFFLAGS as _, &mut ifr).map_err(missing)?;
        // SAFETY: as above.
        let up = unsafe { ifr.ifr_ifru.ifru_flags } & libc::IFF_UP as libc::c_short != 0;
        let mut channels = Channels { cmd: ETHTOOL_GCHANNELS, ..Default::default() };
        // SAFETY: the structure of this command.
        let queues = match unsafe { ethtool(&fd, name, std::ptr::from_mut(&mut channels).cast()) } {
            Ok(()) => (channels.rx + channels.combined).max(1),
            // A driver that does not say has one.
            Err(_) => 1,
        };
        let (driver, bus) = DriverInfo::ask(&fd, name);
        Ok(Interface { name: name.to_owned(), index, mac, ethernet, mtu, queues, up, driver, bus })
    }

    /// Whether there is no hardware behind the interface: a veth, TAP, tunnel, bridge. Some of their drivers name a bus.
    pub fn is_virtual(&self) -> bool {
        matches!(self.bus.as_str(), "" | "N/A" | "tap" | "tun")
    }

    /// Whether frames may come in with checksums that their sender left to hardware that is not there: between the
    /// machines and containers of one host.
    pub fn has_partial_checksums(&self) -> bool {
        self.is_virtual() || self.driver == "virtio_net"
    }

    /// Bytes of the longest frame that a frame of the pool holds with `headroom` bytes before it.
    pub fn longest_frame(headroom: u32) -> u32 {
        pool::config().frame_size - headroom
    }

    /// What to add to a port's mode when the interface is down.
    pub(crate) fn down_note(&self) -> String {
        if self.up { String::new() } else { format!("; it is down: `ip link set dev {} up`", self.name) }
    }

    /// Checks that the longest frame fits a frame of the pool with as many bytes before it as `headroom` says for a frame's
    /// bytes; these can be of `most_frame` bytes for such a port.
    ///
    /// # Errors
    /// [`ErrorKind::MtuTooLarge`].
    pub fn check_mtu(&self, headroom: fn(u32) -> u32, most_frame: u32) -> Result<()> {
        let Interface { name, mtu, .. } = self;
        let frame = pool::config().frame_size;
        let most = |frame: u32| frame - headroom(frame) - LINK_HEADER;
        if *mtu <= most(frame) {
            return Ok(());
        }
        let what = format!("{name}: MTU {mtu} does not fit the pool's frames of {frame} bytes");
        let longer = std::iter::successors(Some(frame), |frame| frame.checked_mul(2));
        let fits = longer.take_while(|&frame| frame <= most_frame).find(|&frame| *mtu <= most(frame));
        let other = fits
            .map_or_else(String::new, |fits| format!(", or frames of {fits} bytes (`--frame-size {fits}`)"));
        let most = most(frame);
        Err(Error::new(ErrorKind::MtuTooLarge, what)
            .help(format!("`ip link set dev {name} mtu {most}`{other}")))
    }
}

/// Sets the interface up.
///
/// # Errors
/// [`ErrorKind::Privilege`], [`ErrorKind::NoInterface`].
pub fn set_up(name: &str) -> Result<()> {
    set_flags(name, libc::IFF_UP)
}

/// Sets flags of the interface besides those that it has.
pub(crate) fn set_flags(name: &str, more: i32) -> Result<()> {
    let failed = |e| Error::system(format!("set flags of {name}"), e);
    let fd = control()?;
    let mut ifr = request(name)?;
    ioctl(&fd, libc::SIOCGIFFLAGS as _, &mut ifr).map_err(failed)?;
    // SAFETY: the kernel has written this member of the union for this command.
    let flags = unsafe { ifr.ifr_ifru.ifru_flags };
    ifr.ifr_ifru.ifru_flags = flags | more as libc::c_short;
    ioctl(&fd, libc::SIOCSIFFLAGS as _, &mut ifr).map_err(failed)
}

/// Has so many packets wait in each queue of `name` at most.
pub(crate) fn set_queue_length(name: &str, length: u32) -> Result<()> {
    let mut ifr = request(name)?;
    ifr.ifr_ifru.ifru_metric = i32::try_from(length).unwrap_or(i32::MAX);
    ioctl(&control()?, libc::SIOCSIFTXQLEN as _, &mut ifr)
        .map_err(|e| Error::system(format!("set the queue length of {name}"), e))
}

/// Gives `name` the IPv4 `address` with a prefix of `len` bits (at most 32), replacing the one it has.
///
/// # Errors
/// Missing privileges, no such interface.
pub fn set_address(name: &str, address: Ipv4Addr, len: u8) -> Result<()> {
    let failed = |e| Error::system(format!("give {name} the address {address}/{len}"), e);
    let mask = u32::MAX.checked_shl(32 - u32::from(len.min(32))).unwrap_or(0);
    let fd = control()?;
    for (command, value) in [(libc::SIOCSIFADDR, address), (libc::SIOCSIFNETMASK, mask.into())] {
        let mut ifr = request(name)?;
        ifr.ifr_ifru.ifru_addr = internet(value);
        ioctl(&fd, command as _, &mut ifr).map_err(failed)?;
    }
    Ok(())
}

/// Gives `name` the Ethernet address `mac`.
///
/// # Errors
/// Missing privileges, no such interface, or one that has no such address or keeps the one it has.
pub fn set_mac(name: &str, mac: [u8; 6]) -> Result<()> {
    let mut ifr = request(name)?;
    ifr.ifr_ifru.ifru_hwaddr = socket_address(libc::ARPHRD_ETHER, 0, &mac);
    ioctl(&control()?, libc::SIOCSIFHWADDR as _, &mut ifr)
        .map_err(|e| Error::system(format!("give {name} an Ethernet address"), e))
}

/// Lets packets of `name` have `mtu` bytes at most, without the Ethernet header.
///
/// # Errors
/// Missing privileges, no such interface, or one that cannot have that.
pub fn set_mtu(name: &str, mtu: u32) -> Result<()> {
    let mut ifr = request(name)?;
    ifr.ifr_ifru.ifru_mtu = i32::try_from(mtu).unwrap_or(i32::MAX);
    ioctl(&control()?, libc::SIOCSIFMTU as _, &mut ifr)
        .map_err(|e| Error::system(format!("set the MTU of {name} to {mtu}"), e))
}

/// `struct rtentry`.
#[repr(C)]
struct RouteEntry {
    pad1: libc::c_ulong,
    destination: libc::sockaddr,
    gateway: libc::sockaddr,
    mask: libc::sockaddr,
    flags: libc::c_ushort,
    pad2: libc::c_short,
    pad3: libc::c_ulong,
    pad4: *mut libc::c_void,
    metric: libc::c_short,
    device: *const libc::c_char,
    mtu: libc::c_ulong,
    window: libc::c_ulong,
    round_trip: libc::c_ushort,
}

/// Adds a route of last resort by `gateway` on `name`; it goes with the interface. No error if there is one already.
///
/// # Errors
/// Missing privileges, no such interface, a gateway that is not on its network.
pub fn add_default_route(name: &str, gateway: Ipv4Addr) -> Result<()> {
    let ifr = request(name)?;
    let any = internet(Ipv4Addr::UNSPECIFIED);
    let mut route = RouteEntry {
        pad1: 0,
        destination: any,
        gateway: internet(gateway),
        mask: any,
        flags: libc::RTF_UP | libc::RTF_GATEWAY,
        pad2: 0,
        pad3: 0,
        pad4: std::ptr::null_mut(),
        metric: 0,
        device: ifr.ifr_name.as_ptr(),
        mtu: 0,
        window: 0,
        round_trip: 0,
    };
    let fd = control()?;
    // SAFETY: the command reads one `rtentry` and the name it points to, which ends in a zero; both outlive the call.
    match unsafe { libc::ioctl(fd.as_raw_fd(), libc::SIOCADDRT as _, std::ptr::from_mut(&mut route)) } {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            e if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            e => Err(Error::system(format!("add a route by {gateway} on {name}"), e)),
        },
    }
}

/// An IPv4 address as `sockaddr`: a `sockaddr_in` has two bytes of port, then the address.
fn internet(address: Ipv4Addr) -> libc::sockaddr {
    socket_address(libc::AF_INET as libc::sa_family_t, 2, &address.octets())
}

fn socket_address(family: libc::sa_family_t, at: usize, bytes: &[u8]) -> libc::sockaddr {
    let mut data = [0; 14];
    for (to, &from) in data.iter_mut().skip(at).zip(bytes) {
        *to = from as libc::c_char;
    }
    libc::sockaddr { sa_family: family, sa_data: data }
}

/// Makes `file`, an open `/dev/net/tun`, the other side of the interface `name`; returns the name that it got.
pub(crate) fn attach_tun(file: &File, name: &str, flags: i32) -> Result<String> {
    let mut ifr = request(name)?;
    ifr.ifr_ifru.ifru_flags = flags as libc::c_short;
    ioctl(file, libc::TUNSETIFF as _, &mut ifr)
        .map_err(|e| Error::system(format!("make the interface {name}"), e))?;
    Ok(until_zero(&ifr.ifr_name.map(|c| c as u8)))
}

/// `struct ethtool_cmd`, of whose 44 bytes the speed is two halves.
const ETHTOOL_GSET: u32 = 1;
const SETTINGS: usize = 44;
const SPEED: [usize; 2] = [12, 28];

/// The speed of an interface's link now, in Mbit/s, if its driver knows it.
///
/// # Errors
/// What ethtool's ioctl says.
pub fn speed_mbit_per_s(name: &str) -> Result<Option<u32>> {
    let mut settings = [0u8; SETTINGS];
    settings[..4].copy_from_slice(&ETHTOOL_GSET.to_ne_bytes());
    // SAFETY: as long as the structure of this command.
    unsafe { ethtool(&control()?, name, settings.as_mut_ptr().cast()) }?;
    let [low, high] = SPEED.map(|at| u32::from(u16::from_ne_bytes([settings[at], settings[at + 1]])));
    let speed = low | high << 16;
    // SPEED_UNKNOWN is -1.
    Ok((speed != 0 && speed != u32::MAX && low != u32::from(u16::MAX)).then_some(speed))
}

/// Gives `data`, a structure that begins with a command, to the driver of `name`.
///
/// # Safety
/// `data` points to as many bytes as the command reads and writes, and nobody else uses them meanwhile.
pub(crate) unsafe fn ethtool(fd: &OwnedFd, name: &str, data: *mut libc::c_char) -> Result<()> {
    let mut ifr = request(name)?;
    ifr.ifr_ifru.ifru_data = data;
    ioctl(fd, SIOCETHTOOL, &mut ifr).map_err(|e| Error::system(format!("{name}: ethtool"), e))
}

/// Promiscuous mode for as long as this value lives: a membership of a packet socket, which the kernel ends with the
/// process, however it ends.
#[derive(Debug)]
pub struct PromiscuousGuard {
    _socket: OwnedFd,
}

impl PromiscuousGuard {
    /// Makes the interface promiscuous.
    ///
    /// # Errors
    /// [`ErrorKind::Privilege`], or what setsockopt(2) says.
    pub fn new(interface: &Interface) -> Result<PromiscuousGuard> {
        // SAFETY: makes a new descriptor, checked and owned below. Protocol 0 receives nothing.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(Error::last_os(format!("{}: make a packet socket", interface.name)));
        }
        // SAFETY: new and ours.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: plain data, for which zeros are valid.
        let mut mreq: libc::packet_mreq = unsafe { std::mem::zeroed() };
        mreq.mr_ifindex = interface.index as i32;
        mreq.mr_type = libc::PACKET_MR_PROMISC as u16;
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &mreq)
            .map_err(|e| Error::system(format!("{}: promiscuous mode", interface.name), e))?;
        Ok(PromiscuousGuard { _socket: socket })
    }
}

/// What the options of sockets are made of.
///
/// # Safety
/// A C structure of integers, or one: any bytes are a value of it.
pub(crate) unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($type:ty),* $(,)?) => {
        // SAFETY: C structures of integers, and integers.
        $(unsafe impl $crate::interface::Plain for $type {})*
    };
}
pub(crate) use plain;

plain!(
    i32,
    u32,
    u64,
    libc::timeval,
    libc::packet_mreq,
    libc::xdp_umem_reg,
    libc::xdp_mmap_offsets,
    libc::xdp_statistics,
);

/// setsockopt(2) with the plain value `option`.
pub(crate) fn set_option<T: Plain>(fd: &OwnedFd, level: i32, name: i32, option: &T) -> io::Result<()> {
    // SAFETY: `option` is live and its size is given.
    let r = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(option).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if r == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// getsockopt(2) into a plain value, of which the kernel may fill a part.
pub(crate) fn get_option<T: Plain>(fd: &OwnedFd, level: i32, name: i32, mut value: T) -> io::Result<T> {
    let mut len = size_of::<T>() as libc::socklen_t;
    let at = std::ptr::from_mut(&mut value).cast();
    // SAFETY: `value` is live and `len` its size; the kernel writes no more, and any bytes are a `T`.
    let r = unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, at, &mut len) };
    if r == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}
