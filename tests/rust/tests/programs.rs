//! Programs on tikv-jemallocator under the crate. HEAPGAUGE is the heapgauge program, which reads what they wrote.

use std::path::{Path, PathBuf};
use std::process::Command;

const VARIABLE: &str = if cfg!(feature = "unprefixed") { "MALLOC_CONF" } else { "_RJEM_MALLOC_CONF" };
const ON: &str = "prof:true,prof_active:true,lg_prof_sample:16";

/// A directory of this test's own.
fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

fn command(program: impl AsRef<Path>, conf: &str) -> Command {
    let mut command = Command::new(program.as_ref());
    command.env_remove("MALLOC_CONF").env_remove("_RJEM_MALLOC_CONF").env(VARIABLE, conf);
    command
}

/// What it printed, line by line; it must succeed.
fn lines(command: &mut Command) -> Vec<String> {
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{command:?}: {}\n{text}", String::from_utf8_lossy(&output.stderr));
    text.lines().map(String::from).collect()
}

fn steps<S: AsRef<str>>(conf: &str, steps: &[S]) -> Vec<String> {
    let steps = steps.iter().map(|s| s.as_ref());
    lines(command(env!("CARGO_BIN_EXE_steps"), conf).args(steps))
}

fn heapgauge(arguments: &[&str]) -> Vec<String> {
    let program = std::env::var("HEAPGAUGE").expect("HEAPGAUGE: the heapgauge program");
    lines(Command::new(program).args(arguments))
}

/// In use below a function, by `heapgauge top`: bytes, and the half width of the 95 % interval (NaN: not known).
fn held_by(function: &str, file: &Path, more: &[&str]) -> (f64, f64) {
    let mut arguments = vec!["top", "--json", "-n", "0"];
    arguments.extend(more);
    arguments.push(file.to_str().unwrap());
    let report = heapgauge(&arguments).join("\n");
    let Some(row) = report.split("{\"name\":\"").find(|row| row.split('"').next().unwrap().contains(function)) else {
        return (0.0, 0.0);
    };
    let cum = row.split("\"cum\":{").nth(1).unwrap();
    let number = |key: &str| -> f64 {
        let text = cum.split(&format!("\"{key}\":")).nth(1).unwrap();
        text.split([',', '}']).next().unwrap().parse().unwrap_or(f64::NAN)
    };
    (number("value"), (number("high") - number("low")) / 2.0)
}

/// As many bytes as `mib` MiB of 3,000 byte blocks take, give or take four standard deviations.
fn assert_leaked(mib: usize, function: &str, file: &Path, more: &[&str]) {
    let truth = ((mib << 20) / 3000 * 3072) as f64;
    let (held, error) = held_by(function, file, more);
    println!("{function}: {held} of {truth}, ±{error}");
    assert!(error < truth * 0.1, "{function}: ±{error}");
    assert!((held - truth).abs() < 2.0 * error, "{function} holds {held}, not {truth} ±{error}");
}

fn argument(name: &str, file: &Path) -> String {
    format!("{name}={}", file.display())
}

#[test]
fn all_ways_of_dumping_name_the_leak() {
    let dir = scratch("dumps");
    let files: Vec<PathBuf> = ["pprof", "jeheap", "pprof-to", "jeheap-to"].iter().map(|name| dir.join(name)).collect();
    let mut all = vec![String::from("leak=64")];
    all.extend(files.iter().map(|file| argument(file.file_name().unwrap().to_str().unwrap(), file)));
    let said = steps(ON, &all);
    assert_eq!(said, ["leak: ok", "pprof: ok", "jeheap: ok", "pprof-to: ok", "jeheap-to: ok"]);
    for file in &files {
        assert_leaked(64, "::forget_this", file, &[]);
        let magic = std::fs::read(file).unwrap()[..2].to_vec();
        let pprof = file.to_str().unwrap().contains("pprof");
        assert_eq!(magic, if pprof { &b"\x1f\x8b"[..] } else { &b"he"[..] });
    }
}

/// What a file says; of packed ones what is in them. A page has its names in its data, packed.
fn unpacked(format: &str, file: &Path) -> String {
    let unpack = match format {
        "pprof" => r#"gzip -dc "$0""#,
        "html" => r#"sed -n 's/.*<script id="heapgauge-data"[^>]*>\([^<]*\)<.*/\1/p' "$0" | base64 -d | gzip -dc"#,
        _ => r#"cat "$0""#,
    };
    let said = Command::new("sh").args(["-c", unpack]).arg(file).output().unwrap();
    String::from_utf8_lossy(&said.stdout).into_owned()
}

