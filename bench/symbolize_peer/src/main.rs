//! The same program as symbolize_host.c with the jemalloc_pprof crate, which names its stacks inside of the process.
//!
//!     symbolize_peer ROUNDS OUT
//!
//! Prints, one a line for each round: milliseconds of the dump with names; KiB of resident memory before, after and at the
//! peak, and of anonymous memory before and after; bytes that the heap profile has more than before.

use std::time::Instant;

#[global_allocator]
static ALLOC: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[link(name = "units")]
extern "C" {
    fn units_run(seed: i32);
}

fn kib_of(name: &str) -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split_ascii_whitespace().nth(1)?.parse().ok()).unwrap_or(-1)
}

/// What the profile holds: the third number of the dump's line "  t*: objects: bytes [...]".
fn profiled_bytes() -> anyhow::Result<i64> {
    let path = std::env::temp_dir().join(format!("symbolize_peer.{}", std::process::id()));
    let name = std::ffi::CString::new(path.to_str().unwrap())?;
    unsafe { tikv_jemalloc_ctl::raw::write(b"prof.dump\0", name.as_ptr()) }.map_err(|e| anyhow::anyhow!("{e}"))?;
    let text = std::fs::read_to_string(&path)?;
    std::fs::remove_file(&path)?;
    let line = text.lines().nth(1).unwrap_or("");
    Ok(line.split_ascii_whitespace().nth(2).and_then(|n| n.parse().ok()).unwrap_or(-1))
}

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let rounds: u32 = args[1].parse()?;
    for seed in 0..20 {
        unsafe { units_run(seed) };
    }
    let control = jemalloc_pprof::PROF_CTL.as_ref().expect("profiling is off").clone();
    println!("pid {}", std::process::id());
    for _ in 0..rounds {
        let profiled = profiled_bytes()?;
        let (before, anonymous) = (kib_of("VmRSS:"), kib_of("RssAnon:"));
        std::fs::write("/proc/self/clear_refs", "5")?;
        let start = Instant::now();
        let pprof = control.try_lock().expect("nobody else dumps").dump_pprof()?;
        let took = start.elapsed().as_secs_f64() * 1e3;
        std::fs::write(&args[2], &pprof)?;
        drop(pprof);
        let (peak, after, anonymous_after) = (kib_of("VmHWM:"), kib_of("VmRSS:"), kib_of("RssAnon:"));
        println!("round {took:.1} {before} {after} {peak} {anonymous} {anonymous_after} {}", profiled_bytes()? - profiled);
    }
    Ok(())
}
