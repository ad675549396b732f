#![no_std]
use core::panic::PanicInfo;

#[panic_handler]
fn panic(_: &PanicInfo) -> ! {
    loop {}
}

mod shapes {
    pub trait Area {
        fn area(&self) -> u32;
    }
    pub struct Square(pub u32);
    impl Area for Square {
        #[inline(always)]
        fn area(&self) -> u32 {
            self.0.wrapping_mul(self.0)
        }
    }
    #[inline(never)]
    pub fn sum<T: Area>(items: &[T]) -> u32 {
        items.iter().map(|i| i.area()).fold(0, |a, b| a.wrapping_add(b))
    }
}

#[no_mangle]
pub extern "C" fn entry(n: u32) -> u32 {
    let squares = [shapes::Square(n), shapes::Square(n ^ 5)];
    shapes::sum(&squares)
}
