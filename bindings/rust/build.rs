//! Finds or makes the C library, libheapgauge.a:
//!
//! 1. `HEAPGAUGE_LIB_DIR` names the directory it lies in;
//! 2. else it is compiled from the sources in `c/`, which are the repository's own, or came with the package;
//! 3. else pkg-config knows an installed one.

use std::collections::HashMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("c");
    println!("cargo:rerun-if-env-changed=HEAPGAUGE_LIB_DIR");
    println!("cargo:rustc-env=HEAPGAUGE_INCLUDE={}", root.join("include").display());
    println!("cargo:rustc-env=HEAPGAUGE_OUT_DIR={}", env::var("OUT_DIR").unwrap());
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        panic!("heapgauge is for Linux");
    }
    if let Some(dir) = env::var_os("HEAPGAUGE_LIB_DIR") {
        link(Path::new(&dir));
    } else if root.join("src/agent/meson.build").exists() {
        compile(&root);
    } else {
        let library = pkg_config::Config::new().cargo_metadata(false).probe("heapgauge").unwrap_or_else(|error| {
            panic!("no libheapgauge: set HEAPGAUGE_LIB_DIR to the directory of libheapgauge.a ({error})")
        });
        library.link_paths.iter().for_each(|dir| link(dir));
    }
}

/// With the static library: only that finds jemalloc in a stripped program.
fn link(dir: &Path) {
    println!("cargo:rerun-if-changed={}", dir.join("libheapgauge.a").display());
    println!("cargo:rustc-link-search=native={}", dir.display());
    println!("cargo:rustc-link-lib=static=heapgauge");
}

/// The library of the sources, one object in which all but the hg_ functions is local: no name of ours can clash with the
/// program's. As src/agent/meson.build makes it, from the lists that stand there.
fn compile(root: &Path) {
    let source = root.join("src");
    println!("cargo:rerun-if-changed={}", source.display());
    println!("cargo:rerun-if-changed={}", root.join("include").display());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap());
    let lists = Lists::read(&source);
    let mut build = cc::Build::new();
    for name in ["agent_own", "agent_shared", "http_sources"] {
        build.files(lists.files(name));
    }
    build
        .include(&source)
        .include(root.join("include"))
        .define("_GNU_SOURCE", None)
        .flag("-include")
        .flag(source.join("agent/memory.h"))
        .std("gnu11")
        .flags(["-fvisibility=hidden", "-fno-strict-aliasing", "-fno-omit-frame-pointer"])
        .pic(true)
        .warnings(false);
    if let Some(zlib) = env::var_os("DEP_Z_INCLUDE") {
        build.include(zlib);
    }
    // Without optimization a dump would hold up the program for longer.
    if env::var("OPT_LEVEL").as_deref() == Ok("0") {
        build.opt_level(2);
    }
    let whole = out.join("heapgauge-whole.o");
    let mut link = build.get_compiler().to_command();
    link.args(["-r", "-nostdlib", "-o"]).arg(&whole).args(build.compile_intermediates());
    run(&mut link);
    run(Command::new(tool("OBJCOPY", "objcopy")).arg("--localize-hidden").arg(&whole));
    cc::Build::new().object(&whole).compile("heapgauge");
}

/// The lists of files in the meson.build of each module: lines `name = files('a.c', ...)`, which may go on over further lines
/// and name other lists.
struct Lists(HashMap<String, (PathBuf, String)>);

impl Lists {
    fn read(source: &Path) -> Lists {
        let mut lists = HashMap::new();
        for folder in fs::read_dir(source).expect("the library's sources") {
            let folder = folder.unwrap().path();
            let text = fs::read_to_string(folder.join("meson.build")).unwrap_or_default();
            let mut lines = text.lines();
            while let Some(line) = lines.next() {
                let Some((name, value)) = line.split_once(" = ") else { continue };
                let mut value = value.to_string();
                while value.matches(['(', '[']).count() > value.matches([')', ']']).count() {
                    value.push_str(lines.next().expect("an end of the list"));
                }
                lists.insert(name.to_string(), (folder.clone(), value));
            }
        }
        Lists(lists)
    }

    fn files(&self, name: &str) -> Vec<PathBuf> {
        let (folder, value) = self.0.get(name).unwrap_or_else(|| panic!("no meson.build lists {name}"));
        let mut files = Vec::new();
        // Between quotes: a file. Outside of them: words, of which some are lists.
        for (i, part) in value.split('\'').enumerate() {
            if i % 2 == 1 {
                files.push(folder.join(part));
                continue;
            }
            let words = part.split(|c: char| !c.is_alphanumeric() && c != '_');
            files.extend(words.filter(|word| self.0.contains_key(*word)).flat_map(|word| self.files(word)));
        }
        files
    }
}

fn tool(variable: &str, default: &str) -> String {
    println!("cargo:rerun-if-env-changed={variable}");
    env::var(variable).unwrap_or_else(|_| default.into())
}

fn run(command: &mut Command) {
    match command.status() {
        Ok(status) if status.success() => (),
        Ok(status) => panic!("{command:?}: {status}"),
        Err(error) => panic!("{command:?}: {error}"),
    }
}
