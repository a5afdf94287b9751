//! Messages that name methods of Rust and options of the command line, in words of C.

/// What is said, and what that is in C. Longer ones come first.
const WORDS: &[(&str, &str)] = &[
    ("; `Job::start` copies what lies in another way", "; what lies in another way has to be copied before"),
    ("`Job::start` copies what lies in another way", "copy it before: no arrays are copied silently"),
    (", or `Job::start`, which packs its arrays", ""),
    (", or take `Job::start`, which packs its arrays", ""),
    (", or `Job::start`, which brings arrays there", ""),
    ("start it: `Job::start`", "begin it: stencilc_run_begin"),
    ("give one: `Domain::Mesh { mesh, levels }`", "give one, of stencilc_mesh_read or stencilc_mesh_make"),
    ("fields are arrays: `get`", "fields are arrays: stencilc_run_get"),
    ("it has one once it is computed: `step`, or `finish`", "it has one once it is computed: stencilc_run_step"),
    (
        "a checkpoint is written by `run --checkpoint FILE`; without one, leave out --resume",
        "stencilc_run_save writes one",
    ),
    ("give --levels N", "call stencilc_set_levels"),
    ("give the same --levels", "give the same number to stencilc_set_levels"),
    ("fewer --levels", "fewer levels"),
    ("leave out --levels", "leave out stencilc_set_levels"),
    ("give fewer --gpus", "give a smaller number to stencilc_set_devices"),
    ("give at most --gpus ", "give stencilc_set_devices at most "),
    (": --gpus says how many", ": stencilc_set_devices says how many"),
    ("leave out --gpus", "leave out stencilc_set_devices"),
    ("; or --precision f64, if the field is `real`", "; or choose STENCILC_F64, if the field is `real`"),
    ("; or --precision f64", "; or choose STENCILC_F64"),
    ("or --precision f32", "or STENCILC_F32"),
    ("give the same --precision", "give stencilc_set_precision the same"),
    ("give the same --mesh", "give the same mesh"),
    ("give a larger --grid", "give larger arrays"),
    (
        "save it as truth values, in NumPy by `.astype(bool)`; or give --cast, which takes 0 for false",
        "convert it to bytes of 0 and 1",
    ),
    ("give --cast to round it", "round it"),
    ("give --cast to convert it, which cuts fractions off", "convert it to whole numbers"),
    ("give --cast to convert it, which may round", "convert it"),
    ("; `stencilc list stencils` shows those that come along", ", or the name of one that comes along"),
    ("; `stencilc mesh make` writes some", ""),
    ("than the file says?", "than is said?"),
    (
        "do its numbers count from 1? numbers of elements count from 0: subtract 1",
        "do its numbers count from 1? give 1 as `first`",
    ),
    ("make another one: `Job::call`", "make another one: stencilc_bind"),
    ("lend it by `Lent::write`", "lend it for STENCILC_WRITE"),
    ("give one: --set ", "set it by stencilc_set_real, stencilc_set_int or stencilc_set_bool: "),
    ("give --set ", "call stencilc_set_real, stencilc_set_int or stencilc_set_bool: "),
    ("--set ", "stencilc_set_real, stencilc_set_int or stencilc_set_bool: "),
    ("give --grid NIxNJxNK (halo included), or the inputs as arrays", "lend the inputs as arrays"),
];

/// A message in words of C.
pub fn in_c(text: &str) -> String {
    let text = without_drawing(text);
    WORDS.iter().fold(without_files(&text), |text, (from, to)| text.replace(from, to))
}

/// Nothing is drawn at random for C.
fn without_drawing(text: &str) -> String {
    let lines = text.lines().map(|line| line.split_once("; or let ").map_or(line, |(before, _)| before));
    lines.collect::<Vec<_>>().join("\n")
}

/// Arrays that are named, where the command line names files: `` `a` `` for `--in a=a.npy`.
fn without_files(text: &str) -> String {
    let mut parts = text.split("--in ");
    let mut said = parts.next().unwrap_or_default().to_owned();
    for (number, part) in parts.enumerate() {
        if number > 0 && said.ends_with("` ") {
            said.insert(said.len() - 1, ',');
        }
        let end = part.find(|c: char| c.is_whitespace() || ",;)".contains(c)).unwrap_or(part.len());
        let (given, rest) = part.split_at(end);
        said += &match given.split_once('=') {
            Some((name, _)) => format!("an array called `{name}`{rest}"),
            None => format!("an array {part}"),
        };
    }
    said
}

#[cfg(test)]
mod tests {
    use super::in_c;

    #[test]
    fn nothing_is_said_of_rust() {
        let said = in_c("one distance for all; `Job::start` copies what lies in another way");
        assert_eq!(said, "one distance for all; what lies in another way has to be copied before");
        assert_eq!(
            in_c("give it: --in heat=heat.npy; or let it be drawn at random: --draw"),
            "give it: an array called `heat`"
        );
        assert_eq!(in_c("them: --in a=a.npy --in b=b.npy"), "them: an array called `a`, an array called `b`");
        assert_eq!(in_c("them: --in a=a.npy, --in b=b.npy"), "them: an array called `a`, an array called `b`");
        assert_eq!(in_c("leave it, or take `Job::start`, which packs its arrays"), "leave it");
    }
}
