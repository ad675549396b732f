//! An axum server that serves its own heap profile, beside a route that forgets to free:
//!
//!     cargo run --release -p heapgauge-axum &
//!     curl http://127.0.0.1:3000/leak/65536
//!     curl -o heap.pb.gz http://127.0.0.1:3000/debug/pprof/heap
//!     heapgauge top --show heapgauge_axum heap.pb.gz
//!     curl -o heap.svg http://127.0.0.1:3000/debug/pprof/heap/flamegraph
//!
//! PORT in the environment: another port. Started with _RJEM_MALLOC_CONF=prof_active:false it answers 403.

use std::sync::Mutex;

use axum::extract::Path;
use axum::http::{header, StatusCode};
use axum::response::IntoResponse;
use axum::routing::get;
use bytes::Bytes;
use heapgauge::{Error, Format, Profile};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Read by jemalloc when the program starts; _RJEM_MALLOC_CONF comes after it and may say otherwise.
#[export_name = "_rjem_malloc_conf"]
pub static MALLOC_CONF: &[u8; 45] = b"prof:true,prof_active:true,lg_prof_sample:19\0";

static VISITS: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// The leak: what is written down of a visit is never looked at again.
#[inline(never)]
fn remember_visit(kib: usize) -> usize {
    let mut visits = VISITS.lock().unwrap();
    visits.extend((0..kib).map(|_| vec![1; 1024]));
    visits.len()
}

async fn leak(Path(kib): Path<u32>) -> String {
    format!("{} KiB forgotten\n", remember_visit(kib as usize))
}

type Refusal = (StatusCode, String);

fn refusal(error: Error) -> Refusal {
    let status = match error {
        Error::Inactive | Error::ProfOff | Error::NoProfiling | Error::NoJemalloc => StatusCode::FORBIDDEN,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, format!("{error}\n"))
}

/// Dumps on a thread that may block. The answer is sent from where the library made it, without a copy on our heap.
async fn answer(kind: &'static str, dump: fn() -> Result<Profile, Error>) -> Result<impl IntoResponse, Refusal> {
    let profile =
        tokio::task::spawn_blocking(dump).await.map_err(|e| (StatusCode::INTERNAL_SERVER_ERROR, format!("{e}\n")))?;
    Ok(([(header::CONTENT_TYPE, kind)], Bytes::from_owner(profile.map_err(refusal)?)))
}

async fn heap() -> Result<impl IntoResponse, Refusal> {
    answer("application/gzip", heapgauge::dump_pprof).await
}

async fn flamegraph() -> Result<impl IntoResponse, Refusal> {
    answer("image/svg+xml", || heapgauge::dump_named(Format::Svg)).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::var("PORT").map_or(Ok(3000), |port| port.parse())?;
    let app = axum::Router::new()
        .route("/leak/{kib}", get(leak))
        .route("/debug/pprof/heap", get(heap))
        .route("/debug/pprof/heap/flamegraph", get(flamegraph));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}
