// Rust: generics, closures, traits, modules, methods of enums, iterators inlined many levels deep.
use std::collections::HashMap;
use std::fmt::Display;

mod inner {
    pub trait Area {
        fn area(&self) -> f64;
        fn twice(&self) -> f64 {
            self.area() * 2.0
        }
    }

    #[derive(Clone, Copy)]
    pub enum Kind {
        Round,
        Flat,
    }

    impl Kind {
        #[inline(never)]
        pub fn of(n: usize) -> Kind {
            if n % 2 == 0 { Kind::Round } else { Kind::Flat }
        }
    }

    pub struct Square(pub f64, pub Kind);
    pub struct Circle {
        pub radius: f64,
    }

    impl Area for Square {
        #[inline(never)]
        fn area(&self) -> f64 {
            match self.1 {
                Kind::Round => self.0,
                Kind::Flat => self.0 * self.0,
            }
        }
    }

    impl Area for Circle {
        fn area(&self) -> f64 {
            self.radius * self.radius * 3.14
        }
    }
}

use inner::Area;

#[inline(never)]
fn total(shapes: &[Box<dyn Area>]) -> f64 {
    shapes.iter().map(|s| s.area() + s.twice()).sum()
}

#[inline(never)]
fn show<T: Display + Clone>(items: &[T]) -> String {
    items.iter().map(|i| format!("<{}>", i.clone())).collect::<Vec<_>>().join(",")
}

#[inline(never)]
fn count(words: &[String]) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for word in words {
        *counts.entry(word.to_uppercase()).or_insert(0) += 1;
    }
    counts
}

fn main() {
    let words: Vec<String> = std::env::args().chain((0..20).map(|i| (i % 7).to_string())).collect();
    let shapes: Vec<Box<dyn Area>> = (0..words.len())
        .map(|i| -> Box<dyn Area> {
            if i % 3 == 0 {
                Box::new(inner::Square(i as f64, inner::Kind::of(i)))
            } else {
                Box::new(inner::Circle { radius: i as f64 })
            }
        })
        .collect();
    let mut counted: Vec<_> = count(&words).into_iter().collect();
    counted.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    println!("{} {} {:?}", total(&shapes), show(&[1, 2, 3]), counted.first());
}
