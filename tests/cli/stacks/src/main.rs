//! The same as stacks.c with what Rust has. A star alone stands for frames of other files (Rust's own library).
//!
//! stack 64K: * keep@k1 direct@c1 main@m1
//! stack 80K: * keep@k1 *Square*Shape>::make@c2 generic@c3 main@m2
//! stack 96K: * keep@k1 *Circle*Shape>::make@c4 by_vtable@c5 main@m3
//! stack 112K: * keep@k1 with_closure::{{closure}}@c6 * apply@c7 with_closure@c8 main@m4
//! stack 128K: * in_iterator::{{closure}}@c9 * in_iterator@c10 main@m5
//! stack 160K: * push@c11 grown@c12 main@m6
use std::hint::black_box;
use std::os::raw::{c_char, c_int, c_void};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

extern "C" {
    #[link_name = "_rjem_mallctl"]
    fn mallctl(name: *const c_char, old: *mut c_void, old_size: *mut usize, new: *mut c_void, new_size: usize) -> c_int;
}

const K: usize = 1024;

#[inline(always)]
fn keep(n: usize) {
    let block: Vec<u8> = Vec::with_capacity(n); /*k1*/
    std::mem::forget(black_box(block));
}

#[inline(never)]
fn direct(n: usize) {
    keep(n); /*c1*/
    black_box(n);
}

trait Shape {
    fn make(&self, n: usize);
}

struct Square(u32);
struct Circle(u32);

impl Shape for Square {
    #[inline(always)]
    fn make(&self, n: usize) {
        keep(n); /*c2*/
        black_box(self.0);
    }
}

impl Shape for Circle {
    #[inline(never)]
    fn make(&self, n: usize) {
        keep(n); /*c4*/
        black_box(self.0);
    }
}

#[inline(never)]
fn generic<T: Shape>(shape: &T, n: usize) {
    shape.make(n); /*c3*/
    black_box(n);
}

#[inline(never)]
fn by_vtable(shape: &dyn Shape, n: usize) {
    shape.make(n); /*c5*/
    black_box(n);
}

#[inline(always)]
fn apply<F: FnOnce(usize)>(f: F, n: usize) {
    f(n); /*c7*/
    black_box(n);
}

#[inline(never)]
fn with_closure(n: usize) {
    let more = |k| {
        keep(k); /*c6*/
        black_box(k);
    };
    apply(more, n); /*c8*/
    black_box(n);
}

#[inline(never)]
fn in_iterator(n: usize) {
    (0..1).map(|i| Vec::<u8>::with_capacity(n + i)).for_each(|v| std::mem::forget(black_box(v))); /*c9*/ /*c10*/
    black_box(n);
}

#[inline(always)]
fn push(text: &mut String, n: usize) {
    text.reserve_exact(n); /*c11*/
}

#[inline(never)]
fn grown(n: usize) {
    let mut text = String::new();
    push(&mut text, n); /*c12*/
    std::mem::forget(black_box(text));
}

fn main() {
    let path = std::env::args().nth(1).expect("where to dump");
    direct(64 * K); /*m1*/
    generic(&Square(1), 80 * K); /*m2*/
    by_vtable(black_box(&Circle(1)), 96 * K); /*m3*/
    with_closure(112 * K); /*m4*/
    in_iterator(128 * K); /*m5*/
    grown(160 * K); /*m6*/
    let path = std::ffi::CString::new(path).expect("a path");
    let mut pointer = path.as_ptr();
    let failed = unsafe {
        mallctl(c"prof.dump".as_ptr(), std::ptr::null_mut(), std::ptr::null_mut(), (&raw mut pointer).cast(), std::mem::size_of::<*const c_char>())
    };
    assert_eq!(failed, 0);
}