/// The heapgauge program beside the library's own is not there: the one that is tested is asked.
#[test]
fn named_dumps_hold_the_name() {
    let dir = scratch("named");
    let beside = dir.join("heapgauge");
    std::os::unix::fs::symlink(std::env::var("HEAPGAUGE").unwrap(), beside).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_steps"), dir.join("steps")).unwrap();
    let mut formats = vec!["pprof", "folded", "svg", "text", "json"];
    if std::env::var("PAGE").unwrap() != "no" {
        formats.push("html");
    }
    let flamegraph = dir.join("flamegraph");
    let mut all = vec![String::from("leak=16"), argument("flamegraph", &flamegraph)];
    all.extend(formats.iter().map(|format| argument(&format!("named-{format}"), &dir.join(format))));
    let said = lines(command(dir.join("steps"), ON).args(&all));
    assert_eq!(said[1], "flamegraph: ok");
    let svg = std::fs::read_to_string(flamegraph).unwrap();
    assert!(svg.contains("<svg") && svg.contains("forget_this"));
    let wanted = formats.iter().map(|format| format!("named-{format}: ok"));
    assert_eq!(said[2..], wanted.collect::<Vec<_>>());
    for format in formats {
        assert!(unpacked(format, &dir.join(format)).contains("forget_this"), "{format} without the name");
    }
}

#[test]
fn what_was_sampled_outlives_deactivating_but_not_resetting() {
    let dir = scratch("control");
    let [never, some, kept, reset] = ["never", "some", "kept", "reset"].map(|name| dir.join(name));
    let inactive = format!("{ON},prof_active:false");
    let said = steps(
        &inactive,
        &[
            "leak=64",
            &argument("pprof", &never),
            "activate",
            "leak-more=64",
            &argument("pprof", &some),
            "deactivate",
            "leak=64",
            &argument("pprof", &kept),
            "reset",
            "activate",
            "leak-more=8",
            &argument("pprof", &reset),
            "rate=63",
        ],
    );
    assert!(said[1].starts_with("pprof: Inactive: "), "{}", said[1]);
    assert!(said[12].starts_with("rate: Invalid: "), "{}", said[12]);
    assert_eq!(said.iter().filter(|line| line.ends_with(": ok")).count(), 11, "{said:?}");
    for file in [&some, &kept] {
        assert_leaked(64, "::forget_that", file, &[]);
        assert_eq!(held_by("::forget_this", file, &[]), (0.0, 0.0));
    }
    assert!(held_by("::forget_that", &reset, &[]).0 < f64::from(16 << 20));
}

#[test]
fn a_stripped_program_has_profiles() {
    let dir = scratch("stripped");
    let (program, file) = (dir.join("stripped"), dir.join("profile"));
    let stripped = Command::new("strip").arg("-o").arg(&program).arg(env!("CARGO_BIN_EXE_steps")).status();
    assert!(stripped.unwrap().success());
    let said = lines(command(&program, ON).args(["leak=64", &argument("pprof", &file)]));
    assert_eq!(said, ["leak: ok", "pprof: ok"]);
    assert_leaked(64, "::forget_this", &file, &["--binary", env!("CARGO_BIN_EXE_steps")]);
}

#[test]
fn status_says_what_is_there() {
    let said =
        steps("prof:true,prof_active:false,lg_prof_sample:17,prof_accum:true", &["leak=32", "status"]).join("\n");
    for wanted in [
        "found: true",
        "profiling_built_in: true",
        "profiling_enabled: true",
        "active: false",
        "accumulates: true",
        "lg_sample: 17",
        &format!("conf_variable: \"{VARIABLE}\""),
        "version: \"5.",
    ] {
        assert!(said.contains(wanted), "{wanted} is not in {said}");
    }
    let prefix = if cfg!(feature = "unprefixed") { "" } else { "_rjem_" };
    assert!(said.contains(&format!("prefix: \"{prefix}\"")), "{said}");
    let allocated = said.split(" allocated: ").nth(1).unwrap().split(',').next().unwrap();
    assert!((32 << 20..48 << 20).contains(&allocated.parse::<u64>().unwrap()), "{allocated}");
}

#[test]
fn without_profiling_the_variable_to_set_is_named() {
    let said = steps("", &["pprof=/nonexistent/file", "activate", "deactivate", "reset"]);
    for line in said {
        assert!(line.contains(": ProfOff: ") && line.contains(&format!("{VARIABLE}=")), "{line}");
    }
}

/// One source with both crates: it compiles, does the same, and the profiles agree with the truth.
#[cfg(feature = "original")]
#[test]
fn moving_from_jemalloc_pprof_takes_one_line() {
    let dir = scratch("moving");
    let [ours, theirs] = ["moved", "original"].map(|name| dir.join(name));
    let conf = format!("{ON},prof_active:false");
    let said = lines(command(env!("CARGO_BIN_EXE_moved"), &conf).arg(&ours));
    assert_eq!(said, lines(command(env!("CARGO_BIN_EXE_original"), &conf).arg(&theirs)));
    assert_eq!(said[1], "inactive Err(403)");
    assert_leaked(64, "::forget_this", &ours, &[]);
    // Theirs doesn't say its sampling rate, so there is no ±: four times 3.1 %, as 1,024 samples have it.
    let (held, _) = held_by("::forget_this", &theirs, &[]);
    assert!((held / f64::from(64 << 20) - 1.024).abs() < 0.13, "{held}");
}
