use std::ffi::{c_int, c_void, CStr};
use std::fmt;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd};

use crate::{error::check, ffi, Error};

/// The bytes of a heap profile. They lie in memory that the library mapped itself, not in jemalloc's, so that they
/// are in no profile; dropping gives it back to the system. `bytes::Bytes::from_owner(profile)` takes them without a
/// copy.
pub struct Profile {
    bytes: *mut c_void,
    n: usize,
}

// SAFETY: a block of bytes with one owner, which hg_free() takes from any thread.
unsafe impl Send for Profile {}
// SAFETY: nobody writes into it.
unsafe impl Sync for Profile {}

impl Deref for Profile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        if self.n == 0 {
            return &[];
        }
        // SAFETY: n bytes from the library, ours until drop.
        unsafe { std::slice::from_raw_parts(self.bytes.cast(), self.n) }
    }
}

impl AsRef<[u8]> for Profile {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        // SAFETY: as it was given, and only once.
        unsafe { ffi::hg_free(self.bytes, self.n) }
    }
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Profile({} bytes)", self.n)
    }
}

/// What [`dump_named`] can make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// gzipped pprof, with names
    Pprof,
    /// a line for each stack, as flame graph programs take it
    Folded,
    /// a flame graph
    Svg,
    /// a page with a flame graph to look around in
    Html,
    /// a table of functions
    Text,
    Json,
}

impl Format {
    fn name(self) -> &'static CStr {
        match self {
            Format::Pprof => c"pprof",
            Format::Folded => c"folded",
            Format::Svg => c"svg",
            Format::Html => c"html",
            Format::Text => c"text",
            Format::Json => c"json",
        }
    }
}

fn dump(call: impl FnOnce(*mut *mut c_void, *mut usize) -> c_int) -> Result<Profile, Error> {
    let (mut bytes, mut n) = (std::ptr::null_mut(), 0);
    check(call(&mut bytes, &mut n))?;
    Ok(Profile { bytes, n })
}

/// The heap profile as gzipped pprof, with build ids and without names: pprof viewers look them up where they have the
/// binaries.
///
/// Blocks for as long as the dump takes, some 15 µs for each stack there is: in async code, `spawn_blocking`.
pub fn dump_pprof() -> Result<Profile, Error> {
    // SAFETY: two places to write to.
    dump(|bytes, n| unsafe { ffi::hg_dump_pprof(bytes, n) })
}

/// The heap profile in jemalloc's own text, `heap_v2`.
pub fn dump_jeheap() -> Result<Profile, Error> {
    // SAFETY: two places to write to.
    dump(|bytes, n| unsafe { ffi::hg_dump_jeheap(bytes, n) })
}

/// The heap profile with names, inlined calls and lines. A short-lived child process, the heapgauge program, looks them
/// up: nothing of that is in this process' memory. [`Error::NoSymbolizer`] where that program is not installed.
pub fn dump_named(format: Format) -> Result<Profile, Error> {
    // SAFETY: a text that ends, and two places to write to.
    dump(|bytes, n| unsafe { ffi::hg_dump_named(format.name().as_ptr(), bytes, n) })
}

/// [`dump_pprof`], written to a file, a pipe or a socket from its position on.
pub fn dump_pprof_to(fd: impl AsFd) -> Result<(), Error> {
    // SAFETY: open for as long as fd is borrowed.
    check(unsafe { ffi::hg_dump_pprof_fd(fd.as_fd().as_raw_fd()) })
}

/// [`dump_jeheap`], written to a file, a pipe or a socket from its position on.
pub fn dump_jeheap_to(fd: impl AsFd) -> Result<(), Error> {
    // SAFETY: open for as long as fd is borrowed.
    check(unsafe { ffi::hg_dump_jeheap_fd(fd.as_fd().as_raw_fd()) })
}
