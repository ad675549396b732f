// What users of jemalloc_pprof write, with `p` for the crate: included by moved.rs and original.rs, which differ in the
// one line that says which crate that is.

use std::hint::black_box;
use std::io::Read;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const BLOCK: usize = 3000;

#[inline(never)]
fn forget_this(mib: usize) {
    for _ in 0..(mib << 20) / BLOCK {
        std::mem::forget(black_box(vec![1u8; BLOCK]));
    }
}

async fn profile() -> anyhow::Result<Vec<u8>> {
    let mut prof_ctl = p::PROF_CTL.as_ref().unwrap().lock().await;
    prof_ctl.dump_pprof()
}

fn require_active(prof_ctl: &p::JemallocProfCtl) -> Result<(), (u16, String)> {
    if prof_ctl.activated() {
        Ok(())
    } else {
        Err((403, "heap profiling not activated".into()))
    }
}

async fn text() -> Result<String, (u16, String)> {
    let mut prof_ctl = p::PROF_CTL.as_ref().unwrap().lock().await;
    require_active(&prof_ctl)?;
    let mut file: std::fs::File = prof_ctl.dump().map_err(|err| (500, err.to_string()))?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(|err| (500, err.to_string()))?;
    Ok(text)
}

async fn started() -> &'static str {
    let guard = p::PROF_CTL.as_ref().unwrap().lock().await;
    let md: p::JemallocProfMetadata = guard.get_md();
    match md.start_time {
        None => "never",
        Some(p::ProfStartTime::TimeImmemorial) => "always",
        Some(p::ProfStartTime::Instant(when)) if when.elapsed().as_secs() < 3600 => "lately",
        Some(p::ProfStartTime::Instant(_)) => "long ago",
    }
}

async fn everything(path: &str) -> anyhow::Result<()> {
    println!("started {}", started().await);
    println!("inactive {:?}", text().await.map_err(|(status, _)| status).map(|_| ()));
    p::activate_jemalloc_profiling().await;
    println!("started {}", started().await);
    forget_this(64);
    std::fs::write(path, profile().await?)?;
    println!("text {:?}", text().await.map(|t| t.lines().next().map(String::from)));
    {
        let ctl: std::sync::Arc<tokio::sync::Mutex<p::JemallocProfCtl>> = p::PROF_CTL.clone().unwrap();
        let mut ctl = ctl.lock().await;
        let lg: usize = ctl.lg_sample();
        println!("rate {lg} active {}", ctl.activated());
        ctl.activate()?;
        ctl.deactivate()?;
        println!("active {}", ctl.activated());
    }
    p::activate_jemalloc_profiling().await;
    p::deactivate_jemalloc_profiling().await;
    println!("started {}", started().await);
    Ok(())
}

fn main() -> anyhow::Result<()> {
    let path = std::env::args().nth(1).expect("where to write");
    tokio::runtime::Builder::new_current_thread().build()?.block_on(everything(&path))
}
