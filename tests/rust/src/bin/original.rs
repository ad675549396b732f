use jemalloc_pprof as p;

include!("../moving.rs");
