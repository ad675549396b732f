use std::ffi::{c_char, c_int, CStr};
use std::fmt;
use std::mem::MaybeUninit;

use crate::{error::check, ffi, Error};

/// jemalloc's `mallctl`, by whatever name.
pub type Mallctl = ffi::Mallctl;

/// What jemalloc says of itself; see [`status`].
#[derive(Clone, Copy)]
pub struct Status(ffi::StatusInfo);

fn text(field: &[c_char]) -> &str {
    // SAFETY: the library ends every text within its field.
    let text = unsafe { CStr::from_ptr(field.as_ptr()) };
    text.to_str().unwrap_or("")
}

impl Status {
    /// False: this process has no jemalloc, and all the rest is empty.
    pub fn found(&self) -> bool {
        self.0.found != 0
    }

    /// `config.prof`
    pub fn profiling_built_in(&self) -> bool {
        self.0.profiling_built_in != 0
    }

    /// `opt.prof`
    pub fn profiling_enabled(&self) -> bool {
        self.0.profiling_enabled != 0
    }

    /// `prof.active`: allocations are being sampled.
    pub fn active(&self) -> bool {
        self.0.active != 0
    }

    /// `opt.prof_accum`: dumps hold all that was ever allocated (`alloc_space`), too.
    pub fn accumulates(&self) -> bool {
        self.0.accumulates != 0
    }

    /// The base 2 logarithm of the mean number of bytes between two samples.
    pub fn lg_sample(&self) -> u32 {
        self.0.lg_sample
    }

    /// jemalloc's `stats.allocated`, in bytes, as the following.
    pub fn allocated(&self) -> u64 {
        self.0.allocated
    }

    /// `stats.active`: in pages that hold allocations.
    pub fn active_bytes(&self) -> u64 {
        self.0.active_bytes
    }

    pub fn metadata(&self) -> u64 {
        self.0.metadata
    }

    pub fn resident(&self) -> u64 {
        self.0.resident
    }

    pub fn mapped(&self) -> u64 {
        self.0.mapped
    }

    pub fn retained(&self) -> u64 {
        self.0.retained
    }

    /// jemalloc's version: `5.3.1-0-g...`
    pub fn version(&self) -> &str {
        text(&self.0.version)
    }

    /// Of its functions: empty, `je_`, `_rjem_`, ...
    pub fn prefix(&self) -> &str {
        text(&self.0.prefix)
    }

    /// The environment variable it reads: `MALLOC_CONF`, `_RJEM_MALLOC_CONF`, ...
    pub fn conf_variable(&self) -> &str {
        text(&self.0.conf_variable)
    }

    /// The file it is in.
    pub fn path(&self) -> &str {
        text(&self.0.path)
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Status")
            .field("found", &self.found())
            .field("profiling_built_in", &self.profiling_built_in())
            .field("profiling_enabled", &self.profiling_enabled())
            .field("active", &self.active())
            .field("accumulates", &self.accumulates())
            .field("lg_sample", &self.lg_sample())
            .field("allocated", &self.allocated())
            .field("active_bytes", &self.active_bytes())
            .field("metadata", &self.metadata())
            .field("resident", &self.resident())
            .field("mapped", &self.mapped())
            .field("retained", &self.retained())
            .field("version", &self.version())
            .field("prefix", &self.prefix())
            .field("conf_variable", &self.conf_variable())
            .field("path", &self.path())
            .finish()
    }
}

/// What jemalloc says of itself. Succeeds without jemalloc, too: [`Status::found`]. Refreshes jemalloc's statistics.
pub fn status() -> Result<Status, Error> {
    let mut status = MaybeUninit::uninit();
    // SAFETY: room for one; written when it succeeds.
    unsafe {
        check(ffi::hg_status(status.as_mut_ptr()))?;
        Ok(Status(status.assume_init()))
    }
}

/// Starts sampling.
pub fn activate() -> Result<(), Error> {
    // SAFETY: takes nothing.
    check(unsafe { ffi::hg_activate() })
}

/// Stops sampling. What was sampled stays in the profiles until it is freed.
pub fn deactivate() -> Result<(), Error> {
    // SAFETY: takes nothing.
    check(unsafe { ffi::hg_deactivate() })
}

/// Forgets all samples; from now on one is taken every 2^`lg_sample` bytes (0 to 62), or as often as before (`None`).
/// What is alive now will never be in a profile again.
pub fn reset(lg_sample: Option<u32>) -> Result<(), Error> {
    let lg_sample = lg_sample.map_or(-1, |lg| c_int::try_from(lg).unwrap_or(c_int::MAX));
    // SAFETY: takes a number.
    check(unsafe { ffi::hg_reset(lg_sample) })
}

/// Names jemalloc's mallctl where it isn't found: another prefix than `_rjem_` in a stripped program, a prefix within a
/// namespace; or to choose one of several. `conf_variable`: the environment variable that this jemalloc reads; `None`:
/// `MALLOC_CONF`. Without a function: look for jemalloc again.
///
/// # Safety
/// `mallctl` is that of a jemalloc, and stays so for as long as the process lives.
pub unsafe fn use_mallctl(mallctl: Option<Mallctl>, conf_variable: Option<&CStr>) -> Result<(), Error> {
    let variable = conf_variable.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: the caller's word for the function; the text ends.
    check(unsafe { ffi::hg_use_mallctl(mallctl, variable) })
}

/// The version of the library in this program.
pub fn version() -> &'static str {
    // SAFETY: a static text.
    unsafe { CStr::from_ptr(ffi::hg_version()) }.to_str().unwrap_or("")
}
