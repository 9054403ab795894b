//! Programs: loading, with the verifier's log on refusal, and test runs.

use super::asm::Code;
use super::{sk_buff, sys};
use crate::error::{Error, ErrorKind, Result};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The kind of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramKind {
    /// Traffic control classifier, for tcx and clsact hooks.
    SchedCls,
    /// XDP, on frames that are in one piece.
    Xdp,
    /// XDP that can also be given frames in several pieces, of which it sees the first: so the interface's MTU may be
    /// anything.
    XdpFragments,
    /// Runs at a tracepoint; its context is the tracepoint's arguments, 64 bits each.
    RawTracepoint,
    /// Runs at an event of the processor, such as a tick of its clock; its context begins with the registers of what was
    /// interrupted.
    PerfEvent,
}

impl ProgramKind {
    /// The kernel's type of the program, and its flags.
    fn numbers(self) -> (u32, u32) {
        const BPF_F_XDP_HAS_FRAGS: u32 = 1 << 5;
        match self {
            ProgramKind::SchedCls => (3, 0),
            ProgramKind::Xdp => (6, 0),
            ProgramKind::XdpFragments => (6, BPF_F_XDP_HAS_FRAGS),
            ProgramKind::RawTracepoint => (17, 0),
            ProgramKind::PerfEvent => (7, 0),
        }
    }
}

/// Helpers marked for GPL programs only are needed by some programs; the licence is declared to the kernel.
const LICENSE: &[u8] = b"Dual MIT/GPL\0";
/// First size of the log buffer in bytes; grows by a factor of 8 up to `MAX_LOG` when the log does not fit.
const FIRST_LOG: usize = 1 << 16;
const MAX_LOG: usize = 1 << 24;
/// Lines of the log that are shown: at its end is what was refused, and why.
const LAST_LINES: usize = 20;
/// Run frames as if they had come in on a device and act on the verdict.
const BPF_F_TEST_XDP_LIVE_FRAMES: u32 = 1 << 1;

/// What a test run sees as its context: where the frame came in. `None` in [`Program::test_run`] means the loopback
/// device, queue 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdpContext {
    /// Interface the frame came in on.
    pub ingress_ifindex: u32,
    /// Queue of that interface.
    pub rx_queue_index: u32,
}

/// The context as the kernel reads it, `struct xdp_md`.
#[repr(C)]
struct XdpMd {
    data: u32,
    data_end: u32,
    data_meta: u32,
    ingress_ifindex: u32,
    rx_queue_index: u32,
    egress_ifindex: u32,
}

impl XdpContext {
    fn raw(self, len: usize) -> XdpMd {
        XdpMd {
            data: 0,
            data_end: len as u32,
            data_meta: 0,
            ingress_ifindex: self.ingress_ifindex,
            rx_queue_index: self.rx_queue_index,
            egress_ifindex: 0,
        }
    }
}

/// What a test run at tcx sees as its context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkbContext {
    /// Interface the packet came in on; 0 means the loopback device.
    pub ifindex: u32,
    /// Bytes of payload in each packet that it is to be cut into; 0 if it is not.
    pub gso_size: u32,
    /// The first of the words that programs may use as they like ([`sk_buff::CB`]).
    pub cb: u32,
}

/// The context as the kernel reads it: the words of `struct __sk_buff`.
type SkBuff = [u32; 48];

impl SkbContext {
    fn raw(self) -> SkBuff {
        let mut words = [0; 48];
        words[sk_buff::IFINDEX as usize / 4] = self.ifindex;
        words[sk_buff::GSO_SIZE as usize / 4] = self.gso_size;
        words[sk_buff::CB as usize / 4] = self.cb;
        words
    }
}

/// What a test run gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRun {
    /// The program's return value.
    pub verdict: i32,
    /// The frame after the run.
    pub data: Vec<u8>,
    /// Mean time of one run.
    pub duration_ns: u32,
}

/// A loaded program, owned: it lives as long as this value or a link that uses it.
#[derive(Debug)]
pub struct Program {
    fd: OwnedFd,
}

impl Program {
    /// Loads `code`; `name` shows in `bpftool`.
    ///
    /// # Errors
    /// [`ErrorKind::Verifier`] with the end of the verifier's log; [`ErrorKind::Privilege`].
    pub fn load(kind: ProgramKind, name: &str, code: &Code) -> Result<Program> {
        match Program::try_load(kind, name, code, None) {
            Ok(fd) => Ok(Program { fd }),
            Err(e) => Err(Program::explain(kind, name, code, e)),
        }
    }

    /// Its number, as [`tcx_programs`](crate::tcx_programs) shows it.
    ///
    /// # Errors
    /// What bpf(2) says.
    pub fn id(&self) -> Result<u32> {
        sys::ProgInfo::of(self.as_fd())
            .map(|info| info.id)
            .map_err(|e| Error::system("ask for a program's number", e))
    }

