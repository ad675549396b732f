use std::ffi::{c_char, c_uint, CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use crate::{error::check, ffi, AgentError, Error};

/// An HTTP endpoint with this process' heap profiles, and snapshots written before memory runs out, on threads of the
/// library's own. Ends when it is dropped; `std::mem::forget(agent)` keeps it for as long as the process lives.
#[derive(Debug)]
#[must_use = "the agent stops when it is dropped"]
pub struct Agent {
    agent: *mut ffi::Agent,
}

// SAFETY: the library takes it from any thread.
unsafe impl Send for Agent {}
// SAFETY: all that a shared reference does is to read its address, which doesn't change.
unsafe impl Sync for Agent {}

impl Agent {
    /// The options of an agent. Without any it listens on a unix socket in `$XDG_RUNTIME_DIR/heapgauge` or
    /// `/tmp/heapgauge-UID` and takes no snapshots.
    pub fn builder() -> AgentBuilder {
        AgentBuilder::default()
    }

    /// Where it listens: `http://127.0.0.1:6060` or `unix:/path`; empty for nowhere.
    pub fn url(&self) -> &str {
        // SAFETY: a text that is good until hg_agent_stop().
        let url = unsafe { CStr::from_ptr(ffi::hg_agent_url(self.agent)) };
        url.to_str().unwrap_or("")
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // SAFETY: nobody has it any more.
        unsafe { ffi::hg_agent_stop(self.agent) }
    }
}

/// See [`Agent::builder`]. What isn't said has the library's default.
#[derive(Clone, Debug, Default)]
pub struct AgentBuilder {
    listen: Option<CString>,
    token_file: Option<CString>,
    allow_remote: bool,
    allow_hosts: Option<CString>,
    serve_arguments: bool,
    spool_dir: Option<CString>,
    symbolizer: Option<CString>,
    snapshot_dir: Option<CString>,
    snapshot_count: c_uint,
    snapshot_interval_s: c_uint,
    watch_rss_bytes: u64,
    watch_limit_percent: c_uint,
    watch_psi_percent: c_uint,
    watch_growth_bytes: u64,
    nul: bool,
}

impl AgentBuilder {
    /// `127.0.0.1:6060`, `[::1]:0` (any port), `localhost:6060`, `unix:/path`, or `none`: no endpoint.
    pub fn listen(mut self, address: &str) -> Self {
        self.listen = self.text(address.as_ref());
        self
    }

    /// Clients must send `Authorization: Bearer TOKEN`: what is in this file, of mode 0600 and at least 16 bytes.
    pub fn token_file(mut self, path: impl AsRef<Path>) -> Self {
        self.token_file = self.text(path.as_ref().as_os_str());
        self
    }

    /// Lets `listen` name an address that is not loopback. Needs a token.
    pub fn allow_remote(mut self, allow: bool) -> Self {
        self.allow_remote = allow;
        self
    }

    /// More names that a Host header may have, behind a proxy: `a.example,b:8080`.
    pub fn allow_hosts(mut self, hosts: &str) -> Self {
        self.allow_hosts = self.text(hosts.as_ref());
        self
    }

    /// `/pprof/cmdline` tells the program's arguments, too. They may hold secrets.
    pub fn serve_arguments(mut self, serve: bool) -> Self {
        self.serve_arguments = serve;
        self
    }

    /// jemalloc writes a dump's text into an unnamed file there, instead of memory.
    pub fn spool_dir(mut self, path: impl AsRef<Path>) -> Self {
        self.spool_dir = self.text(path.as_ref().as_os_str());
        self
    }

    /// The heapgauge program that looks up names. Without: beside the program, then `/usr/local/bin`, `/usr/bin`.
    pub fn symbolizer(mut self, path: impl AsRef<Path>) -> Self {
        self.symbolizer = self.text(path.as_ref().as_os_str());
        self
    }

    /// Keeps snapshots there, pprof files, when one of the `watch_` limits is passed. [`watch_limit_percent`] is on
    /// then.
    ///
    /// [`watch_limit_percent`]: AgentBuilder::watch_limit_percent
    pub fn snapshot_dir(mut self, path: impl AsRef<Path>) -> Self {
        self.snapshot_dir = self.text(path.as_ref().as_os_str());
        self
    }

    /// The oldest goes when there are more; default 5.
    pub fn snapshot_count(mut self, count: u32) -> Self {
        self.snapshot_count = count;
        self
    }

    /// Not more often than this, in whole seconds; default 10 s.
    pub fn snapshot_interval(mut self, interval: Duration) -> Self {
        self.snapshot_interval_s = c_uint::try_from(interval.as_secs().max(1)).unwrap_or(c_uint::MAX);
        self
    }

    /// A snapshot when resident memory passes this, and every further eighth of it.
    pub fn watch_rss(mut self, bytes: u64) -> Self {
        self.watch_rss_bytes = bytes;
        self
    }

    /// A snapshot at this part of the cgroup's memory limit; default 80 when there is a directory; 101: off.
    pub fn watch_limit_percent(mut self, percent: u32) -> Self {
        self.watch_limit_percent = percent;
        self
    }

    /// A snapshot when some task waited for memory for this part of the time.
    pub fn watch_psi_percent(mut self, percent: u32) -> Self {
        self.watch_psi_percent = percent;
        self
    }

    /// A snapshot when this much was allocated since the last one.
    pub fn watch_growth(mut self, bytes: u64) -> Self {
        self.watch_growth_bytes = bytes;
        self
    }

    /// Starts the agent. There is one in a process: [`Error::Running`]. Without jemalloc, too: every answer then says
    /// why there is no profile.
    pub fn start(&self) -> Result<Agent, AgentError> {
        if self.nul {
            return Err(AgentError { error: Error::Invalid, message: "an agent's option holds a NUL byte".into() });
        }
        let mut message = [0; 512];
        let options = self.options(&mut message);
        let mut agent = std::ptr::null_mut();
        // SAFETY: texts that end, room for a message, and a place for the agent.
        let result = unsafe { ffi::hg_agent_start(&options, &mut agent) };
        match check(result) {
            Ok(()) => Ok(Agent { agent }),
            Err(error) => {
                // SAFETY: the library ends its sentence within the room it was given, or leaves it empty.
                let message = unsafe { CStr::from_ptr(message.as_ptr()) };
                Err(AgentError { error, message: message.to_string_lossy().into_owned() })
            }
        }
    }

    fn options(&self, message: &mut [c_char]) -> ffi::AgentOptions {
        let text = |text: &Option<CString>| text.as_ref().map_or(std::ptr::null(), |t| t.as_ptr());
        ffi::AgentOptions {
            size: size_of::<ffi::AgentOptions>(),
            listen: text(&self.listen),
            token_file: text(&self.token_file),
            allow_remote: self.allow_remote.into(),
            allow_hosts: text(&self.allow_hosts),
            serve_arguments: self.serve_arguments.into(),
            spool_dir: text(&self.spool_dir),
            symbolizer: text(&self.symbolizer),
            snapshot_dir: text(&self.snapshot_dir),
            snapshot_count: self.snapshot_count,
            snapshot_interval_s: self.snapshot_interval_s,
            watch_rss_bytes: self.watch_rss_bytes,
            watch_limit_percent: self.watch_limit_percent,
            watch_psi_percent: self.watch_psi_percent,
            watch_growth_bytes: self.watch_growth_bytes,
            error: message.as_mut_ptr(),
            error_size: message.len(),
            reserved: [std::ptr::null_mut(); 8],
        }
    }

    /// As C takes it; one that C can't take is remembered for start().
    fn text(&mut self, text: &OsStr) -> Option<CString> {
        let text = CString::new(text.as_bytes());
        self.nul |= text.is_err();
        text.ok()
    }
}
