//! The agent, started from Rust in this very program, and asked over HTTP.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use heapgauge::{Agent, Error};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[cfg_attr(feature = "unprefixed", export_name = "malloc_conf")]
#[cfg_attr(not(feature = "unprefixed"), export_name = "_rjem_malloc_conf")]
pub static MALLOC_CONF: &[u8; 46] = b"prof:true,prof_active:false,lg_prof_sample:16\0";

/// The status line and the body.
fn get(mut stream: impl Read + Write, path: &str) -> (String, Vec<u8>) {
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a header");
    let header = String::from_utf8(answer[..end].to_vec()).unwrap();
    (header.lines().next().unwrap().into(), answer[end + 4..].to_vec())
}

// One test: there is one agent in a process.
#[test]
fn an_agent_serves_until_it_is_dropped() {
    let refused = Agent::builder().listen("0.0.0.0:0").start().unwrap_err();
    assert_eq!(refused.error, Error::Unsafe);
    assert!(refused.to_string().contains("0.0.0.0"), "{refused}");
    let refused = Agent::builder().listen("127.0.0.1:0\0").start().unwrap_err();
    assert_eq!(refused.error, Error::Invalid);

    let agent = Agent::builder().listen("127.0.0.1:0").start().unwrap();
    let address = agent.url().strip_prefix("http://").expect("where it listens").to_string();
    assert_eq!(Agent::builder().start().unwrap_err().error, Error::Running);

    let (status, body) = get(TcpStream::connect(&address).unwrap(), "/debug/pprof/heap");
    assert!(status.starts_with("HTTP/1.1 403"), "{status}");
    assert!(String::from_utf8_lossy(&body).contains(&Error::Inactive.to_string()));
    heapgauge::activate().unwrap();
    std::mem::forget(vec![1u8; 8 << 20]);
    let (status, body) = get(TcpStream::connect(&address).unwrap(), "/debug/pprof/heap");
    assert!(status.starts_with("HTTP/1.1 200"), "{status}");
    assert!(body.starts_with(b"\x1f\x8b"));
    let (status, _) = get(TcpStream::connect(&address).unwrap(), "/nowhere");
    assert!(status.starts_with("HTTP/1.1 404"), "{status}");

    drop(agent);
    assert!(TcpStream::connect(&address).is_err());

    let socket = format!("{}/agent.sock", env!("CARGO_TARGET_TMPDIR"));
    let agent = Agent::builder().listen(&format!("unix:{socket}")).start().unwrap();
    assert_eq!(agent.url(), format!("unix:{socket}"));
    let (status, _) = get(UnixStream::connect(&socket).unwrap(), "/debug/pprof/heap?format=jeheap");
    assert!(status.starts_with("HTTP/1.1 200"), "{status}");
}
