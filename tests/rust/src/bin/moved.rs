use heapgauge as p;

include!("../moving.rs");
