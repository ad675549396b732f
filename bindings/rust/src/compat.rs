//! The calls of the `jemalloc_pprof` crate, with its names and types.

use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::FromRawFd;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use tokio::sync::Mutex;

use crate::{Error, Format};

/// The process' handle on heap profiling; `None` when there is nothing to switch on: [`status`](crate::status) and
/// [`dump_pprof`](crate::dump_pprof) say why.
pub static PROF_CTL: LazyLock<Option<Arc<Mutex<JemallocProfCtl>>>> =
    LazyLock::new(|| JemallocProfCtl::get().map(|ctl| Arc::new(Mutex::new(ctl))));

/// Starts sampling, where that is possible. Where not, nothing is said: [`activate`](crate::activate) tells why.
pub async fn activate_jemalloc_profiling() {
    if let Some(ctl) = PROF_CTL.as_ref() {
        let _ = ctl.lock().await.activate();
    }
}

/// Stops sampling. What was sampled is kept.
pub async fn deactivate_jemalloc_profiling() {
    if let Some(ctl) = PROF_CTL.as_ref() {
        let _ = ctl.lock().await.deactivate();
    }
}

/// Since when allocations are sampled.
#[derive(Copy, Clone, Debug)]
pub enum ProfStartTime {
    Instant(Instant),
    /// Since the program's start, or since someone else activated it.
    TimeImmemorial,
}

#[derive(Copy, Clone, Debug)]
pub struct JemallocProfMetadata {
    /// `None` while nothing is being sampled.
    pub start_time: Option<ProfStartTime>,
}

/// A handle on heap profiling.
#[derive(Debug)]
pub struct JemallocProfCtl {
    since: Option<ProfStartTime>,
}

impl JemallocProfCtl {
    /// `None` without jemalloc, in a jemalloc without profiling, and when `opt.prof` is false.
    pub fn get() -> Option<Self> {
        let status = crate::status().ok()?;
        let since = status.active().then_some(ProfStartTime::TimeImmemorial);
        status.profiling_enabled().then_some(Self { since })
    }

    /// The base 2 logarithm of the mean number of bytes between two samples.
    pub fn lg_sample(&self) -> usize {
        crate::status().map_or(0, |status| status.lg_sample() as usize)
    }

    pub fn get_md(&self) -> JemallocProfMetadata {
        let since = self.since.unwrap_or(ProfStartTime::TimeImmemorial);
        JemallocProfMetadata { start_time: self.activated().then_some(since) }
    }

    /// Whether allocations are being sampled: what jemalloc says, whoever switched it on or off.
    pub fn activated(&self) -> bool {
        crate::status().is_ok_and(|status| status.active())
    }

    pub fn activate(&mut self) -> Result<(), Error> {
        let before = self.activated();
        crate::activate()?;
        if !before && self.since.is_none() {
            self.since = Some(ProfStartTime::Instant(Instant::now()));
        }
        Ok(())
    }

    /// Stops sampling and keeps what was sampled, unlike `jemalloc_pprof`, which forgets it: that is
    /// [`reset`](crate::reset).
    pub fn deactivate(&mut self) -> Result<(), Error> {
        crate::deactivate()
    }

    /// jemalloc's own text, `heap_v2`, in an unnamed file that is in memory: no directory is written to.
    pub fn dump(&mut self) -> anyhow::Result<File> {
        let dump = crate::dump_jeheap()?;
        let mut file = memory_file()?;
        file.write_all(&dump)?;
        file.rewind()?;
        Ok(file)
    }

    /// gzipped pprof; with names when the feature `symbolize` is on. The vector is in the heap that is profiled:
    /// [`dump_pprof`](crate::dump_pprof) is not.
    pub fn dump_pprof(&mut self) -> anyhow::Result<Vec<u8>> {
        let profile =
            if cfg!(feature = "symbolize") { crate::dump_named(Format::Pprof)? } else { crate::dump_pprof()? };
        Ok(profile.to_vec())
    }

    /// A flame graph, as SVG.
    pub fn dump_flamegraph(&mut self) -> anyhow::Result<Vec<u8>> {
        Ok(crate::dump_named(Format::Svg)?.to_vec())
    }
}

fn memory_file() -> std::io::Result<File> {
    const CLOSE_ON_EXEC: std::ffi::c_uint = 1;
    unsafe extern "C" {
        fn memfd_create(name: *const std::ffi::c_char, flags: std::ffi::c_uint) -> std::ffi::c_int;
    }
    // SAFETY: a text that ends.
    let fd = unsafe { memfd_create(c"heapgauge".as_ptr(), CLOSE_ON_EXEC) };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: just opened, and nobody else's.
    Ok(unsafe { File::from_raw_fd(fd) })
}
