#![doc = include_str!("../README.md")]
#![warn(missing_debug_implementations)]

// zlib, for the C library.
use libz_sys as _;

mod agent;
mod control;
mod error;
mod ffi;
mod profile;

#[cfg(feature = "jemalloc-pprof")]
mod compat;

pub use agent::{Agent, AgentBuilder};
#[cfg(feature = "jemalloc-pprof")]
pub use compat::{
    activate_jemalloc_profiling, deactivate_jemalloc_profiling, JemallocProfCtl, JemallocProfMetadata, ProfStartTime,
    PROF_CTL,
};
pub use control::{activate, deactivate, reset, status, use_mallctl, version, Mallctl, Status};
pub use error::{AgentError, Error};
pub use profile::{dump_jeheap, dump_jeheap_to, dump_named, dump_pprof, dump_pprof_to, Format, Profile};
