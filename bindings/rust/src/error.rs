use std::ffi::{c_int, CStr};
use std::fmt;

use crate::ffi;

/// Why there is no profile. `Display` says it in one sentence, with what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Error {
    /// No jemalloc was found in this process.
    NoJemalloc,
    /// jemalloc was built without profiling: feature `profiling` of tikv-jemallocator.
    NoProfiling,
    /// `opt.prof` is false. It can only be switched on when the program starts.
    ProfOff,
    /// Nothing was ever sampled: [`activate`](crate::activate).
    Inactive,
    /// Another dump is on its way.
    Busy,
    NoMemory,
    /// The system refused something: no /proc, a full disk, an address in use.
    Io,
    /// An argument that makes no sense.
    Invalid,
    /// A listener that others could reach, without a token or without `allow_remote`.
    Unsafe,
    /// The agent runs already.
    Running,
    /// Names were asked for, and no heapgauge program was found that could look them up.
    NoSymbolizer,
    /// jemalloc refused, or its dump could not be read.
    Failed,
    /// A result of a newer library.
    Other(i32),
}

const CODES: [(Error, c_int); 12] = [
    (Error::NoJemalloc, -1),
    (Error::NoProfiling, -2),
    (Error::ProfOff, -3),
    (Error::Inactive, -4),
    (Error::Busy, -5),
    (Error::NoMemory, -6),
    (Error::Io, -7),
    (Error::Invalid, -8),
    (Error::Unsafe, -9),
    (Error::Running, -10),
    (Error::NoSymbolizer, -11),
    (Error::Failed, -12),
];

impl Error {
    /// The library's code: `HG_INACTIVE`, ...
    pub fn code(self) -> i32 {
        match self {
            Error::Other(code) => code,
            known => CODES.iter().find(|(error, _)| *error == known).map_or(0, |(_, code)| *code),
        }
    }

    fn from_code(code: c_int) -> Error {
        CODES.iter().find(|(_, known)| *known == code).map_or(Error::Other(code), |(error, _)| *error)
    }
}

/// The result of a call into the library as Rust's.
pub(crate) fn check(result: c_int) -> Result<(), Error> {
    if result == 0 {
        Ok(())
    } else {
        Err(Error::from_code(result))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: a static text, never NULL.
        let text = unsafe { CStr::from_ptr(ffi::hg_strerror(self.code())) };
        f.write_str(&text.to_string_lossy())
    }
}

impl std::error::Error for Error {}

/// Why an agent did not start: what kind of failure, and a sentence about this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentError {
    pub error: Error,
    pub message: String,
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message.is_empty() {
            self.error.fmt(f)
        } else {
            f.write_str(&self.message)
        }
    }
}

impl std::error::Error for AgentError {}

impl From<AgentError> for Error {
    fn from(e: AgentError) -> Error {
        e.error
    }
}
