//! A program on tikv-jemallocator that does what its arguments say, one after the other, and prints a line for each:
//! "leak: ok", or "pprof: Inactive: ..." with the error's kind and sentence. It goes on after an error.

use std::fs::File;
use std::hint::black_box;

use heapgauge::{Error, Format, JemallocProfCtl, Profile};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const BLOCK: usize = 3000;

#[inline(never)]
fn forget_this(mib: usize) {
    for _ in 0..(mib << 20) / BLOCK {
        std::mem::forget(black_box(vec![1u8; BLOCK]));
    }
}

#[inline(never)]
fn forget_that(mib: usize) {
    for _ in 0..(mib << 20) / BLOCK {
        std::mem::forget(black_box(vec![2u8; BLOCK]));
    }
}

fn save(profile: Profile, path: &str) -> Result<(), Error> {
    std::fs::write(path, &profile).map_err(|_| Error::Io)
}

fn named(step: &str) -> Format {
    match step {
        "named-pprof" => Format::Pprof,
        "named-folded" => Format::Folded,
        "named-svg" => Format::Svg,
        "named-html" => Format::Html,
        "named-text" => Format::Text,
        "named-json" => Format::Json,
        other => panic!("no step is called {other}"),
    }
}

fn step(name: &str, value: &str) -> Result<(), Error> {
    let number = || value.parse().expect("a number");
    match name {
        "leak" => forget_this(number()),
        "leak-more" => forget_that(number()),
        "activate" => heapgauge::activate()?,
        "deactivate" => heapgauge::deactivate()?,
        "reset" => heapgauge::reset(None)?,
        "rate" => heapgauge::reset(Some(number() as u32))?,
        "pprof" => save(heapgauge::dump_pprof()?, value)?,
        "jeheap" => save(heapgauge::dump_jeheap()?, value)?,
        "pprof-to" => heapgauge::dump_pprof_to(File::create(value).map_err(|_| Error::Io)?)?,
        "jeheap-to" => heapgauge::dump_jeheap_to(File::create(value).map_err(|_| Error::Io)?)?,
        "flamegraph" => {
            let svg = JemallocProfCtl::get().ok_or(Error::ProfOff)?.dump_flamegraph();
            let svg = svg.map_err(|error| error.downcast::<Error>().unwrap())?;
            std::fs::write(value, svg).map_err(|_| Error::Io)?;
        }
        "status" => println!("{:?}", heapgauge::status()?),
        name => save(heapgauge::dump_named(named(name))?, value)?,
    }
    Ok(())
}

fn main() {
    for argument in std::env::args().skip(1) {
        let (name, value) = argument.split_once('=').unwrap_or((&argument, ""));
        match step(name, value) {
            Ok(()) => println!("{name}: ok"),
            Err(error) => println!("{name}: {error:?}: {error}"),
        }
    }
}
