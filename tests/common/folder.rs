//! Where the command line is tried: a folder with files, and the real program in it.

use npyz::WriterBuilder;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use stencilc_runtime::files::trust;
use stencilc_runtime::nvrtc;
use tempfile::TempDir;

/// A folder with files that are right, and files that are not.
pub struct Folder(TempDir);

const TWO: &str = "stencil one { in a; out b; b = a }\nstencil two { in a; out b; b = 2*a[i+1] }\n";
const BROKEN: &str = "stencil broken { in phi; out res; res = phj }\n";
const UNUSED: &str = "stencil unused { in a, c; out b; b = a }\n";
const NOT_FINITE: &str = "stencil roots { in a; out b; b = sqrt(a - 10) }\n";
const LARGE: &str = "stencil large { in a; out b; b = a * 1e300 }\n";
const WEIGHTS: &str = "stencil weigh { in a; in w on (k); param first: int; out b; \
                       b = if k < first { a } else { w * a[k-1] } }\n";

impl Folder {
    /// Of an animated picture: how many frames there are, and how many in a second.
    pub fn frames(&self, name: &str) -> (u32, u16) {
        let file = std::io::BufReader::new(fs::File::open(self.path(name)).unwrap());
        let mut reader = png::Decoder::new(file).read_info().unwrap();
        let frames = reader.info().animation_control().unwrap().num_frames;
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let mut different = std::collections::BTreeSet::new();
        let mut per_second = 0;
        for _ in 0..frames {
            reader.next_frame(&mut bytes).unwrap();
            let control = reader.info().frame_control().unwrap();
            per_second = control.delay_den / control.delay_num;
            different.insert(bytes.clone());
        }
        assert_eq!(different.len(), frames as usize, "each shows another step");
        (frames, per_second)
    }

    /// The pixels of a picture.
    pub fn pixels(&self, name: &str) -> Vec<[u8; 3]> {
        let file = std::io::BufReader::new(std::fs::File::open(self.path(name)).unwrap());
        let mut reader = png::Decoder::new(file).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut bytes).unwrap();
        bytes.as_chunks().0.to_vec()
    }

    /// A fresh one. Kernels that another one, or an earlier run of the tests, has compiled are not compiled again.
    pub fn new() -> Self {
        let folder = Self::with_own_cache();
        share_kernels(&folder.path("home"));
        folder
    }

    /// A fresh one, in which nothing has been compiled.
    pub fn with_own_cache() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for (name, text) in [
            ("two.stn", TWO),
            ("broken.stn", BROKEN),
            ("unused.stn", UNUSED),
            ("roots.stn", NOT_FINITE),
            ("column.stn", "stencil column { in a; in h on (i, j); out b; b = a + h }"),
            ("large.stn", LARGE),
            ("weigh.stn", WEIGHTS),
            ("text.npy", "no array"),
        ] {
            fs::write(folder.path(name), text).unwrap();
        }
        fs::write(folder.path("latin.stn"), b"// f\xfcr\n").unwrap();
        let wide: Vec<u8> = BROKEN.encode_utf16().flat_map(u16::to_le_bytes).collect();
        fs::write(folder.path("wide.stn"), [&[0xFF, 0xFE], wide.as_slice()].concat()).unwrap();
        fs::create_dir(folder.path("folder.stn")).unwrap();
        // The fourth power of i, whose fourth difference is 24 to the last bit.
        let (nk, nj, ni) = (3, 6, 9);
        let powers: Vec<f64> = (0..nk * nj * ni).map(|cell| ((cell % ni) as f64).powi(4)).collect();
        folder.array("phi.npy", &[3, 6, 9], &powers);
        folder.array("line.npy", &[6], &powers[..6]);
        folder.array("fortran.npy", &[9, 6, 3], &powers);
        folder.array("turned.npy", &[3, 9, 6], &powers);
        folder.array("plane.npy", &[18, 9], &powers);
        folder.array("smaller.npy", &[3, 5, 9], &powers[..135]);
        let single: Vec<f32> = powers.iter().map(|&x| x as f32).collect();
        folder.array("single.npy", &[3, 6, 9], &single);
        folder.array("long.npy", &[3, 6, 9], &[1u64 << 40; 162]);
        folder
    }

    /// The path of a file in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn array<T: npyz::Serialize + npyz::AutoSerialize + Copy>(&self, name: &str, shape: &[u64], numbers: &[T]) {
        let file = fs::File::create(self.path(name)).unwrap();
        let mut writer = npyz::WriteOptions::new().default_dtype().shape(shape).writer(file).begin_nd().unwrap();
        writer.extend(numbers.iter().copied()).unwrap();
        writer.finish().unwrap();
    }

    /// The program in this folder, on a machine without GPU and NVRTC, whatever this one has.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stencilc"));
        command
            .args(line.split_whitespace())
            .current_dir(self.0.path())
            .stdin(Stdio::null())
            .env("STENCILC_HOME", self.path("home"))
            .env("STENCILC_NVRTC", "nowhere")
            .env("CUDA_VISIBLE_DEVICES", "")
            .env("LC_ALL", "C")
            .env("COLUMNS", "100")
            .env_remove("CLICOLOR_FORCE");
        command
    }

    /// What a call came to.
    pub fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// Standard output of a call that has to succeed.
    pub fn done(&self, line: &str) -> String {
        let output = self.run(line);
        assert!(output.status.success(), "stencilc {line}\n{}", text(&output.stderr));
        text(&output.stdout)
    }

    /// What a call says that has to fail.
    pub fn refused(&self, line: &str) -> String {
        let output = self.run(line);
        assert!(!output.status.success(), "stencilc {line}\n{}", text(&output.stdout));
        text(&output.stderr)
    }

    /// The JSON that a call has to print.
    pub fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.done(line)).unwrap()
    }

    /// What calls say and how they end, one after the other.
    pub fn transcript(&self, lines: &[&str]) -> String {
        let entry = |line: &&str| {
            let output = self.run(line);
            let status = output.status.code().unwrap_or(-1);
            format!("$ stencilc {line}\n{}{}=> {status}\n\n", text(&output.stdout), text(&output.stderr))
        };
        lines.iter().map(entry).collect()
    }
}

/// Lets the cache of kernels of a home that is to be made be that of whoever runs the tests. There is none where it is turned
/// off, or cannot be made.
pub fn share_kernels(home: &Path) {
    let Some(kernels) = nvrtc::home().map(|home| home.join("kernels")) else { return };
    if trust::make_folder(&kernels).is_ok() {
        trust::make_folder(home).unwrap();
        symlink(kernels, home.join("kernels")).unwrap();
    }
}

/// What was printed.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
