//! The Rust converter as a peer: what the jemalloc_pprof crate does with a dump (parse_jeheap, then
//! to_pprof, which also compresses), on a dump given as a file.
//!
//!     pprof_util_peer DUMP OUT.pb.gz
//!
//! The crate describes its own process's libraries; for the file of another process they are taken
//! from the dump's MAPPED_LIBRARIES, which stands at its end.

use pprof_util::{parse_jeheap, Mapping};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

const TAIL_BYTES: u64 = 1 << 20;

fn mapping_of_line(line: &str) -> Option<Mapping> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let _permissions = words.next()?;
    let offset = words.next()?;
    let path = words.nth(2)?;
    if !path.starts_with('/') {
        return None;
    }
    let offset = u64::from_str_radix(offset, 16).ok()?;
    Some(Mapping {
        memory_start: usize::from_str_radix(start, 16).ok()?,
        memory_end: usize::from_str_radix(end, 16).ok()?,
        memory_offset: offset as usize,
        file_offset: offset,
        pathname: path.into(),
        build_id: None,
    })
}

fn mappings(path: &str) -> anyhow::Result<Vec<Mapping>> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(TAIL_BYTES)))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    let tail = String::from_utf8_lossy(&tail);
    let maps = tail.split_once("MAPPED_LIBRARIES:").map_or("", |(_, maps)| maps);
    Ok(maps.lines().filter_map(mapping_of_line).collect())
}

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let [_, dump, out] = &args[..] else {
        eprintln!("usage: pprof_util_peer DUMP OUT");
        std::process::exit(2);
    };
    let profile = parse_jeheap(BufReader::new(File::open(dump)?), Some(&mappings(dump)?))?;
    let pprof = profile.to_pprof(("inuse_space", "bytes"), ("space", "bytes"), None);
    std::fs::write(out, pprof)?;
    Ok(())
}
