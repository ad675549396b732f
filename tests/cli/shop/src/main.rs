//! A program on tikv-jemallocator, whose functions have the prefix _rjem_: keeps sessions, then waits for a line.
use std::collections::HashMap;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[inline(never)]
fn remember(sessions: &mut HashMap<u64, Vec<String>>, user: u64) {
    sessions.entry(user % 5000).or_default().push("x".repeat(300 + (user % 700) as usize));
}

fn main() {
    let mut sessions = HashMap::new();
    for user in 0..60_000u64 {
        remember(&mut sessions, user.wrapping_mul(2654435761));
    }
    println!("ready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    println!("{}", sessions.len());
}