    /// A refused program is loaded again with a log: the log of an accepted one would only cost time.
    fn explain(kind: ProgramKind, name: &str, code: &Code, first: io::Error) -> Error {
        let mut size = FIRST_LOG;
        let what = format!("load BPF program {name}");
        while size <= MAX_LOG {
            let mut log = vec![0; size];
            let error = match Program::try_load(kind, name, code, Some(&mut log)) {
                Ok(_) => return Error::system(what, first),
                Err(e) => e,
            };
            let is_cut = error.raw_os_error() == Some(libc::ENOSPC);
            if is_cut && size * 8 <= MAX_LOG {
                size *= 8;
                continue;
            }
            // Of what is too long for any buffer Linux 6.4 and later leave the end, where the reason is.
            let error = if is_cut { first } else { error };
            let end = log.iter().position(|&b| b == 0).unwrap_or(log.len());
            let log = String::from_utf8_lossy(&log[..end]);
            if log.trim().is_empty() {
                return Error::system(what, error);
            }
            let lines: Vec<&str> = log.trim_end().lines().collect();
            let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
            return Error::system(what, error)
                .of_kind(ErrorKind::Verifier)
                .help(format!("the verifier says:\n{last}"));
        }
        Error::system(what, first)
    }

    fn try_load(kind: ProgramKind, name: &str, code: &Code, log: Option<&mut [u8]>) -> io::Result<OwnedFd> {
        let insns = code.to_bytes();
        let (log_level, log_size, log_buf) =
            log.map_or((0, 0, 0), |log| (1, log.len() as u32, log.as_mut_ptr() as u64));
        let (prog_type, prog_flags) = kind.numbers();
        let mut attr = sys::ProgLoad {
            prog_type,
            prog_flags,
            insn_cnt: code.insns().len() as u32,
            insns: insns.as_ptr() as u64,
            license: LICENSE.as_ptr() as u64,
            log_level,
            log_size,
            log_buf,
            prog_name: sys::object_name(name),
            ..Default::default()
        };
        // SAFETY: instructions, licence (zero-terminated) and log are live and as long as the attributes say.
        unsafe { sys::bpf_fd(sys::PROG_LOAD, &mut attr) }
    }

    /// Runs the program on `data` `repeat` times (at least once) and gives the last verdict. XDP frames are at
    /// least 14 bytes long. Redirects are decided but not carried out.
    ///
    /// # Errors
    /// What bpf(2) says.
    pub fn test_run(&self, data: &[u8], context: Option<XdpContext>, repeat: u32) -> Result<TestRun> {
        let context = context.map(|c| c.raw(data.len()));
        self.run(data, context.as_ref(), repeat)
    }

    /// The same of a program at tcx, once.
    ///
    /// # Errors
    /// What bpf(2) says.
    pub fn test_run_at_tcx(&self, data: &[u8], context: SkbContext) -> Result<TestRun> {
        self.run(data, Some(&context.raw()), 1)
    }

    fn run<C>(&self, data: &[u8], context: Option<&C>, repeat: u32) -> Result<TestRun> {
        let mut out = vec![0; data.len() + 1024];
        let mut attr = sys::ProgTestRun {
            data_size_out: out.len() as u32,
            data_out: out.as_mut_ptr() as u64,
            repeat,
            ..self.test_attr(data, context)
        };
        // SAFETY: input, output and context buffers are live and as long as the attributes say.
        unsafe { sys::bpf(sys::PROG_TEST_RUN, &mut attr) }
            .map_err(|e| Error::system("run a BPF program on test data", e))?;
        out.truncate(attr.data_size_out as usize);
        Ok(TestRun { verdict: attr.retval as i32, data: out, duration_ns: attr.duration })
    }

    /// Runs the program on `repeat` live frames that begin as `data`, and carries out its verdicts: frames are
    /// dropped, transmitted or redirected for real. They are made `batch_size` at a time (64 if 0), come from a pool
    /// of recycled pages, and seem to have come in on `context`.
    ///
    /// One call on a program that is attached nowhere waits for a grace period of the whole machine (some 30 ms), so
    /// keep it attached to a spare interface.
    ///
    /// # Errors
    /// What bpf(2) says; kernels before 5.18 do not know live frames (`EINVAL`).
    pub fn run_live(&self, data: &[u8], context: XdpContext, repeat: u32, batch_size: u32) -> Result<()> {
        let context = Some(context.raw(data.len()));
        let mut attr = sys::ProgTestRun {
            repeat,
            flags: BPF_F_TEST_XDP_LIVE_FRAMES,
            batch_size,
            ..self.test_attr(data, context.as_ref())
        };
        // SAFETY: input and context buffers are live and as long as the attributes say; there is no output.
        unsafe { sys::bpf(sys::PROG_TEST_RUN, &mut attr) }
            .map_err(|e| Error::system("run a BPF program on live frames", e))?;
        Ok(())
    }

    fn test_attr<C>(&self, data: &[u8], context: Option<&C>) -> sys::ProgTestRun {
        let (ctx_in, ctx_size_in) =
            context.map_or((0, 0), |c| (std::ptr::from_ref(c) as u64, size_of::<C>() as u32));
        sys::ProgTestRun {
            prog_fd: self.fd.as_raw_fd() as u32,
            data_size_in: data.len() as u32,
            data_in: data.as_ptr() as u64,
            ctx_size_in,
            ctx_in,
            ..Default::default()
        }
    }
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
