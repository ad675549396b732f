//! `heapgauge.h`, declared by hand; the test below compares it with the header.

use std::ffi::{c_char, c_int, c_uint, c_void};

pub type Mallctl = unsafe extern "C" fn(*const c_char, *mut c_void, *mut usize, *mut c_void, usize) -> c_int;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct StatusInfo {
    pub found: c_int,
    pub profiling_built_in: c_int,
    pub profiling_enabled: c_int,
    pub active: c_int,
    pub accumulates: c_int,
    pub lg_sample: c_uint,
    pub allocated: u64,
    pub active_bytes: u64,
    pub metadata: u64,
    pub resident: u64,
    pub mapped: u64,
    pub retained: u64,
    pub version: [c_char; 64],
    pub prefix: [c_char; 32],
    pub conf_variable: [c_char; 48],
    pub path: [c_char; 256],
    pub reserved: [c_char; 128],
}

#[repr(C)]
pub struct AgentOptions {
    pub size: usize,
    pub listen: *const c_char,
    pub token_file: *const c_char,
    pub allow_remote: c_int,
    pub allow_hosts: *const c_char,
    pub serve_arguments: c_int,
    pub spool_dir: *const c_char,
    pub symbolizer: *const c_char,
    pub snapshot_dir: *const c_char,
    pub snapshot_count: c_uint,
    pub snapshot_interval_s: c_uint,
    pub watch_rss_bytes: u64,
    pub watch_limit_percent: c_uint,
    pub watch_psi_percent: c_uint,
    pub watch_growth_bytes: u64,
    pub error: *mut c_char,
    pub error_size: usize,
    pub reserved: [*mut c_void; 8],
}

#[repr(C)]
pub struct Agent {
    _private: [u8; 0],
}

unsafe extern "C" {
    pub fn hg_version() -> *const c_char;
    pub fn hg_strerror(result: c_int) -> *const c_char;
    pub fn hg_use_mallctl(function: Option<Mallctl>, conf_variable: *const c_char) -> c_int;
    pub fn hg_status(ret_status: *mut StatusInfo) -> c_int;
    pub fn hg_activate() -> c_int;
    pub fn hg_deactivate() -> c_int;
    pub fn hg_reset(lg_sample: c_int) -> c_int;
    pub fn hg_dump_pprof(ret_bytes: *mut *mut c_void, ret_n: *mut usize) -> c_int;
    pub fn hg_dump_jeheap(ret_bytes: *mut *mut c_void, ret_n: *mut usize) -> c_int;
    pub fn hg_free(bytes: *mut c_void, n: usize);
    pub fn hg_dump_pprof_fd(fd: c_int) -> c_int;
    pub fn hg_dump_jeheap_fd(fd: c_int) -> c_int;
    pub fn hg_dump_named(format: *const c_char, ret_bytes: *mut *mut c_void, ret_n: *mut usize) -> c_int;
    pub fn hg_agent_start(options: *const AgentOptions, ret_agent: *mut *mut Agent) -> c_int;
    pub fn hg_agent_url(agent: *const Agent) -> *const c_char;
    pub fn hg_agent_stop(agent: *mut Agent);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;
    use std::mem::{offset_of, size_of};
    use std::process::Command;

    /// Lines "struct.field offset", as C and as Rust see them.
    macro_rules! layout {
        ($rust:ident, $c:literal, $($field:ident)*) => {{
            let mut rust = format!("{} {}\n", $c, size_of::<$rust>());
            let mut c = format!("printf(\"{} %zu\\n\", sizeof({}));\n", $c, $c);
            $(
                writeln!(rust, "{} {}", stringify!($field), offset_of!($rust, $field)).unwrap();
                writeln!(c, "printf(\"{0} %zu\\n\", offsetof({1}, {0}));", stringify!($field), $c).unwrap();
            )*
            (rust, c)
        }};
    }

    #[test]
    fn layout_is_that_of_the_header() {
        let (status, c_status) = layout!(StatusInfo, "hg_status_info",
            found profiling_built_in profiling_enabled active accumulates lg_sample allocated active_bytes metadata
            resident mapped retained version prefix conf_variable path reserved);
        let (options, c_options) = layout!(AgentOptions, "hg_agent_options",
            size listen token_file allow_remote allow_hosts serve_arguments spool_dir symbolizer snapshot_dir
            snapshot_count snapshot_interval_s watch_rss_bytes watch_limit_percent watch_psi_percent
            watch_growth_bytes error error_size reserved);
        let dir = std::path::Path::new(env!("HEAPGAUGE_OUT_DIR"));
        let (source, program) = (dir.join("layout.c"), dir.join("layout"));
        let main = format!("int main(void)\n{{\n{c_status}{c_options}return 0;\n}}\n");
        let text = format!("#include <heapgauge.h>\n#include <stdio.h>\n{main}");
        std::fs::write(&source, text).unwrap();
        let compiled =
            Command::new("cc").arg("-I").arg(env!("HEAPGAUGE_INCLUDE")).arg("-o").args([&program, &source]).status();
        assert!(compiled.unwrap().success());
        let output = Command::new(&program).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), status + &options);
    }
}
