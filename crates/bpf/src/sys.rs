//! bpf(2): attribute layouts and the one place that calls it.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

pub const MAP_CREATE: i32 = 0;
pub const MAP_LOOKUP_ELEM: i32 = 1;
pub const MAP_UPDATE_ELEM: i32 = 2;
pub const MAP_DELETE_ELEM: i32 = 3;
pub const MAP_GET_NEXT_KEY: i32 = 4;
pub const PROG_LOAD: i32 = 5;
pub const PROG_TEST_RUN: i32 = 10;
pub const PROG_GET_FD_BY_ID: i32 = 13;
pub const OBJ_GET_INFO_BY_FD: i32 = 15;
pub const PROG_QUERY: i32 = 16;
pub const RAW_TRACEPOINT_OPEN: i32 = 17;
pub const LINK_CREATE: i32 = 28;
pub const LINK_UPDATE: i32 = 29;

/// Longest name of a program or map, with the final zero.
pub const NAME_LEN: usize = 16;

#[derive(Clone, Default)]
#[repr(C)]
pub struct MapCreate {
    pub map_type: u32,
    pub key_size: u32,
    pub value_size: u32,
    pub max_entries: u32,
    pub map_flags: u32,
    pub inner_map_fd: u32,
    pub numa_node: u32,
    pub map_name: [u8; NAME_LEN],
    pub pad: u32,
}

#[derive(Clone, Default)]
#[repr(C)]
pub struct MapElem {
    pub map_fd: u32,
    pub pad: u32,
    pub key: u64,
    pub value: u64,
    pub flags: u64,
}

#[derive(Clone, Default)]
#[repr(C)]
pub struct ProgLoad {
    pub prog_type: u32,
    pub insn_cnt: u32,
    pub insns: u64,
    pub license: u64,
    pub log_level: u32,
    pub log_size: u32,
    pub log_buf: u64,
    pub kern_version: u32,
    pub prog_flags: u32,
    pub prog_name: [u8; NAME_LEN],
    pub prog_ifindex: u32,
    pub expected_attach_type: u32,
}

#[derive(Clone, Default)]
#[repr(C)]
pub struct ProgTestRun {
    pub prog_fd: u32,
    pub retval: u32,
    pub data_size_in: u32,
    pub data_size_out: u32,
    pub data_in: u64,
    pub data_out: u64,
    pub repeat: u32,
    pub duration: u32,
    pub ctx_size_in: u32,
    pub ctx_size_out: u32,
    pub ctx_in: u64,
    pub ctx_out: u64,
    pub flags: u32,
    pub cpu: u32,
    pub batch_size: u32,
    pub pad: u32,
}

#[derive(Clone, Default)]
#[repr(C)]
pub struct RawTracepoint {
    pub name: u64,
    pub prog_fd: u32,
    pub pad: u32,
}

#[derive(Clone, Default)]
#[repr(C)]
pub struct LinkCreate {
    pub prog_fd: u32,
    pub target_ifindex: u32,
    pub attach_type: u32,
    pub flags: u32,
}

#[derive(Clone, Default)]
#[repr(C)]
pub struct LinkUpdate {
    pub link_fd: u32,
    pub new_prog_fd: u32,
    pub flags: u32,
    pub old_prog_fd: u32,
}

#[derive(Clone, Default)]
#[repr(C)]
pub struct ProgQuery {
    pub target: u32,
    pub attach_type: u32,
    pub query_flags: u32,
    pub attach_flags: u32,
    pub prog_ids: u64,
    pub count: u32,
    pub pad: u32,
    pub prog_attach_flags: u64,
    pub link_ids: u64,
    pub link_attach_flags: u64,
    pub revision: u64,
}

#[derive(Clone, Default)]
#[repr(C)]
pub struct GetFdById {
    pub id: u32,
    pub next_id: u32,
    pub open_flags: u32,
}

#[derive(Clone, Default)]
#[repr(C)]
pub struct GetInfo {
    pub fd: u32,
    pub len: u32,
    pub info: u64,
}

/// The beginning of what is known of a program (`struct bpf_prog_info`), as far as its name.
#[derive(Clone, Default)]
#[repr(C)]
pub struct ProgInfo {
    pub prog_type: u32,
    pub id: u32,
    pub tag: [u8; 8],
    pub jited_len: u32,
    pub xlated_len: u32,
    pub jited_insns: u64,
    pub xlated_insns: u64,
    pub load_time: u64,
    pub created_by_uid: u32,
    pub nr_map_ids: u32,
    pub map_ids: u64,
    pub name: [u8; NAME_LEN],
}

impl ProgInfo {
    /// Of a program.
    pub fn of(program: BorrowedFd<'_>) -> io::Result<ProgInfo> {
        let mut info = ProgInfo::default();
        let mut attr = GetInfo {
            fd: program.as_raw_fd() as u32,
            len: size_of::<ProgInfo>() as u32,
            info: std::ptr::from_mut(&mut info) as u64,
        };
        // SAFETY: `info` is live and as long as the attributes say; as it is zero, the kernel writes nowhere else.
        unsafe { bpf(OBJ_GET_INFO_BY_FD, &mut attr) }?;
        Ok(info)
    }
}

/// A block of attributes of bpf(2).
///
/// # Safety
/// The type is `repr(C)`, has no padding, and is laid out as the kernel expects for the commands it is used with.
pub unsafe trait Attr {}
// SAFETY: laid out after `union bpf_attr`; gaps are explicit `pad` fields.
unsafe impl Attr for MapCreate {}
// SAFETY: see above.
unsafe impl Attr for MapElem {}
// SAFETY: see above.
unsafe impl Attr for ProgLoad {}
// SAFETY: see above.
unsafe impl Attr for ProgTestRun {}
// SAFETY: see above.
unsafe impl Attr for RawTracepoint {}
// SAFETY: see above.
unsafe impl Attr for LinkCreate {}
// SAFETY: see above.
unsafe impl Attr for LinkUpdate {}
// SAFETY: see above.
unsafe impl Attr for ProgQuery {}
// SAFETY: see above.
unsafe impl Attr for GetFdById {}
// SAFETY: see above.
unsafe impl Attr for GetInfo {}

/// Calls bpf(2).
///
/// # Safety
/// Every address in `attr` is valid for what `command` reads or writes there, for the length that `attr` or the
/// object it names says.
pub unsafe fn bpf<A: Attr>(command: i32, attr: &mut A) -> io::Result<i32> {
    // SAFETY: `attr` is live and as long as we say; what it points to is the caller's promise.
    let r = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attr), size_of::<A>()) };
    if r < 0 { Err(io::Error::last_os_error()) } else { Ok(r as i32) }
}

/// [`bpf`] for the commands that return a new descriptor.
///
/// # Safety
/// As [`bpf`]; `command` is one that returns a descriptor.
pub unsafe fn bpf_fd<A: Attr>(command: i32, attr: &mut A) -> io::Result<OwnedFd> {
    // SAFETY: the caller's promise.
    let fd = unsafe { bpf(command, attr)? };
    // SAFETY: the kernel has just made `fd` for us, nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// `name` cut to what the kernel stores, with every other character replaced by `_`.
pub fn object_name(name: &str) -> [u8; NAME_LEN] {
    let mut out = [0; NAME_LEN];
    for (o, b) in out.iter_mut().zip(name.bytes().take(NAME_LEN - 1)) {
        *o = if b.is_ascii_alphanumeric() || b == b'_' || b == b'.' { b } else { b'_' };
    }
    out
}
